"""Answers about many documents, remembered until a field that they depend on changes in any document.

Which tags and types tasks have is asked with every table that is opened, and nearly never changes; what running tasks
report all the time are other fields. Of collections that stay small, as users and credentials, nothing is remembered.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from typing import TypeVar, cast

T = TypeVar("T")

_MOST = 64
_MOST_ROWS = 200_000
"""Of all answers together: times of tasks are next to all different, and take half a kilobyte a task."""
_LONGEST = 20_000
"""Characters of a question whose answer is remembered: it may name a hundred thousand ids."""


class Answers:
    """Answers by their questions, given to any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: Counter[tuple[str, str | None]] = Counter()
        self._found: OrderedDict[tuple[str, str], tuple[list[int], object]] = OrderedDict()
        self._rows = 0

    def changed(self, table: str, roots: Collection[str] | None) -> None:
        """Documents have changed in these top-level fields (None: they came or went)."""
        with self._lock:
            for root in [None] if roots is None else roots:
                self._changes[table, root] += 1

    def of(
        self,
        table: str,
        roots: Collection[str],
        question: str,
        ask: Callable[[], T],
        *,
        worth: Callable[[], bool] = lambda: True,
    ) -> T:
        """The answer that `ask` gives, or gave when these fields were as they are now. Nobody is to change it.

        `worth`: whether it is to be remembered, asked when it has been given.
        """
        key = (table, question)
        with self._lock:
            now = [self._changes[table, root] for root in [None, *sorted(roots)]]
            then, known = self._found.get(key, (None, None))
            if then == now:
                self._found.move_to_end(key)
                return cast(T, known)
        found = ask()
        with self._lock:
            self._forget(key)
            if worth() and len(question) <= _LONGEST and _rows(found) <= _MOST_ROWS:
                self._found[key] = now, found
                self._rows += _rows(found)
                while len(self._found) > _MOST or self._rows > _MOST_ROWS:
                    self._forget(next(iter(self._found)))
        return found

    def _forget(self, key: tuple[str, str]) -> None:
        if key in self._found:
            self._rows -= _rows(self._found.pop(key)[1])


def _rows(answer: object) -> int:
    return len(answer) if isinstance(answer, list) else 1
