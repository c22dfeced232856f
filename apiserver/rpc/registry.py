"""The handlers, by the endpoint version that each answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from apiserver.rpc.call import Handler

#: A decorated handler keeps its own type, so that other code can call it.
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Registration:
    """One handler: `name` is `service.action`, `version` is a version in the action's schema."""

    name: str
    version: str
    handler: Handler
    anonymous: bool
    raw: bool


class Registry:
    """The handlers of a server. The services' modules register them when they are imported."""

    def __init__(self) -> None:
        self._registrations: dict[tuple[str, str], Registration] = {}

    def endpoint(self, name: str, version: str, *, anonymous: bool = False, raw: bool = False) -> Callable[[H], H]:
        """Register the decorated coroutine for `name` at `version`.

        `anonymous` lets callers without credentials in. A `raw` handler finds the unparsed body in `call.body`; its
        request holds the query string only. Any other handler of a batch gets the lines as `items`.
        """

        def register(handler: H) -> H:
            if (name, version) in self._registrations:
                raise ValueError(f"{name} {version} has two handlers")
            self._registrations[name, version] = Registration(name, version, handler, anonymous, raw)
            return handler

        return register

    def __iter__(self) -> Iterator[Registration]:
        return iter(self._registrations.values())
