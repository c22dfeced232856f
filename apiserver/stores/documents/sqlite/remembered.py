"""Remembers answers about many documents, until a field that they depend on changes in any document.

The web UI asks for all tags and types of tasks with every table that it opens. These fields hardly ever change; running
tasks change other fields all the time. Each answer that is new makes all that are outdated be forgotten, as nobody may
ask these questions again.
"""

from __future__ import annotations

import threading
from array import array
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar, cast

T = TypeVar("T")

_MOST = 64
_NUMBERS_OF_A_ROW = 32
_LONGEST = 20_000
"""Characters of a question whose answer is remembered. A question may name a hundred thousand ids."""


class _Answer(NamedTuple):
    roots: Collection[str]
    changes: int
    """Of the roots, when it was asked."""
    found: object


class Remembered:
    """Answers by their questions. Any thread may ask.

    All answers together have at most `rows` rows. Grouped by a time, nearly every task is a row of half a kilobyte.
    """

    def __init__(self, rows: int = 200_000) -> None:
        self._most_rows = rows
        self._lock = threading.Lock()
        self._changes: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
        self._found: OrderedDict[tuple[str, str], _Answer] = OrderedDict()
        self._rows = 0

    def changed(self, table: str, roots: Collection[str] | None) -> None:
        """Note that these top-level fields have changed in some documents. None: documents were added or deleted."""
        with self._lock:
            self._changes[table].update([None] if roots is None else roots)

    def changes(self, table: str, roots: Collection[str]) -> int:
        """How often one of these fields was changed, or documents were added or deleted."""
        with self._lock:
            return self._number(table, roots)

    def of(
        self,
        table: str,
        roots: Collection[str],
        question: str,
        ask: Callable[[], T],
        *,
        worth: Callable[[], bool] = lambda: True,
    ) -> T:
        """The answer that `ask` gives or, if no field in `roots` has changed since, gave. Callers must not change it.

        `worth` is asked after `ask`. It says whether the answer may be remembered.
        """
        key = (table, question)
        with self._lock:
            now = self._number(table, roots)
            known = self._found.get(key)
            if known is not None and known.changes == now:
                self._found.move_to_end(key)
                return cast(T, known.found)
        found = ask()
        with self._lock:
            self._forget(key)
            if worth() and len(question) <= _LONGEST and _rows(found) <= self._most_rows:
                self._found[key] = _Answer(roots, now, found)
                self._rows += _rows(found)
            self._forget_outdated()
            while len(self._found) > _MOST or self._rows > self._most_rows:
                self._forget(next(iter(self._found)))
        return found

    def _number(self, table: str, roots: Collection[str]) -> int:
        counts = self._changes[table]
        return sum([counts.get(root, 0) for root in roots], counts.get(None, 0))

    def _forget_outdated(self) -> None:
        for key, answer in list(self._found.items()):
            if answer.changes != self._number(key[0], answer.roots):
                self._forget(key)

    def _forget(self, key: tuple[str, str]) -> None:
        if key in self._found:
            self._rows -= _rows(self._found.pop(key).found)


def _rows(answer: object) -> int:
    if isinstance(answer, array):  # numbers, each of which takes a small part of a row's memory
        return 1 + len(answer) // _NUMBERS_OF_A_ROW
    return len(answer) if isinstance(answer, list) else 1
