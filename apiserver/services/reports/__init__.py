"""reports.*: pages that people write about tasks. Importing the package registers its handlers."""

from apiserver.services.reports import edit, life, read, task_data
