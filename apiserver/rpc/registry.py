"""Handlers, by the endpoint version they answer. A handler says what it answers; the schema says how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from apiserver.rpc.call import Handler

#: A handler keeps its own type: others may call it, and rely on what it answers.
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Registration:
    """One handler: `name` is `service.action`, `version` a version key of the action's schema."""

    name: str
    version: str
    handler: Handler
    anonymous: bool
    raw: bool


class Registry:
    """The handlers of a server, filled by the services' modules when they are imported."""

    def __init__(self) -> None:
        self._registrations: dict[tuple[str, str], Registration] = {}

    def endpoint(self, name: str, version: str, *, anonymous: bool = False, raw: bool = False) -> Callable[[H], H]:
        """Register the decorated coroutine for `name` at `version`.

        `anonymous` lets callers without credentials in; `raw` gives the handler the body in `call.body`, unparsed, and
        only the query string in the request dict. Any other handler of a batch gets its requests as `items`.
        """

        def register(handler: H) -> H:
            if (name, version) in self._registrations:
                raise ValueError(f"{name} {version} has two handlers")
            self._registrations[name, version] = Registration(name, version, handler, anonymous, raw)
            return handler

        return register

    def __iter__(self) -> Iterator[Registration]:
        return iter(self._registrations.values())
