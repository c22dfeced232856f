"""The console of a run: pieces of its streams become lines."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.transfer.importing.runs.model import Line

#: Characters of a line.
_LONGEST = 2**20
#: By the number of a stream: stderr is 0.
_LEVELS = {0: "error"}


class Console:
    """Makes whole lines; of a line that overwrites itself, what was left in the end."""

    def __init__(self) -> None:
        self._begun: dict[int, tuple[int, str]] = {}
        """By stream, the time and text of a line that is not complete."""

    def __bool__(self) -> bool:
        """Whether there is a line that is not complete."""
        return bool(self._begun)

    def lines(self, stream: int, timestamp: int, content: str) -> Iterator[Line]:
        """The lines that are complete with this."""
        begun, before = self._begun.pop(stream, (timestamp, ""))
        *whole, rest = (before + content).split("\n")
        for line in whole:
            yield Line(begun, line.rstrip("\r").rpartition("\r")[2], level=_LEVELS.get(stream, ""))
            begun = timestamp
        if rest:
            self._begun[stream] = (begun, rest[-_LONGEST:])

    def rest(self) -> Iterator[Line]:
        """The lines that are not complete, which end here."""
        for timestamp, line in self._begun.values():
            yield Line(timestamp, line)
        self._begun.clear()
