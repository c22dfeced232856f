"""Finds the handlers: every module of a service enters its own in the registry when it is imported."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules


def load(services: Iterable[str]) -> None:
    """Import services by their names, such as "tasks": each is a module beside this one, or a folder of modules."""
    for name in services:
        service = import_module(f"apiserver.services.{name}")
        for module in iter_modules(getattr(service, "__path__", ()), f"{service.__name__}."):
            import_module(module.name)
