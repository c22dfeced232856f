"""Sorts many documents by few distinct values. The sort key of each distinct value is made only once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver.stores.documents.dialect.paths import Path, reach_first
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.mongo.database import Stored
from apiserver.stores.documents.mongo.pipelines import field


def ids_in_order(found: list[Stored], terms: Sequence[Term]) -> list[str]:
    """The ids of documents, sorted by their values at the terms' paths. The last of the terms is the id."""
    found.sort(key=itemgetter("_id"), reverse=terms[-1].descending)
    ids = [stored["_id"] for stored in found]
    ranks, place = [], 0
    for term in terms[:-1]:
        fields = [(field(place + number),) for number in range(len(term.paths))]
        place += len(fields)
        ranks.append(_ranks((_value(stored, fields) for stored in found), term))
    return [ids[place] for place in np.lexsort(ranks[::-1])]


def _value(stored: Stored, fields: Sequence[Path]) -> Any:
    """What a document sorts by in a term whose paths have given the values of these fields."""
    if len(fields) == 1:
        return stored.get(*fields[0])
    (value,) = reach_first(stored, fields)
    return value


def _ranks(column: Iterable[Any], term: Term) -> npt.NDArray[np.int64]:
    """The rank of each value of a column. Values that are equal in the sort have the same rank."""
    different: dict[Hashable, int] = {}
    values: list[Any] = []
    codes: list[int] = []
    for value in column:
        key = (value.__class__, repr(value) if isinstance(value, list | dict) else value)
        code = different.setdefault(key, len(values))
        if code == len(values):
            values.append(value)
        codes.append(code)
    places = [term.place([value]) for value in values]
    there = sorted({place for place in places if place is not None}, reverse=term.descending)
    rank = {place: number for number, place in enumerate(there)}
    ranks = [len(rank) if place is None else rank[place] for place in places]
    return np.array(ranks, np.int64)[np.array(codes, np.int64)]
