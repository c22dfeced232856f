"""What a table has that is no point, by kind and place, and what was changed on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

#: Of the lines with the same problem, so many are named.
NAMED = 5


@dataclass(slots=True)
class Places:
    """How many things there are of a kind, and the places of the first, such as "line 3"."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return ", ".join(self.first) + (", …" if self.count > len(self.first) else "")


@dataclass(slots=True)
class Broken:
    """Counts what is broken in a table, by kind."""

    kinds: dict[str, Places] = field(default_factory=dict)
    passed_over: dict[str, Places] = field(default_factory=dict)
    """Lines that are no rows, such as comments, by kind."""
    notes: list[str] = field(default_factory=list)
    """What was changed on purpose."""
    ended: str = ""
    """Why the rest of the table could not be read."""

    def add(self, kind: str, places: Sequence[str], count: int | None = None) -> None:
        """Count some of a kind; the first places are enough if there is a count."""
        _add(self.kinds, kind, places, len(places) if count is None else count)

    def pass_over(self, kind: str, place: str) -> None:
        """Count a line that is no row."""
        _add(self.passed_over, kind, [place], 1)

    def reasons(self) -> Iterator[tuple[str, int]]:
        """A text for each kind, and how many it is of: "2 × no metric: line 3, line 7"."""
        for kind, found in self.kinds.items():
            yield f"{found.count:,} × {kind}: {found}", found.count
        if self.ended:
            yield self.ended, 1

    def said(self) -> Iterator[str]:
        """The notes, also of lines that are no rows."""
        yield from self.notes
        for kind, found in self.passed_over.items():
            yield f"{found.count:,} × {kind}: {found}"


def _add(kinds: dict[str, Places], kind: str, places: Sequence[str], count: int) -> None:
    found = kinds.setdefault(kind, Places())
    found.count += count
    found.first.extend(places[: NAMED - len(found.first)])
