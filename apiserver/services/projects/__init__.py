"""projects.*: what tasks and models are kept in. Importing the package registers its handlers."""

from apiserver.services.projects import contents, edit, names, places, read, tags

__all__ = ["contents", "edit", "names", "places", "read", "tags"]
