"""Translates parsed conditions and sorts into MongoDB's. Nothing that was not checked gets to MongoDB.

MongoDB and our language agree in nearly everything. If they may differ, the query finds too much and is not `exact`.
Then the caller tests the condition on each document that was found. That is so for patterns that are more than text, as
MongoDB's regular expressions differ from RE2's and may take forever; for order among lists and objects; for null
inside objects; and for indices of lists. For example:

    {"status": "created"}        {"status": {"$eq": "created"}}, exact
    {"name": Matches("a+b")}     a `name` with "a" and "b" in it, not exact: RE2 tests each document
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from apiserver.stores.documents import query
from apiserver.stores.documents.dialect import values
from apiserver.stores.documents.dialect.filters import Condition, Field, FieldTest, Not, OfFirst, accepts, passes
from apiserver.stores.documents.dialect.paths import Path
from apiserver.stores.documents.dialect.patterns import literals_of
from apiserver.stores.documents.dialect.sorts import EMPTY, Term
from apiserver.stores.documents.dialect.values import MISSING, class_of
from apiserver.stores.documents.mongo.layout import before_index, name_of, outermost
from apiserver.stores.documents.query import AllOf, AnyOf, AsNumber, Comparison, Equal, HasSize, In, Matches

_OPERATORS = {query.Less: "$lt", query.AtMost: "$lte", query.Greater: "$gt", query.AtLeast: "$gte"}
_INT64 = range(-(2**63), 2**63)
_NEVER: dict[str, Any] = {"_id": {"$in": []}}
_TEXT: dict[str, Any] = {"$gte": ""}
_PIECE = re.compile(r"\.|\\[^A-Za-z0-9]|[^\\.+*?()|\[\]{}^$\x00]")
_PLAIN = re.compile(rf"(\^?)((?:{_PIECE.pattern})*)(\$?)", re.DOTALL)


Turn = tuple[Condition, list[tuple[str, int]]]
"""A condition, and MongoDB's sort of the documents that meet it."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query that finds all documents that meet a condition; if it is `exact`, it finds no others."""

    filter: dict[str, Any]
    exact: bool = True


def query_of(condition: Condition) -> Query:
    """The query for a condition."""
    if isinstance(condition, AllOf):
        parts = [query_of(item) for item in condition.parts]
        return Query(_joined("$and", parts), all(part.exact for part in parts)) if parts else Query({})
    if isinstance(condition, AnyOf):
        parts = [query_of(item) for item in condition.parts]
        return Query(_joined("$or", parts), all(part.exact for part in parts)) if parts else Query(_NEVER)
    if isinstance(condition, Not):
        part = query_of(condition.condition)
        return Query({"$nor": [part.filter]}) if part.exact else Query({}, exact=False)
    if isinstance(condition, OfFirst):
        return query_of(_path_by_path(condition))
    return _field(condition.path, condition.test)


def left_of(condition: Condition) -> Condition:
    """The part of a condition that must still be tested on documents that its query found."""
    if isinstance(condition, AllOf):
        return AllOf([left_of(item) for item in condition.parts if not query_of(item).exact])
    return AllOf(()) if query_of(condition).exact else condition


def in_turn(condition: Condition, terms: Sequence[Term]) -> list[Turn] | None:
    """Conditions and sorts that give the documents in order, one query after another; None if MongoDB cannot sort so.

    An ascending sort of MongoDB has documents without a value first. They must come last, so they are found last.
    """
    if not terms:
        return [(condition, [])]
    *fields, last = terms
    by_id = [("_id", -1 if last.descending else 1)]
    if not fields:
        return [(condition, by_id)]
    if len(fields) > 1 or len(fields[0].path) > 1 or fields[0].numeric or fields[0].others:
        return None
    empty = Field(fields[0].path, In(EMPTY))
    by_field = (name_of(fields[0].path), -1 if fields[0].descending else 1)
    return [(AllOf([condition, Not(empty)]), [by_field, *by_id]), (AllOf([condition, empty]), by_id)]


def projection_of(paths: Iterable[Path]) -> dict[str, int]:
    """The projection to the values at the paths, and `_id`. If a path has an index of a list, the whole list."""
    return {"_id": 1, **{name_of(path): 1 for path in outermost(map(before_index, paths)) if path[0] != "id"}}


def _path_by_path(condition: OfFirst) -> Condition:
    """The same, said of single paths: a number at the first one passes, or there is none and the rest holds."""
    rest: Condition = AllOf(()) if accepts(condition.test)(MISSING) else AnyOf(())
    for path in reversed(condition.paths):
        there = Field(path, query.AtLeast(-inf))
        rest = AnyOf([AllOf([there, Field(path, condition.test)]), AllOf([Not(there), rest])])
    return rest


def _field(path: Path, test: FieldTest) -> Query:
    asks_for_null = passes(test)(None)
    holder = before_index(path)
    if holder != path:
        return Query({} if asks_for_null else {name_of(holder): {"$exists": True}}, exact=False)
    if isinstance(test, In):
        query = _in(path, test)
    elif isinstance(test, Matches):
        query = _pattern(name_of(path), test)
    elif isinstance(test, AsNumber):  # MongoDB compares no texts with numbers
        query = Query({name_of(path): {"$exists": True}}, exact=False)
    else:
        operators = _size(test) if isinstance(test, HasSize) else _compare(test)
        if operators is None:
            return Query(_NEVER)
        query = Query({name_of(path): operators.filter}, operators.exact)
    return Query(query.filter, exact=False) if asks_for_null and len(path) > 1 else query


def _joined(operator: str, parts: list[Query]) -> dict[str, Any]:
    filters = [part.filter for part in parts]
    return filters[0] if len(filters) == 1 else {operator: filters}


def _in(path: Path, test: In) -> Query:
    """The query for `In`. MongoDB's `$in` gets only single values, as not all servers take lists and objects there."""
    singles = [operand for operand in test.values if not isinstance(operand, dict | list | tuple)]
    parts = [Query({name_of(path): {"$in": [sent for operand in singles for sent in _equals(operand)]}})]
    others = [operand for operand in test.values if isinstance(operand, dict | list | tuple)]
    parts += [query_of(Field(path, Equal(operand))) for operand in others]
    return Query(_joined("$or", parts), all(part.exact for part in parts))


def _size(test: HasSize) -> Query | None:
    """The operator that tests a field; None if no value passes."""
    return Query({"$size": test.size}) if test.size in _INT64 else None


def _compare(test: Comparison) -> Query | None:
    """The operator that tests a field; None if no value passes."""
    kind = class_of(test.value)
    if isinstance(test, Equal) or kind == values.NULL:
        equal = _equals(test.value) if isinstance(test, Equal | query.AtLeast | query.AtMost) else []
        return Query({"$eq": equal[0]}) if equal else None
    if kind in (values.LIST, values.OBJECT):
        return Query({"$exists": True}, exact=False)
    if _equals(test.value):
        return Query({_OPERATORS[type(test)]: test.value})
    return Query({"$gte": -inf}, exact=False) if test.value == test.value else None


def _equals(operand: Any) -> list[Any]:
    """A list of only the operand; an empty list if no document can have an equal value."""
    inner = operand.values() if isinstance(operand, dict) else operand if isinstance(operand, list | tuple) else ()
    if isinstance(operand, dict) and any(name.startswith("$") for name in operand):
        return []
    is_number = isinstance(operand, int | float)
    kept = (operand == operand and (isinstance(operand, float) or operand in _INT64)) if is_number else True
    return [operand] if kept and all(map(_equals, inner)) else []


def _pattern(name: str, test: Matches) -> Query:
    """The query for a pattern, or for the texts that each of its matches has."""
    plain = _plain(test)
    texts = [part for text in literals_of(test.pattern) for part in (_sure(text) if test.any_case else [text])]
    sent = [_regex(re.escape(text), test) for text in texts] if plain is None else [_regex(plain, test)]
    # Some servers with MongoDB's protocol also match numbers, so only texts are asked for.
    return Query(_joined("$and", [Query({name: asked}) for asked in (_TEXT, *sent)]), exact=plain is not None)


def _sure(text: str) -> list[str]:
    """The parts of a text whose letters have the same upper and lower case on every server."""
    known = [letter if letter.isascii() or letter.lower() == letter == letter.upper() else "\0" for letter in text]
    return [part for part in "".join(known).split("\0") if part]


def _regex(pattern: str, test: Matches) -> dict[str, Any]:
    return {"$regex": pattern, "$options": "i"} if test.any_case else {"$regex": pattern}


def _plain(test: Matches) -> str | None:
    """The pattern for MongoDB, if it is only text and "." between "^" and "$", as that means the same everywhere."""
    match = _PLAIN.fullmatch(test.pattern)
    if match is None or (test.any_case and not test.pattern.isascii()):
        return None
    pieces = (r"[^\n]" if piece == "." else re.escape(piece[-1]) for piece in _PIECE.findall(match[2]))
    return match[1] + "".join(pieces) + (r"\z" if match[3] else "")
