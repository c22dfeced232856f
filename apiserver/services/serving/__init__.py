"""serving.*: containers that serve models, and their endpoints. Importing the package registers its handlers."""

from apiserver.services.serving import charts, containers, endpoints
