"""Typed conditions on the columns of a table of tasks, as JSON: `[column, test, value, …]`. All of them must hold.

["hyperparams.Args/lr", "<", 0.01]              a number, or a text that is one
["min:loss/train", "<=", 0.5]                   the least value of a curve
["created", ">=", "2026-11-21T08:00:00"]        a time
["name", "contains", "bert"]                    a text in it, whatever its case
["status", "is", "failed", "stopped"]           one of these
["tags", "is not", "old"]                       none of these; of a list: no item of it
["hyperparams.Args/lr", "is", null]             no value at all
"""

from __future__ import annotations

import re
from typing import Any

from apiserver.common.errors import Refusal, validation_error
from apiserver.data.fields import Field, field_of
from apiserver.rpc.errors import ApiError
from apiserver.services.lists.conditions import parse_time
from apiserver.stores.documents import query
from apiserver.stores.documents.query import AnyOf, AsNumber, Comparison, Filter, In, Matches, NoneOf, all_of
from apiserver.tables.table import Kind

MOST = 50
"""Conditions of a request, and how many values each may have."""
_MOST_VALUES, _MOST_TEXTS, _LONGEST = 1000, 10, 1000

_COMPARED: dict[str, type[Comparison]] = {
    "<": query.Less,
    "<=": query.AtMost,
    ">": query.Greater,
    ">=": query.AtLeast,
}
_OTHERS = ("contains", "contains not", "is", "is not")
#: What counts as no value, as in sorts.
_EMPTY: tuple[Any, ...] = ("", [])


def conditions_filter(given: Any) -> Filter:
    """The filter for tasks that meet all of the conditions; 400 if one of them cannot be understood."""
    if not isinstance(given, list) or len(given) > MOST:
        raise validation_error(f"expected a list of up to {MOST} conditions", field="conditions")
    return all_of([_numbered(number, one) for number, one in enumerate(given)])


def _numbered(number: int, given: Any) -> Filter:
    """The filter of a condition; an error names its place in the list."""
    try:
        return _condition(given)
    except (ApiError, Refusal) as error:
        raise validation_error(error.reason.removeprefix("conditions: "), field=f"conditions.{number}") from None


def _condition(given: Any) -> Filter:
    match given:
        case [str(name), str(test), *values] if values and len(values) <= _MOST_VALUES:
            field = field_of(name, "conditions")
        case _:
            raise _wrong("expected [column, test, value, …]")
    if test in _COMPARED:
        return {field.place: _comparison(field, test, values)}
    match test:
        case "contains" | "contains not":
            if len(values) > _MOST_TEXTS:
                raise _wrong(f"'{test}' has up to {_MOST_TEXTS} texts")
            found = AnyOf([{field.place: Matches(re.escape(_text(value)), any_case=True)} for value in values])
            return found if test == "contains" else NoneOf([found])
        case "is" | "is not":
            equal = _one_of(field, values)
            return equal if test == "is" else NoneOf([equal])
    raise _wrong(f"there is no test '{test[:20]}': use {', '.join([*_COMPARED, *_OTHERS])}")


def _comparison(field: Field, test: str, values: list[Any]) -> query.Test:
    value = values[0]
    if len(values) > 1:
        raise _wrong(f"'{test}' compares with one value")
    if field.column.kind is Kind.DATE:
        return _COMPARED[test](parse_time(value, "conditions"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(f"'{test}' compares with a number")
    compared = _COMPARED[test](value)
    return compared if field.column.kind in (Kind.INT, Kind.FLOAT) else AsNumber(compared)


def _one_of(field: Field, values: list[Any]) -> Filter:
    if any(isinstance(value, dict | list) for value in values):
        raise _wrong("expected texts and numbers")
    ways: list[Filter] = [{field.place: In(values)}]
    if None in values:
        ways += [{field.place: empty} for empty in _EMPTY]
    return AnyOf(ways) if len(ways) > 1 else ways[0]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        raise _wrong(f"expected a text of up to {_LONGEST} characters")
    return value


def _wrong(reason: str) -> Refusal:
    return validation_error(reason, field="conditions")
