"""Counts events that are not taken, by the reason. A reason is a sentence for the client."""

from __future__ import annotations

from collections import Counter

#: The numbers of so many bad lines are told.
MAX_LINES = 10
#: So many different reasons are told. All others are counted together.
MAX_REASONS = 100
OTHER_REASONS = "Other reasons"


class Reject(Exception):
    """One event cannot be taken. It is malformed, and then `field` may name the wrong field; or it is well formed and
    says something impossible, such as an unknown task.
    """

    def __init__(self, reason: str, *, field: str | None = None, malformed: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field
        self.malformed = malformed


class Contradiction(Exception):
    """Nothing of a body can be taken: its lines contradict each other, or too many are malformed."""


class Rejects:
    """How many events were rejected for which reason."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.field: str | None = None
        """The field of the first malformed event that has one."""
        self.refused = 0
        """How many of them were well formed."""
        self.lines: list[int] = []
        """The numbers of the first bad lines, from 1."""

    def add(self, reject: Reject, count: int = 1, *, line: int | None = None) -> None:
        """Count `count` events that were not taken for this reason."""
        reason = reject.reason if len(self.reasons) < MAX_REASONS or reject.reason in self.reasons else OTHER_REASONS
        self.reasons[reason] += count
        if line is not None and len(self.lines) < MAX_LINES:
            self.lines.append(line)
        if not reject.malformed:
            self.refused += count
        elif self.field is None:
            self.field = reject.field

    @property
    def total(self) -> int:
        """How many events were not taken."""
        return self.reasons.total()

    def __str__(self) -> str:
        return ", ".join(f"{reason}={count}" for reason, count in self.reasons.items())
