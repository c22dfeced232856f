"""tasks.*: runs of training and whatever else is run. Importing the package registers its handlers."""

from apiserver.services.tasks import (
    artifacts,
    cleanup,
    clone,
    configurations,
    edit,
    hyperparams,
    life,
    models,
    queueing,
    read,
)

__all__ = [
    "artifacts",
    "cleanup",
    "clone",
    "configurations",
    "edit",
    "hyperparams",
    "life",
    "models",
    "queueing",
    "read",
]
