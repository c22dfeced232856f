"""tasks.*: runs of training and other programs. Importing the package registers its handlers."""

from apiserver.services.tasks import (
    artifacts,
    cleanup,
    clone,
    configurations,
    edit,
    hyperparams,
    imports,
    life,
    models,
    queueing,
    read,
)
