"""The names of a table's columns: stripped, each once, and none that is empty."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from apiserver.transfer.importing.runs.tables import cells
from apiserver.transfer.importing.runs.tables.broken import Broken

#: A table has no more columns.
MOST_COLUMNS = 100_000
#: How pandas calls the index of a table where it has no name.
_UNNAMED = re.compile(r"(Unnamed: \d+|__index_level_\d+__)?")


class Header:
    """The names of the columns that were seen so far.

    For example, " step", "loss", "loss", "" are "step", "loss", "loss_2" and no name. A column without a name is left
    out. It is told unless it only numbers the rows, as the index of pandas does.
    """

    def __init__(self, broken: Broken) -> None:
        self._broken = broken
        self._names: dict[Hashable, str] = {}
        """By what the file calls them; "" if that is no name."""
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        """By name, the last number behind it."""
        self._next: dict[Hashable, int] = {}
        """By column without a name, the next row's number."""
        self._told: set[Hashable] = set()
        """Columns without a name that hold something else."""

    def __len__(self) -> int:
        return len(self._names)

    def add(self, columns: Iterable[tuple[Hashable, str]]) -> None:
        """Columns by what identifies them, and what the file calls them; they may come again."""
        for key, said in columns:
            if key not in self._names:
                self._names[key] = self._unique(said.strip())

    def named(self, columns: Iterable[tuple[Hashable, Sequence[Any]]]) -> dict[str, Sequence[Any]]:
        """The columns by their names."""
        by_name = {}
        for key, column in columns:
            if name := self._names[key]:
                by_name[name] = column
            else:
                self._pass_over(key, column)
        return by_name

    def _unique(self, said: str) -> str:
        if _UNNAMED.fullmatch(said):
            return ""
        name, number = said, self._numbers.get(said, 1)
        while name in self._taken:
            number += 1
            name = f"{said}_{number}"
        self._taken.add(name)
        self._numbers[said] = number
        if name != said:
            self._broken.note("another column has the same name", f"'{said}' is '{name}'")
        return name

    def _pass_over(self, key: Hashable, column: Sequence[Any]) -> None:
        """A column without a name: look whether it numbers the rows, from 0 or 1 on."""
        if key in self._told or not cells.present(column).any():
            return
        found = cells.steps(column)
        first = self._next.get(key, int(found.whole[0] == 1))
        if found.known.all() and (found.whole == np.arange(first, first + len(column))).all():
            self._next[key] = first + len(column)
        else:
            self._told.add(key)
            place = f"column {key + 1}" if isinstance(key, int) else f"'{key}'"
            self._broken.add("column without a name, which the header has to say", [place])
