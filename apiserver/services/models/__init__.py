"""models.*: the files that training produces and starts from. Importing the package registers its handlers."""

from apiserver.services.models import edit, life, read, update_for_task
