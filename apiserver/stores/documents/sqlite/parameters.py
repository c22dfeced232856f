"""Collects the parameters of a statement, and the Python functions that SQLite calls while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.table import Table

MOST_CONDITIONS = 4000


class Parameters:
    """The parameters of a statement over one table. A context: SQLite can call the functions until it ends."""

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
        """The placeholder of a value. Equal values share one, because the same paths come again and again."""
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
        """SQL of what a function returns for the value of other SQL."""
        self._callbacks[id(self)] = self._functions
        self.parameters["asked"] = id(self)
        self._functions.append(function)
        return f"ask(:asked, {len(self._functions) - 1}, {sql})"
