"""Calls of clients, as they were recorded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from threading import Lock
from typing import Any


class Outcome(Enum):
    """What a client knows of its call."""

    DONE = "done"
    REFUSED = "refused"
    """It has changed nothing, for sure."""
    UNKNOWN = "unknown"
    """No answer came, or one that says to try again. The call was done, will still be done, or never will be."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A call. If it changed something, it did so after it began and before it ended."""

    client: str
    """Who called. A client makes one call after another."""
    server: str
    kind: str
    """Such as "write" or "stopped"."""
    on: str
    """The task, or the queue."""
    what: Any
    """What was sent."""
    began: float
    ended: float
    """Infinity if the outcome is not known: the call may still change something later."""
    outcome: Outcome
    answer: Any = None
    """What was read, or why the call was refused."""

    @property
    def is_done(self) -> bool:
        return self.outcome is Outcome.DONE

    def __str__(self) -> str:
        what = "" if self.what is None else f" {self.what}"
        answer = "" if self.answer is None else f": {str(self.answer)[:200]}"
        when = f"{self.began:.4f}–{self.ended:.4f}"
        return f"{when} {self.client} at {self.server}: {self.kind}{what} of {self.on}: {self.outcome.value}{answer}"


@dataclass(slots=True)
class History:
    """All calls, in the order in which they ended. Many threads may add to it."""

    operations: list[Operation] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def add(self, operation: Operation) -> Operation:
        """Record a call that ended now."""
        with self._lock:
            self.operations.append(operation)
        return operation

    def by(self, *kinds: str) -> list[Operation]:
        """The calls of these kinds."""
        return [one for one in self.operations if one.kind in kinds]

    def by_target(self, *kinds: str) -> dict[str, list[Operation]]:
        """The calls of these kinds, by their task or queue."""
        found: dict[str, list[Operation]] = {}
        for one in self.by(*kinds):
            found.setdefault(one.on, []).append(one)
        return found

    def outcomes(self) -> Counter[Outcome]:
        """How many calls had each outcome."""
        return Counter(one.outcome for one in self.operations)
