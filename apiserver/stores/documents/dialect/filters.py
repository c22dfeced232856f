"""Checks filters, and defines what they mean for one document.

A checked filter is a condition: its paths are split into names, and each one has a single test. Engines find documents
by conditions in their own ways. For example, `{"status": "created", "tags": Unequal("old")}` becomes

    AllOf([Field(("status",), Equal("created")), Not(Field(("tags",), Equal("old")))])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from apiserver.stores.documents import query
from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.paths import Path, parse_all, reach, reach_first
from apiserver.stores.documents.dialect.patterns import compile_pattern
from apiserver.stores.documents.dialect.values import class_of, number_of, order, same
from apiserver.stores.documents.query import (
    AllOf,
    AnyOf,
    AsNumber,
    Comparison,
    Equal,
    Filter,
    FirstNumber,
    HasSize,
    In,
    Matches,
    Place,
)

_DEEPEST = 30

FieldTest = Comparison | AsNumber | In | Matches | HasSize
"""The tests that a condition has. The others are said with these."""


@dataclass(frozen=True, slots=True)
class Field:
    """At least one value at the path passes the test."""

    path: Path
    test: FieldTest


@dataclass(frozen=True, slots=True)
class OfFirst:
    """At least one value at the first path that leads to a number passes the test; if no path does, null passes it."""

    paths: tuple[Path, ...]
    test: FieldTest


@dataclass(frozen=True, slots=True)
class Not:
    """The condition is not met."""

    condition: Condition


Condition: TypeAlias = "Field | OfFirst | AllOf[Condition] | AnyOf[Condition] | Not"
Holds = Callable[[Any], bool]


def parse_filter(filter: Filter, depth: int = 0) -> Condition:
    """The condition of a filter; InvalidFilter, which names the field, if a path or a pattern is malformed."""
    if depth > _DEEPEST:
        raise InvalidFilter("the filter is nested too deeply")
    if isinstance(filter, Mapping):
        return _all([_at(place, wanted) for place, wanted in filter.items()])
    parts = [parse_filter(part, depth + 1) for part in filter.parts]
    if isinstance(filter, AllOf):
        return _all(parts)
    return Not(AnyOf(parts)) if isinstance(filter, query.NoneOf) else AnyOf(parts)


def meets(condition: Condition) -> Holds:
    """A function that says whether a value meets the condition."""
    if isinstance(condition, Field):
        path, accepted = condition.path, accepts(condition.test)
        return lambda value: any(map(accepted, reach(value, path)))
    if isinstance(condition, OfFirst):
        paths, accepted = condition.paths, accepts(condition.test)
        return lambda value: any(map(accepted, reach_first(value, paths)))
    if isinstance(condition, Not):
        refused = meets(condition.condition)
        return lambda value: not refused(value)
    parts, combined = [meets(part) for part in condition.parts], all if isinstance(condition, AllOf) else any
    return lambda value: combined(part(value) for part in parts)


def accepts(test: FieldTest) -> Holds:
    """A function that says whether a value, or an item of it, passes."""
    passed = passes(test)
    if isinstance(test, HasSize):
        return passed
    return lambda value: passed(value) or (isinstance(value, list) and any(map(passed, value)))


def passes(test: FieldTest) -> Holds:
    """A function that says whether a value as a whole passes."""
    if isinstance(test, In):
        orders = {order(value) for value in test.values}
        return lambda value: order(value) in orders
    if isinstance(test, Matches):
        search = compile_pattern("", test.pattern, any_case=test.any_case)
        return lambda value: isinstance(value, str) and search(value)
    if isinstance(test, AsNumber):
        met = passes(test.test)
        return lambda value: met(number_of(value) if isinstance(value, str) else value)
    if isinstance(test, HasSize):
        size = test.size
        return lambda value: isinstance(value, list) and len(value) == size
    wanted, compared = order(test.value), _COMPARED[type(test)]
    return lambda value: class_of(value) == wanted[0] and compared(order(value), wanted)


def item_test(name: str, wanted: Any) -> Holds:
    """A test of one item of the list `name`: its value, a test, or a filter on the fields of objects."""
    if isinstance(wanted, query.Test):
        return meets(_tested(name, partial(Field, ()), wanted))
    if not isinstance(wanted, Mapping):
        return lambda item: same(item, wanted)
    met = meets(parse_filter(wanted))
    return lambda item: isinstance(item, dict) and met(item)


def names_one(condition: Condition) -> bool:
    """Whether the condition gives the id, so that only one document can match."""
    return named_id(condition) is not None


def named_id(condition: Condition) -> str | None:
    """The id that the condition gives; None if it gives none."""
    if isinstance(condition, AllOf):
        return next((id for part in condition.parts if (id := named_id(part)) is not None), None)
    if isinstance(condition, Field) and condition.path == ("id",) and isinstance(condition.test, Equal):
        return condition.test.value if isinstance(condition.test.value, str) else None
    return None


def fields_of(condition: Condition) -> Iterator[Field | OfFirst]:
    """The single tests in a condition."""
    if isinstance(condition, Field | OfFirst):
        yield condition
    else:
        for inner in (condition.condition,) if isinstance(condition, Not) else condition.parts:
            yield from fields_of(inner)


def paths_of(condition: Condition) -> Iterator[Path]:
    """The paths of all fields in a condition."""
    for field in fields_of(condition):
        yield from (field.path,) if isinstance(field, Field) else field.paths


def _at(place: Place, wanted: Any) -> Condition:
    paths = parse_all(place)
    if isinstance(place, FirstNumber):
        return _tested(place.paths[0], partial(OfFirst, paths), wanted)
    return _tested(place, partial(Field, paths[0]), wanted)


def _tested(name: str, at: Callable[[FieldTest], Condition], wanted: Any) -> Condition:
    """The condition that what is wanted is there. `at`: makes it of a single test."""
    if not isinstance(wanted, query.Test):
        return at(Equal(wanted))
    if isinstance(wanted, query.Unequal):
        return Not(at(Equal(wanted.value)))
    if isinstance(wanted, query.NotIn):
        return Not(at(In(wanted.values)))
    if isinstance(wanted, query.HasAll):
        return _all([at(Equal(value)) for value in wanted.values]) if wanted.values else AnyOf(())
    if isinstance(wanted, query.Both):
        return AllOf([_tested(name, at, wanted.one), _tested(name, at, wanted.other)])
    if isinstance(wanted, Matches):
        compile_pattern(name, wanted.pattern, any_case=wanted.any_case)
    assert isinstance(wanted, FieldTest)
    return at(wanted)


def _all(conditions: list[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else AllOf(conditions)


_COMPARED: dict[type[Comparison], Callable[[tuple[Any, ...], tuple[Any, ...]], bool]] = {
    Equal: operator.eq,
    query.Less: operator.lt,
    query.AtMost: operator.le,
    query.Greater: operator.gt,
    query.AtLeast: operator.ge,
}
