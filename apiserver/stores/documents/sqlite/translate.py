"""Filters and sorts as SQL over a collection's table, exact: every value is a bound parameter, paths included.

Indexed fields are asked of their key columns, any other is looked up in the JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

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
    paths_of,
)
from apiserver.stores.documents.dialect.paths import Path, gathered, parse, shape_of
from apiserver.stores.documents.dialect.patterns import literals_of
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.dialect.values import MISSING, class_of
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.derived import Derived
from apiserver.stores.documents.sqlite.lookup import Lookup
from apiserver.stores.documents.sqlite.parameters import Parameters
from apiserver.stores.documents.sqlite.table import Table, column_of, decode_key, dumps, encode_key, sorted_column
from apiserver.stores.documents.sqlite.texts import Search

_SQL = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
#: Texts for which the JSON of a list is searched one by one.
_MOST_SOUGHT = 8
_INT64 = range(-(2**63), 2**63)
#: Where some texts can be at some paths of the table's documents, in any case; None when that is not known.
Searching = Callable[[Collection[Path], Collection[str]], Search | None]
#: By row, whether a condition on a path is met, if that is remembered; with SQL of what else is to be met.
Remembering = Callable[["Statement", Condition, Path, str], NDArray[np.bool_] | None]
_FEW_ROWS = 5000
_MOST_PATHS = 4
"""What is remembered for one statement: each path is read of all documents."""
_SAMPLES: dict[str, Any] = {
    "text": "",
    "integer": 0,
    "real": 0.5,
    "true": True,
    "false": False,
    "null": None,
    "object": {},
}


class Statement(Parameters):
    """A statement in the making, and what it asks of documents."""

    def __init__(
        self,
        table: Table,
        callbacks: Callbacks,
        derived: Derived | None = None,
        search: Searching | None = None,
        remembering: Remembering | None = None,
    ) -> None:
        """The last three: what is remembered of rows, for statements that see nothing but what was committed."""
        super().__init__(table, callbacks, derived)
        self._search = search
        self._remembering = remembering
        self._by_memory = False
        """Whether rows are chosen by what is remembered of them."""
        self._not_empty: set[Path] = set()
        """Fields that are not empty texts, as conditions say to which those that are made SQL are added."""

    def where(self, condition: Condition) -> str:
        """SQL that is true just for the documents that meet the condition (NULL stands for false)."""
        return self._all(All((condition,)), remembered=True)

    def still(self, condition: Condition) -> str:
        """SQL for whether documents that `where` found meet the condition: a row may have changed in the meantime."""
        if not self._by_memory:
            return "1"
        search, self._search = self._search, None
        try:
            return self._met(condition)
        finally:
            self._search = search

    def _met(self, condition: Condition) -> str:
        if isinstance(condition, All):
            return self._all(condition)
        if isinstance(condition, AnyOf):
            return self._any_of(condition)
        if isinstance(condition, Not):
            return f"NOT ifnull({self._met(condition.condition)}, 0)"
        if condition.path == ("id",) or condition.path in self.table.keys:
            return self._column(condition)
        return self._json(condition)

    def _all(self, condition: All, *, remembered: bool = False) -> str:
        """SQL for several conditions at once. `remembered`: some may be asked of what is remembered of rows."""
        conditions = sorted(_flattened(condition), key=self._cost)
        before = self._not_empty
        compared = [item for item in conditions if isinstance(item, Field) and isinstance(item.test, Compare)]
        self._not_empty = before | {field.path for field in compared if not field.test.accepts("")}
        terms: list[str] = []
        inside: list[Condition] = []
        rest: list[Condition] = []
        paths: set[Path] = set()
        for item in conditions:
            if not (remembered and self._is_inside(item)):
                terms.append(self._met(item))
            elif len(paths.union(paths_of(item))) <= _MOST_PATHS:
                paths.update(paths_of(item))
                inside.append(item)
            else:
                rest.append(item)
        terms += self._met_inside(inside, _joined(" AND ", terms) or "1")
        terms += map(self._met, rest)
        self._not_empty = before
        return _joined(" AND ", terms) or "1"

    def _met_inside(self, conditions: Sequence[Condition], others: str) -> list[str]:
        """SQL for conditions on what is in fields kept apart, some of which may be remembered.

        `others`: SQL of what is to be met besides. To look into short lists takes less than to ask for each row.
        """
        met = [self._remembering and self._remembering(self, item, next(paths_of(item)), others) for item in conditions]
        known = [rows for rows in met if rows is not None]
        if not known:
            return [self._met(item) for item in conditions]
        length = min(map(len, known))
        all_met = np.logical_and.reduce([rows[:length] for rows in known])
        rows = np.flatnonzero(all_met)
        if len(rows) <= _FEW_ROWS:
            self._by_memory = True
            rest, terms = met, [f"row IN (SELECT value FROM json_each({self.bind(dumps(rows.tolist()))}))"]
        elif any(map(self._is_large, conditions)):
            self._by_memory, by_row = True, all_met.tobytes()
            rest, terms = met, [self.ask(lambda row: row < length and by_row[row], "row")]
        else:
            rest, terms = [None] * len(met), []
        return terms + [self._met(item) for item, rows in zip(conditions, rest, strict=True) if rows is None]

    def _is_inside(self, condition: Condition) -> bool:
        """Whether a condition is on one path inside a large field, or what some list must have."""
        inside = set(paths_of(condition))
        is_list = isinstance(condition, Field) and condition.path[0] in self.table.apart
        return len(inside) == 1 and (is_list or self._is_large(condition))

    def _any_of(self, condition: AnyOf) -> str:
        """SQL for some condition; of one pattern at several paths only in rows that have its texts at any of them."""
        met = _joined(" OR ", [self._met(item) for item in condition.conditions]) or "0"
        fields = [item for item in condition.conditions if isinstance(item, Field)]
        patterns = {field.test.text for field in fields if isinstance(field.test, Pattern)}
        if self._search is None or len(patterns) != 1 or not all(map(_is_pattern, condition.conditions)):
            return met
        texts, _ = literals_of(*patterns)
        search = self._search({field.path for field in fields}, texts) if texts else None
        if search is None:
            return met
        rows = search.few()
        if rows is None:  # what is in columns of its own is looked at as fast
            looked_up = any(field.path != ("id",) and field.path not in self.table.keys for field in fields)
            return f"({self.ask(search.may, 'row')} AND {met})" if looked_up else met
        return f"(row IN (SELECT value FROM json_each({self.bind(dumps(rows))})) AND {met})"

    def _is_large(self, condition: Condition) -> bool:
        """Whether a condition asks for what is in a large field."""
        return any(path[0] in self.table.large for path in paths_of(condition))

    def _cost(self, condition: Condition) -> int:
        """How much it takes to find out whether a condition is met, to begin with those that take the least."""
        if self._is_large(condition):
            return 3
        if isinstance(condition, Field):
            return 2 if isinstance(condition.test, Pattern) else 0 if condition.path in self.table.keys else 1
        inner = (condition.condition,) if isinstance(condition, Not) else condition.conditions
        return max(map(self._cost, inner), default=0)

    def order_by(self, terms: Iterable[Term]) -> str:
        """The terms of ORDER BY."""
        return ", ".join(f"{self.sort_key(term)} {'DESC' if term.descending else 'NULLS LAST'}" for term in terms)

    def ascending_key(self, terms: Sequence[Term]) -> str | None:
        """SQL of what an index sorts by, if the terms are just this, ascending, and the id."""
        match terms:
            case [Term(path, False, False), Term(("id",), False)] if path in self.table.keys:
                return sorted_column(path)
        return None

    def sort_key(self, term: Term) -> str:
        """SQL of what SQLite orders documents by, NULL for those without a value."""
        if term.path == ("id",):
            return "id"
        if self._is_in_column(term):
            return sorted_column(term.path)
        return self.remembered(self._sort_value(term), term, term.path[0])

    def remembers(self, term: Term) -> bool:
        """Whether what documents are ordered by is remembered, as no column has it."""
        return self.remembers_values and not self._is_in_column(term)

    def _is_in_column(self, term: Term) -> bool:
        return term.path == ("id",) or (term.path in self.table.keys and not term.numeric)

    def grouped(self, path: Path) -> tuple[str, Callable[[Any], Any]]:
        """SQL that is the same for documents with the same value at the path, and what makes that value of it.

        Missing is as null; where a list is on the way, the value is the list of all.
        """
        if path == ("id",) or path in self.table.keys:
            return column_of(path), decode_key
        lookup = Lookup(self, path)
        if lookup.whole is not None:
            return lookup.whole, lambda text: None if text is None else orjson.loads(text)
        everywhere = lookup.ask_whole(_gathered)
        listed = lookup.through_lists(everywhere, "NULL")
        sql = f"coalesce({lookup.json}, {listed})" if lookup.known_to_sqlite else everywhere
        return sql, lambda text: None if text is None else orjson.loads(text)[0]

    def shape(self, name: str) -> str:
        """SQL of a number that is the same for documents with the same names, two levels deep, below a field."""
        sql = Lookup(self, parse(name)).ask_whole(lambda value, path: shape_of(gathered(value, path)))
        return self.remembered(sql, ("shape", name), name)

    # Indexed fields: single values, as `encode_key` gives them.

    def _column(self, field: Field) -> str:
        column, test = column_of(field.path), field.test
        if isinstance(test, Compare):
            return self._compare_column(field.path, test)
        if isinstance(test, In):
            return self._in_column(column, test)
        if isinstance(test, Pattern):
            return f"(typeof({column}) = 'text' AND {self._matched(column, test)})"
        if isinstance(test, Exists):
            return f"({column} IS NOT NULL OR {self._json(field)})"
        return "0"

    def _compare_column(self, path: Path, test: Compare) -> str:
        column, kind = column_of(path), class_of(test.operand)
        if kind == values.NULL:  # which most documents may be, so that an index says little
            return f"+{column} IS NULL" if test.passes(None) else "0"
        if kind in (values.OBJECT, values.LIST):
            return "0"
        if not _fits(test.operand):
            return self.ask(lambda key: test.passes(decode_key(key)), column)
        if test.op == "$eq":
            return f"{column} = {self.bind(encode_key(test.operand))}"
        operand = self.bind(encode_key(test.operand))

        def within(column: str) -> str:
            return f"({column} {_SQL[test.op]} {operand} AND {column} {_BOUNDS[kind][test.op[:3]]})"

        if not self.table.sorts_by(path):
            return within(column)
        in_index = within(sorted_column(path))  # which has no empty texts
        if not test.passes("") or path in self._not_empty:
            return in_index
        return f"({in_index} OR ({sorted_column(path)} IS NULL AND {column} = ''))"

    def _matched(self, column: str, test: Pattern) -> str:
        """SQL for whether a column's text matches. Text that must be in it is looked for before Python is asked."""
        asked = self.ask(test.passes, column)
        texts, exact = literals_of(test.text)
        if not test.any_case:
            there = _joined(" AND ", [f"instr({column}, {self.bind(text)}) > 0" for text in texts])
            return there if exact else f"({there} AND {asked})" if there else asked
        texts = tuple(text.lower() for text in texts if text.isascii())  # as SQLite's `lower` knows no others
        if not texts:
            return asked
        there = _joined(" AND ", [f"instr(lower({column}), {self.bind(text)}) > 0" for text in texts])
        found = f"CASE WHEN {there} THEN {1 if exact else asked} ELSE 0 END"
        if not set("".join(texts)) & set("ks"):  # of the letters of ASCII, only these are the same as others beyond it
            return found
        return f"CASE WHEN length({column}) = length(CAST({column} AS BLOB)) THEN {found} ELSE {asked} END"

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
        lookup, test = Lookup(self, field.path), field.test
        everywhere = lookup.ask_all(lambda found: any(test.accepts(value) for value in found))
        if not lookup.known_to_sqlite:
            return everywhere
        cases = {kind: self._single(lookup, test, kind, sample) for kind, sample in _SAMPLES.items()}
        listed = _constant(test, []) if isinstance(test, Exists) else self._listed(lookup, test)
        cases["array"] = f"CASE {lookup.list} WHEN '[]' THEN {_constant(test, [])} ELSE {listed} END"
        branches = " ".join(f"WHEN '{kind}' THEN {then}" for kind, then in cases.items())
        missing = lookup.through_lists(everywhere, _constant(test, MISSING))
        anything = f"CASE {lookup.kind} {branches} ELSE {missing} END"
        if lookup.whole is None:
            return self._unless_absent(lookup, test, anything)
        # Lists of texts, as most are, need not be parsed.
        texts = self._searched(lookup.whole, test)
        known = f"WHEN substr({lookup.whole}, 1, 2) = '[\"' AND {_flat(lookup.whole)} THEN {texts} " if texts else ""
        return f"CASE WHEN {lookup.whole} = '[]' THEN {_constant(test, [])} {known}ELSE {anything} END"

    def _unless_absent(self, lookup: Lookup, test: Test, sql: str) -> str:
        """SQL that need not parse JSON in which the text that is wanted is nowhere: an id in a long list of objects."""
        text = test.operand if isinstance(test, Compare) and test.op == "$eq" else None
        if not isinstance(text, str) or not text or not (text.isascii() and text.isprintable()):
            return sql
        kept = dumps(text).lstrip()  # in the middle of other JSON nothing stands before it
        return f"CASE WHEN instr({lookup.source}, {self.bind(kept)}) = 0 THEN 0 ELSE {sql} END"

    def _listed(self, lookup: Lookup, test: Test) -> str:
        """SQL for a list that is not empty: a text that is an item of it can be found in its JSON."""
        asked, texts = lookup.ask_value(test.accepts), self._searched(lookup.list, test)
        return f"CASE WHEN {_flat(lookup.list)} THEN {texts} ELSE {asked} END" if texts else asked

    def _searched(self, sql: str, test: Test) -> str | None:
        """SQL for whether one of the test's texts is in the JSON of a flat list; None when that says not enough."""
        texts = [test.operand] if isinstance(test, Compare) and test.op == "$eq" else []
        texts = test.operands if isinstance(test, In) else texts
        # What is between two items looks like the text ",".
        if not all(isinstance(text, str) and "," not in text for text in texts) or not 0 < len(texts) <= _MOST_SOUGHT:
            return None
        return f"({' OR '.join(f'instr({sql}, {self.bind(dumps(text))}) > 0' for text in texts)})"

    def _single(self, lookup: Lookup, test: Test, kind: str, sample: Any) -> str:
        """SQL for values of a kind, which are no lists, and of which there is a sample."""
        if kind in ("true", "false", "null") or class_of(sample) not in test.classes:
            return _constant(test, sample)
        asked = lookup.ask_value(test.accepts)
        if kind == "text":
            return lookup.unless_cut(self._decided(lookup, test, sample, asked), asked)
        return self._decided(lookup, test, sample, asked) if kind == "integer" else asked

    def _decided(self, lookup: Lookup, test: Test, sample: Any, asked: str) -> str:
        """SQL for text or a whole number, decided by SQLite if it can."""
        if isinstance(test, Compare) and _fits(test.operand):
            return f"{lookup.value} {_SQL[test.op]} {self.bind(test.operand)}"
        if isinstance(test, In):
            return f"({' OR '.join(self._in_list(lookup.value, test, {class_of(sample)}) or ['0'])})"
        return asked

    def _sort_value(self, term: Term) -> str:
        lookup = Lookup(self, term.path)
        everywhere = lookup.ask_all(lambda found: _place(term, found))
        if not lookup.known_to_sqlite:
            return everywhere
        asked = lookup.ask_value(lambda value: _place(term, [value]))
        text = asked if term.numeric else lookup.unless_cut(f"nullif({lookup.value}, '')", asked)
        return (
            f"CASE {lookup.kind} WHEN 'text' THEN {text} WHEN 'integer' THEN {lookup.value} WHEN 'null' THEN NULL "
            f"ELSE CASE WHEN {lookup.kind} IS NULL THEN {lookup.through_lists(everywhere, 'NULL')} ELSE {asked} END END"
        )


_BOUNDS = {
    values.NUMBER: {"$gt": "< ''", "$lt": "IS NOT NULL"},
    values.TEXT: {"$gt": "< x''", "$lt": ">= ''"},
    values.BOOLEAN: {"$gt": "IS NOT NULL", "$lt": ">= x''"},
}
"""Keeps a comparison within its class, as SQLite orders numbers before text and text before blobs."""


def _flat(sql: str) -> str:
    """SQL for whether the JSON of a list holds single values only, and nothing that is escaped."""
    return f"instr({sql}, '{{') = 0 AND instr(substr({sql}, 2), '[') = 0 AND instr({sql}, '\\') = 0"


def _joined(operator: str, terms: list[str]) -> str:
    """The terms joined in halves, as SQLite takes expressions that are long but none that is deep."""
    if len(terms) <= 8:
        return f"({operator.join(terms)})" if terms else ""
    half = len(terms) // 2
    return f"({_joined(operator, terms[:half])}{operator}{_joined(operator, terms[half:])})"


def _flattened(condition: All) -> Iterator[Condition]:
    for inner in condition.conditions:
        if isinstance(inner, All):
            yield from _flattened(inner)
        else:
            yield inner


def _is_pattern(condition: Condition) -> bool:
    return isinstance(condition, Field) and isinstance(condition.test, Pattern)


def _fits(value: Any) -> bool:
    """Whether SQLite takes the value just as it is."""
    return value == value and (not isinstance(value, int) or value in _INT64)


def _is_lost_in_json(value: Any) -> bool:
    """Whether SQLite may read the value from JSON as another: fractions are rounded, text is cut at a NUL."""
    return isinstance(value, float) or (isinstance(value, str) and "\x00" in value)


def _constant(test: Test, value: Any) -> str:
    return "1" if test.accepts(value) else "0"


def _gathered(value: Any, path: Path) -> str | None:
    """What is at the path, as the JSON list that `Lookup.json` gives."""
    found = gathered(value, path)
    return None if found is None else dumps([found])


def _place(term: Term, found: list[Any]) -> Any:
    """What SQLite orders a document by: booleans and objects as blobs, as they come after text."""
    place = term.place(found)
    if place is None:
        return None
    kind, *value = place
    if kind in (values.NUMBER, values.TEXT):
        return value[0]
    return bytes([kind]) + repr(value).encode()
