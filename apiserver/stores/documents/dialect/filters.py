"""Parses and checks filters. The result is a tree of conditions, which can test documents.

The tree defines what a filter means. Engines may find the same documents in faster ways. For example,
`{"status": "created", "tags": {"$ne": "old"}}` becomes

    All(Field(status, Compare $eq "created"), Not(Field(tags, Compare $eq "old")))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect import values
from apiserver.stores.documents.dialect.paths import Path, parse, reach
from apiserver.stores.documents.dialect.patterns import Search, compile_pattern
from apiserver.stores.documents.dialect.values import class_of, order, same

_DEEPEST = 30


class _Test:
    """A test of one value at a path. A list passes if it passes as a whole, or if an item of it does."""

    classes: frozenset[int] = frozenset()
    """The classes of values in which some values pass and others do not."""

    def accepts(self, value: Any) -> bool:
        """Whether the value, or an item of it, passes."""
        return self.passes(value) or (isinstance(value, list) and any(self.passes(item) for item in value))

    def passes(self, value: Any) -> bool:
        """Whether the value as a whole passes."""
        raise NotImplementedError


class Compare(_Test):
    """`$eq $gt $gte $lt $lte`: only values of the operand's class pass."""

    def __init__(self, op: str, operand: Any) -> None:
        self.op = op
        self.operand = operand
        self.classes = frozenset({class_of(operand)})
        self._order = order(operand)
        self._holds = _COMPARISONS[op]

    def passes(self, value: Any) -> bool:
        if class_of(value) != self._order[0]:
            return False
        return self._holds(order(value), self._order)


_COMPARISONS: dict[str, Callable[[tuple[Any, ...], tuple[Any, ...]], bool]] = {
    "$eq": lambda value, operand: value == operand,
    "$gt": lambda value, operand: value > operand,
    "$gte": lambda value, operand: value >= operand,
    "$lt": lambda value, operand: value < operand,
    "$lte": lambda value, operand: value <= operand,
}


class In(_Test):
    """`$in`: values that equal one of the operands."""

    def __init__(self, operands: list[Any]) -> None:
        self.operands = operands
        self.classes = frozenset(class_of(operand) for operand in operands)
        self._orders = {order(operand) for operand in operands}

    def passes(self, value: Any) -> bool:
        return order(value) in self._orders


class Pattern(_Test):
    """`$regex`: texts in which the pattern is found."""

    classes = frozenset({values.TEXT})

    def __init__(self, search: Search, text: str, *, any_case: bool) -> None:
        self._search = search
        self.text = text
        self.any_case = any_case

    def passes(self, value: Any) -> bool:
        return isinstance(value, str) and self._search(value)


class Size(_Test):
    """`$size`: lists with this number of items."""

    classes = frozenset({values.LIST})

    def __init__(self, size: int) -> None:
        self.size = size

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) == self.size

    passes = accepts


Test = Compare | In | Pattern | Size


@dataclass(frozen=True, slots=True)
class Field:
    """At least one value at the path passes the test."""

    path: Path
    test: Test

    def matches(self, value: Any) -> bool:
        return any(self.test.accepts(found) for found in reach(value, self.path))


@dataclass(frozen=True, slots=True)
class All:
    """All conditions are met. Without conditions, this is always so."""

    conditions: tuple[Condition, ...]

    def matches(self, value: Any) -> bool:
        return all(condition.matches(value) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one condition is met. Without conditions, this is never so."""

    conditions: tuple[Condition, ...]

    def matches(self, value: Any) -> bool:
        return any(condition.matches(value) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Not:
    """The condition is not met."""

    condition: Condition

    def matches(self, value: Any) -> bool:
        return not self.condition.matches(value)


Condition = Field | All | AnyOf | Not


def parse_filter(filter: Mapping[str, Any], depth: int = 0) -> Condition:
    """The condition of a filter; InvalidFilter, which names the field, if the filter is not in the language."""
    if not isinstance(filter, Mapping):
        raise InvalidFilter(f"a filter is an object, not {_shown(filter)}")
    if depth > _DEEPEST:
        raise InvalidFilter("the filter is nested too deeply")
    return _all([_clause(name, operand, depth) for name, operand in filter.items()])


def item_test(name: str, wanted: Any) -> Callable[[Any], bool]:
    """A test of one item of the list `name`: its value, operators (`$in: …`), or a filter on the fields of objects."""
    if not isinstance(wanted, Mapping):
        return lambda item: same(item, wanted)
    if _is_operators(wanted):
        return _field(name, (), wanted).matches
    condition = parse_filter(wanted)
    return lambda item: isinstance(item, dict) and condition.matches(item)


def names_one(condition: Condition) -> bool:
    """Whether the condition gives the id, so that only one document can match."""
    if isinstance(condition, All):
        return any(names_one(item) for item in condition.conditions)
    return (
        isinstance(condition, Field)
        and condition.path == ("id",)
        and isinstance(condition.test, Compare)
        and condition.test.op == "$eq"
    )


def paths_of(condition: Condition) -> Iterator[Path]:
    """The paths of all fields in a condition."""
    if isinstance(condition, Field):
        yield condition.path
    else:
        for inner in (condition.condition,) if isinstance(condition, Not) else condition.conditions:
            yield from paths_of(inner)


def _clause(name: str, operand: Any, depth: int) -> Condition:
    if name in ("$and", "$or", "$nor"):
        if not isinstance(operand, list | tuple) or not operand:
            raise InvalidFilter(f"{name} must be a list of filters, not empty")
        conditions = tuple(parse_filter(item, depth + 1) for item in operand)
        if name == "$and":
            return _all(list(conditions))
        return AnyOf(conditions) if name == "$or" else Not(AnyOf(conditions))
    if isinstance(name, str) and name.startswith("$"):
        raise InvalidFilter(f"unknown operator {name[:50]}")
    return _field(name, parse(name), operand)


def _field(name: str, path: Path, operand: Any) -> Condition:
    if not _is_operators(operand):
        return Field(path, Compare("$eq", operand))
    if "$options" in operand and "$regex" not in operand:
        raise InvalidFilter(f"field '{name}': $options needs $regex")
    return _all([_operator(name, path, op, value, operand) for op, value in operand.items() if op != "$options"])


def _operator(name: str, path: Path, op: str, value: Any, operators: Mapping[str, Any]) -> Condition:
    if op in _COMPARISONS:
        return Field(path, Compare(op, value))
    if op == "$ne":
        return Not(Field(path, Compare("$eq", value)))
    if op == "$in":
        return Field(path, In(_list(name, op, value)))
    if op == "$nin":
        return Not(Field(path, In(_list(name, op, value))))
    if op == "$regex":
        options = operators.get("$options", "")
        return Field(path, Pattern(compile_pattern(name, value, options), value, any_case=options == "i"))
    if op == "$all":
        items = _list(name, op, value)
        return _all([Field(path, Compare("$eq", item)) for item in items]) if items else AnyOf(())
    if op == "$size":
        return Field(path, Size(_size(name, value)))
    raise InvalidFilter(f"field '{name}': unknown operator {_shown(op)}")


def _is_operators(operand: Any) -> bool:
    return isinstance(operand, Mapping) and any(isinstance(op, str) and op.startswith("$") for op in operand)


def _all(conditions: list[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else All(tuple(conditions))


def _list(name: str, op: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidFilter(f"field '{name}': {op} must be a list")
    return list(value)


def _size(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidFilter(f"field '{name}': $size must be a whole number, not negative")
    return value


def _shown(value: object) -> str:
    return repr(value)[:50]
