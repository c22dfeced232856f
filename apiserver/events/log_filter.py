"""Which log lines a search finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.events.model import LogLine, LogPosition


@dataclass(slots=True, frozen=True)
class LineFilter:
    """The lines that match: with one of the levels, if any are named, one of the workers, and such a message.

    Messages for which `without` is true are left out.
    """

    levels: frozenset[str] = frozenset()
    workers: frozenset[str] = frozenset()
    message: Callable[[str], bool] | None = None
    among: Callable[[str], bool] | None = None
    """True for several messages joined by newlines if one of them matches, and perhaps for others; None: not known.

    For example, a search for "error" need not look at each of 500 messages if their joined text has no "error" in it.
    """
    without: Callable[[str], bool] | None = None
    together: int = 500
    """Messages that are joined."""

    def of(self, lines: list[LogLine]) -> list[LogLine]:
        """The matching lines among these."""
        return [lines[place] for place in self.places(lines)]

    def places(self, lines: list[LogLine]) -> list[int]:
        """Where the matching lines are among these."""
        levels, workers = self.levels, self.workers
        numbers = [
            n
            for n, line in enumerate(lines)
            if (not levels or line.level in levels) and (not workers or line.worker in workers)
        ]
        return self.by_message(numbers, [lines[n].message for n in numbers])

    def by_message(self, places: list[int], messages: Sequence[str]) -> list[int]:
        """Those places whose messages match."""
        matches, among, without = self.message, self.among, self.without
        if matches is None and without is None:
            return places
        matching: list[int] = []
        together = self.together
        for start in range(0, len(places), together):
            part = messages[start : start + together]
            if matches is None or among is None or among("\n".join(part)):
                matching += [
                    place
                    for place, message in zip(places[start:], part, strict=False)
                    if (matches is None or matches(message)) and not (without is not None and without(message))
                ]
        return matching


class LogHits(NamedTuple):
    """What a search found in a part of a log."""

    places: list[int]
    """Where the matching lines are among those that were searched, ascending from 0."""
    searched: int
    last: LogPosition | None
    """The last line that was searched."""
    ended: bool
    """Whether no line lies behind those that were searched."""
