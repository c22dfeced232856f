"""projects.*: folders of tasks and models. Importing the package registers its handlers."""

from apiserver.services.projects import contents, distinct_values, edit, move, read, tags
