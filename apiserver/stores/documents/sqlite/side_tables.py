"""Side tables hold what documents have at some paths, one row a document, so that SQLite can sort and search by it.

Users sort lists by metrics, filter them by parameters and search them for words. All of this lies in JSON, and parsing
the JSON of 100,000 tasks takes seconds. So each path that is asked for gets a table, which is of one of four kinds:

- `Sorted`: what documents sort by, in an index in just that order. For a sort by `last_metrics.a.b.value`, descending:

      rowid  value0  id        the index: (value0 DESC, id DESC)
      1      0.5     "t1"
      2      NULL    "t2"      t2 has no such metric, so it comes last

- `Values`: the single value at a path, in an index. `ODD` stands for anything else, such as a list; then the document
  itself is looked at.
- `Names`: a number that stands for the set of names that a field has, such as the names of a task's parameters.
- `Texts`: the texts at some paths, in one case, in a full-text index of trigrams. The index finds the documents in
  which a pattern may match.

A row of a side table has the number of the document's row. `upkeep.py` makes, fills and changes side tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from apiserver.stores.documents.dialect import values
from apiserver.stores.documents.dialect.paths import Path, gathered, reach, shape_of
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.dialect.values import MISSING
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.sqlite.table import encode_key

ODD = b""
"""Stands for a list, an object, null, a long text or several values. A query then looks at the document."""
_LAST = b"\xff"
"""Sorts after every other value."""
_LONGEST = 200
"""Characters of a text that is kept as a single value."""
_SORTED_BY = 1000
"""Characters of a text that documents are sorted by. Texts with the same beginning are sorted by the next term."""
INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Sorted:
    """Documents in the order of some terms, the last of which is the id. Documents without a value come last."""

    terms: tuple[Term, ...]
    kind: ClassVar[str] = "sorted"

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(path for term in self.terms for path in term.paths)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(f"value{place}" for place in range(len(self.terms) - 1)), "id")

    @property
    def order(self) -> str:
        """The terms of ORDER BY."""
        pairs = zip(self.columns, self.terms, strict=True)
        return ", ".join(f"{column} DESC" if term.descending else column for column, term in pairs)

    def definition(self, name: str) -> list[str]:
        return _table(name, self.columns, self.order)

    def of(self, document: Document) -> tuple[Any, ...]:
        found = [(term, sort_value(term, document)) for term in self.terms[:-1]]
        last = (_LAST if value is None and not term.descending else value for term, value in found)
        return (*last, document["id"])


class _OneValue:
    """A side table with one value a document, in an index."""

    __slots__ = ()
    columns: ClassVar[tuple[str, ...]] = ("value",)

    def definition(self, name: str) -> list[str]:
        return _table(name, self.columns, "value")


@dataclass(frozen=True, slots=True)
class Values(_OneValue):
    """The single value at a path, encoded by `encode_key`; NULL if there is none; ODD for anything else."""

    path: Path
    kind: ClassVar[str] = "values"

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def of(self, document: Document) -> tuple[Any, ...]:
        found = list(reach(document, self.path))
        return (_single(found[0]) if len(found) == 1 else ODD,)


@dataclass(frozen=True, slots=True)
class Names(_OneValue):
    """A number for the set of names in a top-level field, two levels deep. Equal sets have the same number."""

    field: str
    kind: ClassVar[str] = "names"

    @property
    def paths(self) -> tuple[Path, ...]:
        return ((self.field,),)

    def of(self, document: Document) -> tuple[Any, ...]:
        return (shape_of(gathered(document, (self.field,))),)


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts at some paths and in lists there, one a line."""

    paths: tuple[Path, ...]
    kind: ClassVar[str] = "texts"
    columns: ClassVar[tuple[str, ...]] = ("text",)

    def definition(self, name: str) -> list[str]:
        options = "tokenize = 'trigram case_sensitive 1', detail = none, columnsize = 0"
        merge = f'INSERT INTO "{name}" ("{name}", rank) VALUES (\'automerge\', 8)'  # with half the work of the default
        return [f'CREATE VIRTUAL TABLE "{name}" USING fts5(text, {options})', merge]

    def of(self, document: Document) -> tuple[Any, ...]:
        found = (text for path in self.paths for value in reach(document, path) for text in _texts(value))
        return (in_one_case("\n".join(found)).replace("\x00", "\x01"),)  # full-text indexes end at a NUL


Side = Sorted | Values | Names | Texts


def text_of(side: Side) -> str:
    """A side table's kind and paths, as JSON."""
    held: Any = side.paths
    if isinstance(side, Sorted):
        held = [[term.path, term.descending, term.numeric] for term in side.terms]
    return orjson.dumps([side.kind, held]).decode()


def parse_side(text: str) -> Side:
    """The side table that `text_of` has made this text of."""
    kind, held = orjson.loads(text)
    if kind == Sorted.kind:
        return Sorted(tuple(Term(tuple(path), descending, numeric) for path, descending, numeric in held))
    paths = tuple(map(tuple, held))
    if kind == Texts.kind:
        return Texts(paths)
    return Values(paths[0]) if kind == Values.kind else Names(paths[0][0])


def roots_of(sides: Iterable[Side]) -> set[str]:
    """The top-level fields that side tables are made of."""
    return {path[0] for side in sides for path in side.paths}


def in_one_case(text: str) -> str:
    """The text without differences of upper and lower case: "Loss" and "LOSS" become "loss"."""
    return text.casefold()


def sort_value(term: Term, document: Document) -> Any:
    """The value that SQLite sorts a document by; None if it has none.

    Booleans and objects become blobs, because SQLite sorts blobs after text, as MongoDB sorts these.
    """
    place = term.key(document)
    if place is None:
        return None
    kind, *value = place
    if kind == values.NUMBER:
        return float(value[0]) if isinstance(value[0], int) and value[0] not in INT64 else value[0]
    return value[0][:_SORTED_BY] if kind == values.TEXT else bytes([kind]) + repr(value).encode()


def _table(name: str, columns: Sequence[str], order: str) -> list[str]:
    return [f'CREATE TABLE "{name}" ({", ".join(columns)})', f'CREATE INDEX "{name}:order" ON "{name}" ({order})']


def _single(value: Any) -> Any:
    if value is MISSING:
        return None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else ODD
    fits = isinstance(value, float) or (isinstance(value, int) and value in INT64)  # a boolean is a whole number, too
    return encode_key(value) if fits else ODD


def _texts(value: Any) -> Iterator[str]:
    yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))
