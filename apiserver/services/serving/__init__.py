"""serving.*: containers that serve models, and the endpoints behind which they are. Importing it registers handlers."""

from apiserver.services.serving import charts, containers, endpoints

__all__ = ["charts", "containers", "endpoints"]
