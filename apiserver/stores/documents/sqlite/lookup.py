"""One path of a document as SQL: what SQLite finds there in the JSON, and what Python is to be asked instead.

SQLite decides for text, whole numbers, booleans and null. Python is asked where a value is a list, an object, a
fraction (which SQLite reads from JSON with rounding) or text with NUL (where SQLite cuts it), where a list lies on the
way to the value, and for names whose JSON has escapes, as SQLite's paths have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from apiserver.stores.documents.dialect.paths import Path, reach
from apiserver.stores.documents.dialect.values import MISSING
from apiserver.stores.documents.sqlite.parameters import Parameters
from apiserver.stores.documents.sqlite.table import has_nul

_NOWHERE = '$."$"'
"""A path that no document has: `json_extract` of two paths gives JSON, of one path a bare value."""


class Lookup:
    """The values at a path of the table's documents."""

    def __init__(self, statement: Parameters, path: Path) -> None:
        self._statement = statement
        self.source, self._below = statement.table.source(path)
        """The column of JSON that the path leads into."""
        self.known_to_sqlite = not any(_is_escaped(name) for name in self._below)
        place = self._place(self._below)
        self._exact = f"json_extract({self.source}, {place}, {statement.bind(_NOWHERE)})"
        self.kind = f"json_type({self.source}, {place})"
        """SQL of a value's type, NULL when there is none or a list is on the way."""
        self.value = f"json_extract({self.source}, {place})"
        """SQL of a text, whole number, boolean or null."""
        self.whole = None if self._below else self.source
        """SQL of the JSON itself, NULL when there is no value; None when the value is part of a larger one."""
        self.list = self.whole or self.value
        """SQL of the JSON of a list."""
        self.json = f"CASE WHEN {self.kind} IS NULL THEN NULL ELSE {self._exact} END"
        """SQL of a JSON list whose first item is the value; NULL when there is none or a list is on the way."""

    def unless_cut(self, sql: str, otherwise: str) -> str:
        """SQL for a text's value: `otherwise` when it may hold NUL characters."""
        return f"CASE WHEN {has_nul(self.source)} THEN {otherwise} ELSE {sql} END"

    def ask_value(self, function: Callable[[Any], Any]) -> str:
        """SQL of what the function says about the value."""
        return self._statement.ask(lambda text: function(orjson.loads(text)[0]), self._exact)

    def ask_all(self, function: Callable[[list[Any]], Any]) -> str:
        """SQL of what the function says about all values at the path, by the dialect's rules."""
        return self._statement.ask(lambda text: function(_reached(text, self._below)), self.source)

    def ask_whole(self, function: Callable[[Any, Path], Any]) -> str:
        """SQL of what the function says about the column's JSON, null when there is none, and the path inside it."""
        return self._statement.ask(
            lambda text: function(None if text is None else orjson.loads(text), self._below), self.source
        )

    def through_lists(self, then: str, otherwise: str) -> str:
        """SQL for a value that was not found: `then` when that may be because a list is on the way."""
        parents = [self._place(self._below[:length]) for length in range(len(self._below))]
        if self.source == "doc":
            del parents[:1]
        lists = " OR ".join(f"json_type({self.source}, {parent}) = 'array'" for parent in parents)
        return f"CASE WHEN {lists} THEN {then} ELSE {otherwise} END" if lists else otherwise

    def _place(self, path: Path) -> str:
        return self._statement.bind("$" + "".join(f'."{name}"' for name in path))


def _is_escaped(name: str) -> bool:
    return any(character in '"\\' or character < " " for character in name)


def _reached(text: str | None, path: Path) -> list[Any]:
    return [MISSING] if text is None else list(reach(orjson.loads(text), path))
