"""The cells of a table that are no points, by kind and place, and the changes that are made on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

#: Most lines with the same problem that are named.
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
    """Counts the broken cells of a table, by kind."""

    kinds: dict[str, Places] = field(default_factory=dict)
    noted: dict[str, Places] = field(default_factory=dict)
    """Things left out or changed on purpose that may come often, by kind: comments, renamed columns."""
    notes: list[str] = field(default_factory=list)
    """Other such things."""
    ended: str = ""
    """Why the rest of the table could not be read."""

    def add(self, kind: str, places: Sequence[str], count: int | None = None) -> None:
        """Count some of a kind; the first places are enough if there is a count."""
        _add(self.kinds, kind, places, len(places) if count is None else count)

    def note(self, kind: str, place: str) -> None:
        """Count something that is left out or changed on purpose."""
        _add(self.noted, kind, [place], 1)

    def reasons(self) -> Iterator[tuple[str, int]]:
        """A text for each kind, and how many it is of: "2 × no metric: line 3, line 7"."""
        for kind, found in self.kinds.items():
            yield f"{found.count:,} × {kind}: {found}", found.count
        if self.ended:
            yield self.ended, 1

    def said(self) -> Iterator[str]:
        """The notes, also those of each kind."""
        yield from self.notes
        for kind, found in self.noted.items():
            yield f"{found.count:,} × {kind}: {found}"


def _add(kinds: dict[str, Places], kind: str, places: Sequence[str], count: int) -> None:
    found = kinds.setdefault(kind, Places())
    found.count += count
    found.first.extend(places[: NAMED - len(found.first)])
