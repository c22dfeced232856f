"""Checks whole queries: the filter, the sort and the fields of a `FindQuery`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from apiserver.stores.documents.dialect.filters import Condition, named_id, parse_filter
from apiserver.stores.documents.dialect.paths import Path, parse
from apiserver.stores.documents.dialect.sorts import Term, parse_sort
from apiserver.stores.documents.query import Counted, FindQuery


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A checked `FindQuery`. `fields` are the paths of its projection; None: whole documents are returned."""

    condition: Condition
    id: str | None = None
    """The id that the condition gives, so that only one document can match."""
    fields: list[Path] | None = None
    terms: tuple[Term, ...] = ()
    """None of them if the condition gives an id, as one document is in order."""
    skip: int = 0
    limit: int | None = None
    counted: Counted | None = None


def parse_query(query: FindQuery, numeric: Collection[str] = ()) -> ParsedQuery:
    """The checked query; InvalidFilter as by `parse_filter` and `parse_sort`, which says what `numeric` is."""
    condition = parse_filter(query.filter)
    id = named_id(condition)
    fields = None if query.projection is None else [parse(path) for path in query.projection]
    terms = tuple(parse_sort(query.sort, numeric)) if id is None else ()
    return ParsedQuery(condition, id, fields, terms, query.skip, query.limit, query.counted)
