"""A call of every endpoint, in the order in which they work: one module a service, as in `schemas/`.

They are run against a server each time the site is built, and what it answers is what the pages show. A text that
begins with `$` is a variable: one of `GIVEN`, or what an earlier call of the same service's module kept.
"""

from __future__ import annotations

from importlib import import_module

from docs.site.examples.call import Call

__all__ = ["SERVICES", "Call", "calls_of"]

#: The services, as the reference lists them.
SERVICES = (
    *("events", "tasks", "models", "projects", "queues", "workers", "reports", "pipelines", "serving"),
    *("auth", "login", "users", "organization", "storage", "server", "debug"),
)


def calls_of(service: str) -> list[Call]:
    """The calls of a service's module: those of the service, and what other services have to do for them."""
    calls: list[Call] = import_module(f"docs.site.examples.{service}").CALLS
    return calls
