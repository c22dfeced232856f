"""models.*: the files that training makes and starts from. Importing the package registers its handlers."""

from apiserver.services.models import edit, life, metadata, of_task, read

__all__ = ["edit", "life", "metadata", "of_task", "read"]
