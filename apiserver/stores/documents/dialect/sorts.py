"""Parses and checks sorts, and defines how documents sort. Engines may make the same order in faster ways."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.paths import Path, parse_all, reach, reach_first
from apiserver.stores.documents.dialect.values import MISSING, NUMBER, number_of, order
from apiserver.stores.documents.query import Document, Sort

EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values that count as missing in a sort."""


@dataclass(frozen=True, slots=True)
class Term:
    """One field of a sort. With `numeric`, texts that are numbers sort as numbers.

    With `others`, documents sort by what is at the first of all paths that leads to a number.
    """

    path: Path
    descending: bool = False
    numeric: bool = False
    others: tuple[Path, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """All paths that the term looks at."""
        return (self.path, *self.others)

    def key(self, document: Document) -> tuple[Any, ...] | None:
        """The sort key of a document, as `place` makes it."""
        return self.place(reach_first(document, self.paths) if self.others else reach(document, self.path))

    def place(self, found: Iterable[Any]) -> tuple[Any, ...] | None:
        """The sort key of a document with these values at the path: that of the least one, or greatest if descending.

        The items of a list are values. None if there is no value, or an empty one among them; such documents come last.
        """
        single = [item for value in found for item in (value if isinstance(value, list) else [value])]
        if not single or any(item is MISSING or item in EMPTY for item in single):
            return None
        return (max if self.descending else min)(map(self._order, single))

    def _order(self, value: Any) -> tuple[Any, ...]:
        if self.numeric and isinstance(value, str) and (number := number_of(value)) is not None:
            return (NUMBER, number)
        return order(value)


def parse_sort(sort: Sort, numeric: Collection[str] = ()) -> list[Term]:
    """The terms of a sort, the last of which is the id; none for an empty sort.

    Below the top-level fields in `numeric`, texts that are numbers sort as numbers. InvalidFilter, which names the
    field, if the sort is not in the language.
    """
    terms: list[Term] = []
    for name, direction in sort:
        path, *others = parse_all(name)
        if direction not in (1, -1):
            raise InvalidFilter(f"field '{name}': the direction of a sort is 1 or -1")
        terms.append(Term(path, direction < 0, path[0] in numeric, tuple(others)))
    ids = [place for place, term in enumerate(terms) if term.paths == (("id",),)]
    if ids:
        return terms[: ids[0] + 1]
    return [*terms, Term(("id",), terms[-1].descending)] if terms else []


def in_order(documents: Iterable[Document], terms: Sequence[Term]) -> list[Document]:
    """The documents sorted."""
    found = list(documents)
    for term in reversed(terms):
        placed = [(term.key(document), document) for document in found]
        there = sorted(
            ((place, document) for place, document in placed if place is not None),
            key=lambda pair: pair[0],
            reverse=term.descending,
        )
        found = [document for _, document in there] + [document for place, document in placed if place is None]
    return found
