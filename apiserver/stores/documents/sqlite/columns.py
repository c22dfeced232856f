"""SQL for tests of single values in a column: of an indexed field, or of a side table. `encode_key` encodes them."""

from __future__ import annotations

from typing import Any

from apiserver.stores.documents import query
from apiserver.stores.documents.dialect import values
from apiserver.stores.documents.dialect.filters import FieldTest, passes
from apiserver.stores.documents.dialect.values import class_of
from apiserver.stores.documents.query import AsNumber, Comparison, Equal, In, Matches
from apiserver.stores.documents.sqlite.parameters import Parameters
from apiserver.stores.documents.sqlite.side_tables import INT64
from apiserver.stores.documents.sqlite.table import decode_key, dumps, encode_key

_SQL: dict[type[Comparison], str] = {query.Greater: ">", query.AtLeast: ">=", query.Less: "<", query.AtMost: "<="}

_BOUNDS = {
    values.NUMBER: {True: "< ''", False: "IS NOT NULL"},
    values.TEXT: {True: "< x''", False: ">= ''"},
    values.BOOLEAN: {True: "IS NOT NULL", False: ">= x''"},
}
"""Keeps a comparison within numbers, texts or booleans, because SQLite compares them with one another, too."""


def sql_of_test(
    parameters: Parameters, test: FieldTest, column: str, in_index: str | None = None, *, never_empty: bool = False
) -> str:
    """SQL for a test of the values in a column.

    `in_index`: the value by which an index sorts, NULL for empty texts. `never_empty`: other conditions of the same
    statement keep the value from being an empty text.
    """
    if isinstance(test, Comparison):
        return _compared(parameters, test, column, in_index, never_empty)
    if isinstance(test, In):
        return _one_of(parameters, test, column)
    if isinstance(test, AsNumber):
        compared = _compared(parameters, test.test, column, in_index, never_empty)
        return f"({compared} OR ({_asked_of_text(parameters, test, column)}))"
    if isinstance(test, Matches):
        return f"({_asked_of_text(parameters, test, column)})"
    return "0"


def _asked_of_text(parameters: Parameters, test: FieldTest, column: str) -> str:
    """SQL that calls Python to test a text."""
    return f"typeof({column}) = 'text' AND {parameters.ask(passes(test), column)}"


def _compared(parameters: Parameters, test: Comparison, column: str, in_index: str | None, never_empty: bool) -> str:
    kind = class_of(test.value)
    if isinstance(test, Equal) and kind in _BOUNDS and _fits(test.value):
        return f"{column} = {parameters.bind(encode_key(test.value))}"
    passed = passes(test)
    if kind == values.NULL:  # "+" keeps SQLite from an index: most documents may be null
        return f"+{column} IS NULL" if passed(None) else "0"
    if kind in (values.OBJECT, values.LIST):
        return "0"
    if not _fits(test.value):
        return parameters.ask(lambda key: passed(decode_key(key)), column)
    operand = parameters.bind(encode_key(test.value))
    if in_index is None:
        return _within(test, column, operand)
    by_index = _within(test, in_index, operand)
    if not passed("") or never_empty:
        return by_index
    return f"({by_index} OR ({in_index} IS NULL AND {column} = ''))"


def _within(test: Comparison, column: str, operand: str) -> str:
    """SQL for a comparison with an operand, within values of the operand's class."""
    rising = isinstance(test, query.Greater | query.AtLeast)
    return f"({column} {_SQL[type(test)]} {operand} AND {column} {_BOUNDS[class_of(test.value)][rising]})"


def _one_of(parameters: Parameters, test: In, column: str) -> str:
    fitting = [item for item in test.values if class_of(item) in _BOUNDS and _fits(item)]
    listed = [item for item in fitting if not _is_lost_in_json(item)]
    bound = [parameters.bind(encode_key(item)) for item in fitting if _is_lost_in_json(item)]
    ways = [f"{column} IS NULL"] if passes(test)(None) else []
    ways += [f"{column} IN (SELECT value FROM json_each({parameters.bind(dumps(listed))}))"] if listed else []
    ways += [f"{column} IN ({', '.join(bound)})"] if bound else []
    return f"({' OR '.join(ways)})" if ways else "0"


def _fits(value: Any) -> bool:
    """Whether SQLite can hold the value unchanged: neither NaN nor a whole number beyond 64 bits."""
    return value == value and (not isinstance(value, int) or value in INT64)


def _is_lost_in_json(value: Any) -> bool:
    """Whether SQLite may change the value when it reads it from JSON: it rounds fractions and cuts text at a NUL."""
    return isinstance(value, bool | float) or (isinstance(value, str) and "\x00" in value)
