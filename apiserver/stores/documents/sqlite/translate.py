"""Filters and sorts as SQL over a collection's table, exact: every value is a bound parameter, paths included.

Indexed fields are asked of their key columns. Any other is looked up in the JSON: SQLite decides for text, whole
numbers, booleans and null, and asks the dialect's own matcher (`ask`, see `Callbacks`) where a value is a list, an
object or a fraction (which SQLite reads from JSON with rounding), or where a list lies on the way to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from apiserver.stores.documents.base import InvalidFilter, Sort
from apiserver.stores.documents.dialect import values
from apiserver.stores.documents.dialect.filters import (
    All,
    AnyOf,
    Compare,
    Condition,
    Exists,
    Field,
    In,
    Not,
    Pattern,
    Test,
)
from apiserver.stores.documents.dialect.paths import Path, parse, reach
from apiserver.stores.documents.dialect.values import MISSING, class_of
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.table import (
    Table,
    apart_column,
    column_of,
    decode_key,
    dumps,
    encode_key,
    has_nul,
)

_SQL = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_INT64 = range(-(2**63), 2**63)
_SAMPLES: dict[str, Any] = {
    "text": "",
    "integer": 0,
    "real": 0.5,
    "true": True,
    "false": False,
    "null": None,
    "object": {},
}


_NOWHERE = '$."$"'
"""A path that no document has: `json_extract` of two paths gives JSON, of one path a bare value."""


class Statement:
    """A statement in the making: its parameters, and the Python functions it asks until `done`."""

    def __init__(self, table: Table, callbacks: Callbacks) -> None:
        self.table = table
        self.parameters: dict[str, Any] = {}
        self._callbacks = callbacks
        self._asked: list[int] = []

    def __enter__(self) -> Statement:
        return self

    def __exit__(self, *_: object) -> None:
        self._callbacks.remove(self._asked)

    def bind(self, value: Any) -> str:
        """The placeholder of a value."""
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"

    def ask(self, function: Callable[[Any], Any], sql: str) -> str:
        """SQL that gives what the function makes of the value of some SQL."""
        number = self._callbacks.add(function)
        self._asked.append(number)
        return f"ask({number}, {sql})"

    def where(self, condition: Condition) -> str:
        """SQL that is true just for the documents that meet the condition (NULL stands for false)."""
        if isinstance(condition, All):
            return self._joined(" AND ", condition.conditions, "1")
        if isinstance(condition, AnyOf):
            return self._joined(" OR ", condition.conditions, "0")
        if isinstance(condition, Not):
            return f"NOT ifnull({self.where(condition.condition)}, 0)"
        if condition.path == ("id",) or condition.path in self.table.keys:
            return self._column(condition)
        return self._json(condition)

    def order_by(self, sort: Sort) -> str:
        """The terms of ORDER BY; ties by id."""
        return ", ".join([*(self._sort_term(path, direction) for path, direction in sort), "id"])

    def grouped(self, path: Path) -> tuple[str, Callable[[Any], Any]]:
        """SQL that is the same for documents with the same value at the path, and what makes that value of it.

        Missing is as null; where a list is on the way, the value is the list of all.
        """
        if path == ("id",) or path in self.table.keys:
            return column_of(path), decode_key
        return self._json_of(path), lambda text: None if text is None else orjson.loads(text)[0]

    def _json_of(self, path: Path) -> str:
        """SQL for a JSON list whose first item is the value that `grouped` means; NULL when there is none."""
        source, below = self._source(path)
        gathered = self.ask(lambda text: _gathered(text, below), source)
        place = _json_path(below)
        if place is None:
            return gathered
        if not below:
            return f"'[' || {source} || ']'"
        extracted = f"json_extract({source}, {self.bind(place)}, {self.bind(_NOWHERE)})"
        listed = self._through_lists(source, below, gathered, "NULL")
        return f"CASE WHEN json_type({source}, {self.bind(place)}) IS NULL THEN {listed} ELSE {extracted} END"

    def _joined(self, operator: str, conditions: tuple[Condition, ...], empty: str) -> str:
        return f"({operator.join(self.where(item) for item in conditions)})" if conditions else empty

    # Indexed fields: single values, as `encode_key` gives them.

    def _column(self, field: Field) -> str:
        column, test = column_of(field.path), field.test
        if isinstance(test, Compare):
            return self._compare_column(column, test)
        if isinstance(test, In):
            return self._in_column(column, test)
        if isinstance(test, Pattern):
            return f"(typeof({column}) = 'text' AND {self.ask(test.passes, column)})"
        if isinstance(test, Exists):
            return f"({column} IS NOT NULL OR {self._json(field)})"
        return "0"

    def _compare_column(self, column: str, test: Compare) -> str:
        kind = class_of(test.operand)
        if kind == values.NULL:
            return f"{column} IS NULL" if test.passes(None) else "0"
        if kind in (values.OBJECT, values.LIST):
            return "0"
        if not _fits(test.operand):
            return self.ask(lambda key: test.passes(decode_key(key)), column)
        compared = f"{column} {_SQL[test.op]} {self.bind(encode_key(test.operand))}"
        if test.op == "$eq":
            return compared
        return f"({compared} AND {column} {_BOUNDS[kind][test.op[:3]]})"

    def _in_column(self, column: str, test: In) -> str:
        ways = [f"{column} IS NULL"] if values.NULL in test.classes else []
        ways += self._in_list(column, test, {values.TEXT, values.NUMBER})
        keys = [self.bind(encode_key(item)) for item in test.operands if isinstance(item, bool)]
        ways += [f"{column} IN ({', '.join(keys)})"] if keys else []
        return f"({' OR '.join(ways)})" if ways else "0"

    def _in_list(self, sql: str, test: In, classes: set[int]) -> list[str]:
        """The ways in which a single value can be among the operands of some classes."""
        items = [item for item in test.operands if class_of(item) in classes and _fits(item)]
        exact = [item for item in items if not _is_lost_in_json(item)]
        ways = [f"{sql} IN (SELECT value FROM json_each({self.bind(dumps(exact))}))"] if exact else []
        others = [self.bind(item) for item in items if _is_lost_in_json(item)]
        return ways + ([f"{sql} IN ({', '.join(others)})"] if others else [])

    # Other fields: looked up in the JSON.

    def _json(self, field: Field) -> str:
        source, below = self._source(field.path)
        path, test = _json_path(below), field.test
        matcher = self.ask(lambda text: _matches(text, below, test), source)
        if path is None:
            return f"CASE WHEN {source} IS NULL THEN {_constant(test, MISSING)} ELSE {matcher} END"
        place = self.bind(path)
        found = f"json_extract({source}, {place})"
        cases = {kind: self._single(test, kind, sample, source, found, matcher) for kind, sample in _SAMPLES.items()}
        listed = self.ask(lambda text: test.accepts(orjson.loads(text)), found)
        cases["array"] = "1" if isinstance(test, Exists) else listed
        missing = _constant(test, MISSING)
        branches = "".join(f" WHEN '{kind}' THEN {then}" for kind, then in cases.items() if then != missing)
        otherwise = self._through_lists(source, below, matcher, missing)
        if otherwise != missing:
            branches = "".join(f" WHEN '{kind}' THEN {then}" for kind, then in cases.items())
        return f"CASE json_type({source}, {place}){branches} ELSE {otherwise} END" if branches else missing

    def _single(self, test: Test, kind: str, sample: Any, source: str, found: str, matcher: str) -> str:
        """SQL for a value that is no list, of which `sample` is an example."""
        if kind in ("true", "false", "null") or class_of(sample) not in test.classes:
            return _constant(test, sample)
        if kind == "text":
            return f"CASE WHEN {has_nul(source)} THEN {matcher} ELSE {self._decided(test, sample, found, matcher)} END"
        return self._decided(test, sample, found, matcher) if kind == "integer" else matcher

    def _decided(self, test: Test, sample: Any, found: str, matcher: str) -> str:
        """SQL for text or a whole number, decided by SQLite if it can."""
        if isinstance(test, Compare) and _fits(test.operand):
            return f"{found} {_SQL[test.op]} {self.bind(test.operand)}"
        if isinstance(test, In):
            return f"({' OR '.join(self._in_list(found, test, {class_of(sample)}) or ['0'])})"
        return self.ask(test.passes, found) if isinstance(test, Pattern) else matcher

    def _through_lists(self, source: str, below: Path, then: str, otherwise: str) -> str:
        """SQL for a value not found: `then` when that is because a list is on the way."""
        parents = [self.bind(_json_path(below[:length])) for length in range(1, len(below))]
        lists = " OR ".join(f"json_type({source}, {parent}) = 'array'" for parent in parents)
        if source != "doc" and below:
            lists = " OR ".join(filter(None, [lists, f"json_type({source}) = 'array'"]))
        return f"CASE WHEN {lists} THEN {then} ELSE {otherwise} END" if lists else otherwise

    def _source(self, path: Path) -> tuple[str, Path]:
        """The column of JSON that a path leads into, and the path inside it."""
        if path[0] in self.table.apart:
            return apart_column(path[0]), path[1:]
        return "doc", path

    def _sort_term(self, name: str, direction: int) -> str:
        path = parse(name)
        if direction not in (1, -1):
            raise InvalidFilter(f"field '{name}': the direction of a sort is 1 or -1")
        descending = " DESC" if direction < 0 else ""
        if path == ("id",) or path in self.table.keys:
            return column_of(path) + descending
        source, below = self._source(path)
        key = self.ask(lambda text: _sort_key(text, below, direction), source)
        where = _json_path(below)
        if where is None:
            return key + descending
        place = self.bind(where)
        found = f"json_extract({source}, {place})"
        cases = f"WHEN 'text' THEN CASE WHEN {has_nul(source)} THEN {key} ELSE {found} END WHEN 'integer' THEN {found}"
        cases += "".join(f" WHEN '{kind}' THEN {key}" for kind in ("real", "true", "false", "array", "object"))
        missing = self._through_lists(source, below, key, "NULL")
        return f"CASE json_type({source}, {place}) {cases} ELSE {missing} END{descending}"


_BOUNDS = {
    values.NUMBER: {"$gt": "< ''", "$lt": "IS NOT NULL"},
    values.TEXT: {"$gt": "< x''", "$lt": ">= ''"},
    values.BOOLEAN: {"$gt": "IS NOT NULL", "$lt": ">= x''"},
}
"""Keeps a comparison within its class, as SQLite orders numbers before text and text before blobs."""


def _fits(value: Any) -> bool:
    """Whether SQLite takes the value just as it is."""
    return value == value and (not isinstance(value, int) or value in _INT64)


def _is_lost_in_json(value: Any) -> bool:
    """Whether SQLite may read the value from JSON as another: fractions are rounded, text is cut at a NUL."""
    return isinstance(value, float) or (isinstance(value, str) and "\x00" in value)


def _constant(test: Test, value: Any) -> str:
    return "1" if test.accepts(value) else "0"


def _json_path(path: Path) -> str | None:
    """The path as SQLite writes it; None for names whose JSON has escapes, which SQLite's paths do not know."""
    if any(character in '"\\' or character < " " for name in path for character in name):
        return None
    return "$" + "".join(f'."{name}"' for name in path)


def _matches(text: str, path: Path, test: Test) -> bool:
    return any(test.accepts(value) for value in reach(orjson.loads(text), path))


def _gathered(text: str | None, path: Path) -> str | None:
    """The values at a path, those of lists one by one, as the list that `json_of` gives."""
    found = [] if text is None else [value for value in reach(orjson.loads(text), path) if value is not MISSING]
    items = [item for value in found for item in (value if isinstance(value, list) else [value])]
    return dumps([items]) if found else None


def _sort_key(text: str | None, path: Path, direction: int) -> Any:
    """What SQLite orders a document by: booleans and objects as blobs, as they come after text."""
    if text is None:
        return None
    rank, *value = values.sort_order(list(reach(orjson.loads(text), path)), direction)
    if rank == values.NULL:
        return None
    if rank in (values.NUMBER, values.TEXT):
        return value[0]
    return bytes([rank]) + repr(value).encode()
