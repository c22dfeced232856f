"""Imports what a server imports until it runs, on any engine."""

from importlib import import_module
from pkgutil import walk_packages

import apiserver.server.serve  # noqa: F401

for name in ("elasticsearch", "pymongo.asynchronous", "anyio._backends._asyncio", "uvicorn.lifespan.off"):
    import_module(name)
for name in ("apiserver.services", "apiserver.stores.documents.sqlite", "apiserver.stores.events"):
    for module in walk_packages(import_module(name).__path__, f"{name}."):
        import_module(module.name)
