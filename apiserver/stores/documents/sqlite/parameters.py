"""What a statement in the making gathers: its parameters, and the Python functions that it asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.table import Table

MOST_CONDITIONS = 4000


class Parameters:
    """The parameters of a statement over one table; functions may be asked until it is left."""

    def __init__(self, table: Table, callbacks: Callbacks) -> None:
        self.table = table
        self.parameters: dict[str, Any] = {}
        self._names: dict[tuple[type, Any], str] = {}
        self._callbacks = callbacks
        self._functions: list[Callable[[Any], Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._callbacks.pop(id(self), None)

    def bind(self, value: Any) -> str:
        """The placeholder of a value; values that are the same share one, as paths come again and again."""
        known = (type(value), value)
        if known in self._names:
            return self._names[known]
        if len(self.parameters) >= MOST_CONDITIONS:
            raise InvalidFilter("the filter has too many conditions")
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        self._names[known] = f":{name}"
        return f":{name}"

    def ask(self, function: Callable[[Any], Any], sql: str) -> str:
        """SQL that gives what the function makes of the value of some SQL."""
        self._callbacks[id(self)] = self._functions
        self.parameters["asked"] = id(self)
        self._functions.append(function)
        return f"ask(:asked, {len(self._functions) - 1}, {sql})"
