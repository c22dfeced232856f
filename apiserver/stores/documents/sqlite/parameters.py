"""What a statement in the making gathers: its parameters, the Python functions it asks, the values it remembers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Self

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.derived import Derived, Reading
from apiserver.stores.documents.sqlite.table import Table

_MOST = 4000


class Parameters:
    """The parameters of a statement over one table; functions may be asked until it is left."""

    def __init__(self, table: Table, callbacks: Callbacks, derived: Derived | None = None) -> None:
        self.table = table
        self.parameters: dict[str, Any] = {}
        self._names: dict[tuple[type, Any], str] = {}
        self._callbacks = callbacks
        self._functions: list[Callable[[Any], Any]] = []
        self._number: int | None = None
        self._derived = derived
        self._readings: list[Reading] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reading in self._readings:
            reading.finish()
        if self._number is not None:
            self._callbacks.forget(self._number)

    def bind(self, value: Any) -> str:
        """The placeholder of a value; values that are the same share one, as paths come again and again."""
        known = (type(value), value)
        if known in self._names:
            return self._names[known]
        if len(self.parameters) >= _MOST:
            raise InvalidFilter("the filter has too many conditions")
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        self._names[known] = f":{name}"
        return f":{name}"

    def ask(self, function: Callable[[Any], Any], sql: str) -> str:
        """SQL that gives what the function makes of the value of some SQL."""
        if self._number is None:
            self._number = self._callbacks.register(self._functions)
            self.parameters["asked"] = self._number
        self._functions.append(function)
        return f"ask(:asked, {len(self._functions) - 1}, {sql})"

    @property
    def remembers_values(self) -> bool:
        """Whether values are remembered by row."""
        return self._derived is not None

    def remembered(self, sql: str, key: Hashable, root: str) -> str:
        """SQL of a value that is made of a top-level field by some SQL, once for each row and `key`."""
        if self._derived is None:
            return sql
        reading = self._derived.read(self.table.name, key, root)
        self._readings.append(reading)
        return f"nullif(coalesce({self.ask(reading.known, 'row')}, {self.ask(reading.make, sql)}), x'')"
