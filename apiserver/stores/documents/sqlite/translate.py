"""Translates filters and sorts to SQL over a collection's table. The SQL finds exactly the documents that match.

SQLite itself tests fields that have a column of their own, short lists, and what side tables hold. For anything else,
SQLite calls Python with the JSON of a document. All values are bound parameters, and so are paths.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeGuard

import orjson

from apiserver.stores.documents import query
from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect import values
from apiserver.stores.documents.dialect.filters import (
    Condition,
    Field,
    FieldTest,
    Not,
    OfFirst,
    accepts,
    fields_of,
    meets,
    passes,
    paths_of,
)
from apiserver.stores.documents.dialect.paths import Path, gathered, shape_of
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.dialect.values import MISSING, class_of
from apiserver.stores.documents.query import AllOf, AnyOf, AsNumber, Comparison, Document, Equal, In, Matches
from apiserver.stores.documents.sqlite.bounds import BOUNDS, SqliteBounds
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.parameters import MOST_CONDITIONS, Parameters
from apiserver.stores.documents.sqlite.planning import cost, flattened, has_key, literals_in, path_inside, texts_of
from apiserver.stores.documents.sqlite.side_tables import INT64, Names, Side, Values, in_one_case, sort_value
from apiserver.stores.documents.sqlite.table import (
    Table,
    apart_column,
    column_of,
    decode_key,
    dumps,
    encode_key,
    sorted_column,
)

_SQL: dict[type[Comparison], str] = {query.Greater: ">", query.AtLeast: ">=", query.Less: "<", query.AtMost: "<="}
#: So many texts may be searched for in the JSON of a list, one by one.
_MOST_SOUGHT = 8
_MOST_TRIGRAMS = 32
_FEW_TO_TEST = 10_000
"""Testing a pattern on so many rows takes less time than finding all rows that may match it."""


class Statement(Parameters):
    """A statement that is being put together: its SQL in parts, its parameters and its Python functions."""

    def __init__(
        self,
        table: Table,
        callbacks: Callbacks,
        connection: sqlite3.Connection,
        sides: Mapping[Side, str] | None = None,
        bounds: SqliteBounds = BOUNDS,
    ) -> None:
        """`sides`: the side tables that the statement may use, with their names."""
        super().__init__(table, callbacks)
        self.connection = connection
        self.sides = sides or {}
        self.bounds = bounds
        self._of_all = False
        self._narrowing: list[str] = []
        """SQL of conditions on indexed fields that hold besides the one that is made SQL."""
        self._not_empty: set[Path] = set()
        """Fields that other conditions of the same statement keep from being empty texts."""

    def found(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a query with the parameters of this statement finds."""
        return self.connection.execute(sql, self.parameters).fetchall()

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The same rows, one after another."""
        return self.connection.execute(sql, self.parameters)

    def another(self) -> Statement:
        """Another statement over the same table, of the same moment."""
        return Statement(self.table, self._callbacks, self.connection, self.sides, self.bounds)

    def where(self, condition: Condition, *, of_all: bool = False) -> str:
        """SQL that is true for exactly the documents that meet the condition. NULL stands for false.

        With `of_all`, it is made for finding all such documents; otherwise, for testing one document after another. The
        result is the same, only the speed differs.
        """
        self._of_all = of_all
        return self._all(AllOf([condition]))

    def _met(self, condition: Condition) -> str:
        if (side := self._side_of(condition)) is not None:
            return self._met_beside(condition, side)
        if isinstance(condition, AllOf):
            return self._all(condition)
        if isinstance(condition, AnyOf):
            return self._any_of(condition)
        if isinstance(condition, Not):
            return f"NOT ifnull({self._met(condition.condition)}, 0)"
        if isinstance(condition, OfFirst):
            return self._met_at_first(condition)
        if has_key(self.table, condition.path):
            sorts = condition.path in self.table.sorted
            met = self._single(column_of(condition.path), condition.test, condition.path if sorts else None)
            return self._with_texts(condition, met)
        return self._of_list(condition) if condition.path[0] in self.table.lists else self._asked(condition)

    def _all(self, condition: AllOf[Condition]) -> str:
        """SQL for several conditions that all must hold.

        Conditions that use the same side table become one, and so do those that Python tests on the same JSON.
        """
        costs = [(cost(self.table, item), isinstance(item, Not), item) for item in flattened(condition)]
        costs.sort(key=itemgetter(0, 1))
        before = self._not_empty, self._narrowing
        self._not_empty = before[0] | {item.path for *_, item in costs if self._keeps_from_empty(item)}
        beside: dict[str, list[Condition]] = {}
        asked: dict[str, list[Condition]] = {}
        terms: list[str] = []
        for spent, _, item in costs:
            if (side := self._side_of(item)) is not None:
                beside.setdefault(side, []).append(item)
            elif (root := self._asked_of(item)) is not None:
                asked.setdefault(root, []).append(item)
            else:
                terms.append(self._met(item))
                if spent == 0:
                    self._narrowing = [*self._narrowing, terms[-1]]
        terms += [self._met_beside(AllOf(items), side) for side, items in beside.items()]
        terms += [self._asked(AllOf(items)) for items in asked.values()]
        self._not_empty, self._narrowing = before
        return _joined(" AND ", terms) or "1"

    def _keeps_from_empty(self, condition: Condition) -> TypeGuard[Field]:
        """Whether a condition keeps a field by which an index sorts from being an empty text."""
        if not isinstance(condition, Field) or condition.path not in self.table.sorted:
            return False
        return isinstance(condition.test, Comparison) and not accepts(condition.test)("")

    def _any_of(self, condition: AnyOf[Condition]) -> str:
        """SQL for several conditions of which one must hold. One pattern at several paths may use a side table."""
        asked: dict[str, list[Condition]] = {}
        ways: list[str] = []
        for item in condition.parts:
            if isinstance(item, Field) and not has_key(self.table, item.path) and item.path[0] not in self.table.apart:
                asked.setdefault("", []).append(item)
            elif (root := self._asked_of(item)) is not None:
                asked.setdefault(root, []).append(item)
            else:
                ways.append(self._met(item))
        met = _joined(" OR ", ways + [self._asked(AnyOf(items)) for items in asked.values()]) or "0"
        return self._with_texts(condition, met)

    def _with_texts(self, condition: Field | AnyOf[Condition], met: str) -> str:
        """SQL `met`, tested only in documents whose side table of texts has all that the pattern must find.

        For example, the pattern "lo.s_a" needs "lo" and "s_a", so it cannot match a document without these.
        """
        texts = texts_of(condition) if self.sides else None
        if texts is None or (side := self.sides.get(texts)) is None:
            return met
        sought = [in_one_case(text) for text in literals_in(condition)]
        there = " AND ".join(f"instr(text, {self.bind(text)})" for text in sought)
        # CASE, because SQLite would look into the side table last, as it takes that for the most work.
        exactly = f"CASE WHEN {self._of_side(side, there)} THEN {met} END"
        if self._of_all and self._few_are_left():
            return exactly
        trigrams = dict.fromkeys(text[at : at + 3] for text in sought for at in range(len(text) - 2))
        quoted = ['"' + trigram.replace('"', '""') + '"' for trigram in list(trigrams)[:_MOST_TRIGRAMS]]
        found = f'"{side}" MATCH {self.bind(" AND ".join(quoted))}' if quoted else there
        # Looking into the texts takes time, but saves reading documents that have the trigrams in another order.
        found = f"{found} AND {there}" if self._of_all else found
        in_columns = all(has_key(self.table, path) for path in texts.paths)
        return self._beside(side, found, exactly, in_columns=in_columns)

    def _few_are_left(self) -> bool:
        """Whether conditions on indexed fields leave so few rows that each can be tested."""
        where = _joined(" AND ", self._narrowing) or "1"
        rows = f'SELECT 1 FROM "{self.table.name}" WHERE {where} LIMIT {_FEW_TO_TEST + 1}'
        ((left,),) = self.found(f"SELECT count(*) FROM ({rows})")
        return bool(left <= _FEW_TO_TEST)

    def _met_beside(self, condition: Condition, side: str) -> str:
        """SQL for a condition on one path whose values a side table holds."""
        met = self._of_value(condition)
        exactly = self._of_side(side, f"CASE WHEN value = x'' THEN {self._asked(condition)} ELSE {met} END")
        return self._beside(side, f"value = x'' OR {met}", exactly)

    def _met_at_first(self, condition: OfFirst) -> str:
        """SQL for a condition on the first number at some paths."""
        asked = self._asked(condition)
        sides = self._sides_of_first(condition.paths)
        return self._of_first(sides, self._single("value", condition.test), asked) if sides else asked

    def _sides_of_first(self, paths: Sequence[Path]) -> list[str]:
        """The side tables of the values at some paths, in order; none unless there are all of them."""
        sides = [self.sides[side] for side in map(Values, paths) if side in self.sides]
        return sides if len(sides) == len(paths) else []

    def _of_first(self, sides: Sequence[str], sql: str, asked: str) -> str:
        """SQL of an expression over `value`, the first number that side tables have for a document; NULL if none has.

        `asked`: the same expression over the document, which decides if a side table has something odd before.
        """
        numbers = [f"beside{place}.value" for place in range(len(sides))]
        first = " ".join(f"WHEN typeof({one}) IN ('integer', 'real') OR {one} = x'' THEN {one}" for one in numbers)
        tables = " CROSS JOIN ".join(f'"{side}" AS beside{place}' for place, side in enumerate(sides))
        rows = " AND ".join(f'beside{place}.rowid = "{self.table.name}".row' for place in range(len(sides)))
        found = f"SELECT CASE {first} END AS value FROM {tables} WHERE {rows}"
        return f"(SELECT CASE WHEN value = x'' THEN {asked} ELSE {sql} END FROM ({found}))"

    def _beside(self, side: str, found: str, exactly: str, *, in_columns: bool = True) -> str:
        """SQL for a condition that is `exactly` this, and that holds only for rows that are `found` in a side table.

        `in_columns`: an index of the table may answer other conditions of the query, so SQLite may use that one first.
        """
        rows = f'SELECT rowid FROM "{side}" WHERE ({found})'
        if (few := self._few(rows)) is not None:
            return f"({few} AND {exactly})"
        place = "+row" if in_columns else "row"
        return f"({place} IN ({rows}) AND {exactly})" if self._of_all else exactly

    def _of_side(self, side: str, sql: str) -> str:
        """SQL of an expression over the row that a side table has for a document."""
        return f'(SELECT {sql} FROM "{side}" AS beside WHERE beside.rowid = "{self.table.name}".row)'

    def _few(self, sql: str) -> str | None:
        """SQL that names, one by one, the rows that some other SQL finds. None if these are many."""
        most = self.bounds.few
        found = self.found(f"{sql} LIMIT {most + 1}")
        if len(found) > most:
            return None
        return f"row IN (SELECT value FROM json_each({self.bind(dumps([row for (row,) in found]))}))"

    def _of_value(self, condition: Condition) -> str:
        """SQL for a condition on one path, over the column `value` of a side table."""
        if isinstance(condition, Field):
            return self._single("value", condition.test)
        if isinstance(condition, Not):
            return f"NOT ifnull({self._of_value(condition.condition)}, 0)"
        assert not isinstance(condition, OfFirst)  # it has several paths
        inner = [self._of_value(item) for item in condition.parts]
        return _joined(" AND ", inner) or "1" if isinstance(condition, AllOf) else _joined(" OR ", inner) or "0"

    def _side_of(self, condition: Condition) -> str | None:
        """The side table of the values that a condition tests, if the condition is on a single path."""
        path = path_inside(self.table, condition) if self.sides else None
        return None if path is None else self.sides.get(Values(path))

    def order_by(self, terms: Iterable[Term]) -> str:
        """The terms of ORDER BY."""
        return ", ".join(f"{self.sort_key(term)} {'DESC' if term.descending else 'NULLS LAST'}" for term in terms)

    def ascending_key(self, terms: Sequence[Term]) -> str | None:
        """SQL of the field that an index sorts by, if the terms are this field and the id, both ascending."""
        match terms:
            case [Term(path, False, False, ()), Term(("id",), False)] if path in self.table.keys:
                return sorted_column(path)
        return None

    def sort_key(self, term: Term) -> str:
        """SQL of the value that SQLite sorts a document by; NULL if it has none."""
        if self.asks(term):
            asked = self._ask(lambda document: sort_value(term, document), term.path[0])
            sides = self._sides_of_first(term.paths) if term.others else []
            return self._of_first(sides, "value", asked) if sides else asked
        return "id" if term.path == ("id",) else sorted_column(term.path)

    def asks(self, term: Term) -> bool:
        """Whether SQLite has to call Python for the value of a term, because no column has it."""
        return not has_key(self.table, term.path) or term.numeric or bool(term.others)

    def grouped(self, path: Path, longest: int | None = None) -> tuple[str, Callable[[Any], Any]]:
        """SQL of the value at a path, and the function that decodes what this SQL gives.

        A missing value is null. If the path leads through a list, the value is the list of all values there.
        `longest`: longer texts may be cut to one character more, as SQLite sorts all values in memory.
        """
        if has_key(self.table, path):
            return column_of(path), decode_key
        if len(path) == 1 and path[0] in self.table.apart:
            return apart_column(path[0]), lambda text: None if text is None else orjson.loads(text)

        def text(document: Document) -> str | None:
            found = gathered(document, path)
            if longest is not None and isinstance(found, str):
                found = found[: longest + 1]
            return None if found is None else dumps(found)

        return self._ask(text, path[0]), lambda text: None if text is None else orjson.loads(text)

    def shapes(self, name: str, where: str) -> str:
        """SQL of one row for each set of names that a field has, two levels deep, with the number of that set."""
        table = f'"{self.table.name}"'
        if (side := self.sides.get(Names(name))) is not None:
            met = f"+rowid IN (SELECT row FROM {table} WHERE {where})"
            return f'SELECT min(rowid) AS first, value AS shape FROM "{side}" WHERE {met} GROUP BY value'
        shape = self._ask(lambda document: shape_of(gathered(document, (name,))), name)
        return f"SELECT min(row) AS first, {shape} AS shape FROM {table} WHERE {where} GROUP BY 2"

    # Single values in columns, encoded by `encode_key`: those of indexed fields and of side tables.

    def _single(self, column: str, test: FieldTest, path: Path | None = None) -> str:
        """SQL for a test of the values in a column. `path`: that of the field, if an index sorts by it."""
        if isinstance(test, Comparison):
            return self._compared(column, test, path)
        if isinstance(test, In):
            return self._single_in(column, test)
        if isinstance(test, AsNumber):
            of_texts = f"typeof({column}) = 'text' AND {self.ask(passes(test), column)}"
            return f"({self._compared(column, test.test, path)} OR ({of_texts}))"
        if isinstance(test, Matches):
            return f"(typeof({column}) = 'text' AND {self.ask(passes(test), column)})"
        return "0"

    def _compared(self, column: str, test: Comparison, path: Path | None) -> str:
        kind = class_of(test.value)
        if isinstance(test, Equal) and kind in _BOUNDS and _fits(test.value):
            return f"{column} = {self.bind(encode_key(test.value))}"
        passed = passes(test)
        if kind == values.NULL:  # "+" keeps SQLite from an index: most documents may be null
            return f"+{column} IS NULL" if passed(None) else "0"
        if kind in (values.OBJECT, values.LIST):
            return "0"
        if not _fits(test.value):
            return self.ask(lambda key: passed(decode_key(key)), column)
        operand = self.bind(encode_key(test.value))
        rising = isinstance(test, query.Greater | query.AtLeast)

        def within(column: str) -> str:
            return f"({column} {_SQL[type(test)]} {operand} AND {column} {_BOUNDS[kind][rising]})"

        if path is None:
            return within(column)
        in_index = within(sorted_column(path))  # this column has NULL for empty texts
        if not passed("") or path in self._not_empty:
            return in_index
        return f"({in_index} OR ({sorted_column(path)} IS NULL AND {column} = ''))"

    def _single_in(self, column: str, test: In) -> str:
        fitting = [item for item in test.values if class_of(item) in _BOUNDS and _fits(item)]
        listed = [item for item in fitting if not _is_lost_in_json(item)]
        bound = [self.bind(encode_key(item)) for item in fitting if _is_lost_in_json(item)]
        ways = [f"{column} IS NULL"] if passes(test)(None) else []
        ways += [f"{column} IN (SELECT value FROM json_each({self.bind(dumps(listed))}))"] if listed else []
        ways += [f"{column} IN ({', '.join(bound)})"] if bound else []
        return f"({' OR '.join(ways)})" if ways else "0"

    # Fields without a column: tested by Python, with their JSON.

    def _of_list(self, field: Field) -> str:
        """SQL for a test of a short list. If it is a list of texts, SQLite looks for texts in its JSON."""
        source, test, asked = apart_column(field.path[0]), field.test, self._asked(field)
        texts = test.values if isinstance(test, In) else [test.value] if isinstance(test, Equal) else []
        if len(field.path) > 1 or not all(isinstance(text, str) for text in texts):
            return asked
        if not 0 < len(texts) <= _MOST_SOUGHT or any("," in text for text in texts):  # "," is between two items
            missing, empty = map(int, map(accepts(test), (MISSING, [])))
            return f"CASE WHEN {source} IS NULL THEN {missing} WHEN {source} = '[]' THEN {empty} ELSE {asked} END"
        there = " OR ".join(f"instr({source}, {self.bind(dumps(text))})" for text in texts)
        found = f"CASE WHEN {_flat(source)} THEN 1 ELSE {asked} END"
        return f"CASE WHEN {source} <> '[]' AND ({there}) THEN {found} ELSE 0 END"

    def _asked_of(self, condition: Condition) -> str | None:
        """The field in whose JSON Python tests the whole condition; "" for `doc`, None if SQLite tests a part of it.

        Several such conditions are tested together, so that the JSON is parsed once.
        """
        roots = {path[0] if path[0] in self.table.large else "" for path in paths_of(condition)}
        in_texts = self.sides and texts_of(condition) in self.sides
        if len(roots) != 1 or in_texts or not all(map(self._only_python_tests, fields_of(condition))):
            return None
        return roots.pop()

    def _only_python_tests(self, field: Field | OfFirst) -> bool:
        if isinstance(field, OfFirst):
            return not self._sides_of_first(field.paths)
        looks_for_text = isinstance(field.test, Equal) and isinstance(field.test.value, str)
        in_column = has_key(self.table, field.path) or field.path[0] in self.table.lists
        return not (looks_for_text or in_column or Values(field.path) in self.sides)

    def _asked(self, condition: Condition) -> str:
        """SQL that calls Python to test a condition on one column of JSON.

        SQLite first looks for the wanted text in the JSON, such as an id in a long list of objects. Python is called
        only if the text is there.
        """
        root, *others = [path[0] for path in paths_of(condition)]
        if len(others) >= MOST_CONDITIONS:
            raise InvalidFilter("the filter has too many conditions")
        asked = self._ask(meets(condition), root)
        test = condition.test if isinstance(condition, Field) else None
        text = test.value if isinstance(test, Equal) else None
        if not isinstance(text, str):
            return asked
        source = apart_column(root) if root in self.table.apart else "doc"
        return f"CASE WHEN instr({source}, {self.bind(dumps(text))}) = 0 THEN 0 ELSE {asked} END"

    def _ask(self, function: Callable[[Document], Any], root: str) -> str:
        """SQL of what a function returns for a document. The function gets the part with the top-level field `root`."""
        if root in self.table.apart:
            column = _as_bytes(apart_column(root))
            return self.ask(lambda text: function({} if text is None else {root: orjson.loads(text)}), column)
        return self.ask(lambda text: function(orjson.loads(text)), _as_bytes("doc"))


def _as_bytes(column: str) -> str:
    """A column of JSON as bytes, because as text it may take four times as much memory in Python."""
    return f"CAST({column} AS BLOB)"


_BOUNDS = {
    values.NUMBER: {True: "< ''", False: "IS NOT NULL"},
    values.TEXT: {True: "< x''", False: ">= ''"},
    values.BOOLEAN: {True: "IS NOT NULL", False: ">= x''"},
}
"""Keeps a comparison within numbers, texts or booleans, because SQLite compares them with one another, too."""


def _flat(sql: str) -> str:
    """SQL that is true if JSON is a list that begins with a text and holds neither objects, lists nor escapes."""
    inside = f"substr({sql}, 2)"
    return f"substr({sql}, 1, 2) = '[\"' AND NOT (instr({sql}, '{{') OR instr({inside}, '[') OR instr({sql}, '\\'))"


def _joined(operator: str, terms: list[str]) -> str:
    """The terms joined as a balanced tree, because SQLite limits how deep an expression may be."""
    if len(terms) <= 8:
        return f"({operator.join(terms)})" if terms else ""
    half = len(terms) // 2
    return f"({_joined(operator, terms[:half])}{operator}{_joined(operator, terms[half:])})"


def _fits(value: Any) -> bool:
    """Whether SQLite can hold the value unchanged: neither NaN nor a whole number beyond 64 bits."""
    return value == value and (not isinstance(value, int) or value in INT64)


def _is_lost_in_json(value: Any) -> bool:
    """Whether SQLite may change the value when it reads it from JSON: it rounds fractions and cuts text at a NUL."""
    return isinstance(value, bool | float) or (isinstance(value, str) and "\x00" in value)
