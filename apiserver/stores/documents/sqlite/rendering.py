"""Makes SQL of plans. The SQL finds exactly the documents that match. All values are bound parameters, so are paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import orjson

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.filters import Condition, Field, Not, OfFirst, accepts, meets, paths_of
from apiserver.stores.documents.dialect.values import MISSING
from apiserver.stores.documents.query import AllOf, Document, Equal, In
from apiserver.stores.documents.sqlite.columns import sql_of_test
from apiserver.stores.documents.sqlite.parameters import MOST_CONDITIONS, Parameters
from apiserver.stores.documents.sqlite.plans import (
    Every,
    InColumn,
    InJson,
    InList,
    InNumbers,
    InTexts,
    InValues,
    Plan,
    Rows,
    Some,
    Unmet,
    Way,
)
from apiserver.stores.documents.sqlite.table import apart_column, column_of, dumps, sorted_column

#: So many texts may be searched for in the JSON of a list, one by one.
_MOST_SOUGHT = 8
_MOST_TRIGRAMS = 32


class Rendering(Parameters):
    """SQL over the rows of one table, with its parameters and Python functions."""

    def sql(self, plan: Plan) -> str:
        """SQL that is true for exactly the documents that meet the plan. NULL stands for false."""
        if isinstance(plan, InColumn):
            return self._in_column(plan)
        if isinstance(plan, Every):
            return _joined(" AND ", list(map(self.sql, plan.parts))) or "1"
        if isinstance(plan, Some):
            return _joined(" OR ", list(map(self.sql, plan.parts))) or "0"
        if isinstance(plan, Unmet):
            return f"NOT ifnull({self.sql(plan.part)}, 0)"
        if isinstance(plan, InList):
            return self._in_list(plan.field)
        if isinstance(plan, InJson):
            return self._in_json(plan.condition)
        if isinstance(plan, InNumbers):
            test = sql_of_test(self, plan.condition.test, "value")
            return self.of_first_number(plan.sides, test, self._in_json(plan.condition))
        return self._in_values(plan) if isinstance(plan, InValues) else self._in_texts(plan)

    def rows_of_table(self, plan: Plan) -> str:
        """SQL of a row for each document that meets the plan."""
        return f'SELECT 1 FROM "{self.table.name}" WHERE {self.sql(plan)}'

    # --- columns -------------------------------------------------------------------------------------

    def _in_column(self, plan: InColumn) -> str:
        path = plan.field.path
        in_index = sorted_column(path) if path in self.table.sorted else None
        return sql_of_test(self, plan.field.test, column_of(path), in_index, never_empty=plan.never_empty)

    def _in_list(self, field: Field) -> str:
        """SQL for a test of a short list. If it is a list of texts, SQLite looks for texts in its JSON."""
        source, test, asked = apart_column(field.path[0]), field.test, self._in_json(field)
        texts = test.values if isinstance(test, In) else [test.value] if isinstance(test, Equal) else []
        if len(field.path) > 1 or not all(isinstance(text, str) for text in texts):
            return asked
        if not 0 < len(texts) <= _MOST_SOUGHT or any("," in text for text in texts):  # "," is between two items
            missing, empty = map(int, map(accepts(test), (MISSING, [])))
            return f"CASE WHEN {source} IS NULL THEN {missing} WHEN {source} = '[]' THEN {empty} ELSE {asked} END"
        there = " OR ".join(f"instr({source}, {self.bind(dumps(text))})" for text in texts)
        exactly = f"CASE WHEN {_flat(source)} THEN 1 ELSE {asked} END"
        return f"CASE WHEN {source} <> '[]' AND ({there}) THEN {exactly} ELSE 0 END"

    # --- side tables ---------------------------------------------------------------------------------

    def _in_values(self, plan: InValues) -> str:
        value = self._of_value(plan.condition)
        asked = self._in_json(plan.condition)
        exactly = self._of_side(plan.side, f"CASE WHEN value = x'' THEN {asked} ELSE {value} END")
        return self._in_rows(plan.rows, partial(self.rows_in_values, plan), exactly)

    def rows_in_values(self, plan: InValues) -> str:
        """SQL of the numbers of the rows that may meet the condition on a path, as its values say."""
        return f"SELECT rowid FROM \"{plan.side}\" WHERE (value = x'' OR {self._of_value(plan.condition)})"

    def _of_value(self, condition: Condition) -> str:
        """SQL for a condition on one path, over the column `value` of a side table."""
        if isinstance(condition, Field):
            return sql_of_test(self, condition.test, "value")
        if isinstance(condition, Not):
            return f"NOT ifnull({self._of_value(condition.condition)}, 0)"
        assert not isinstance(condition, OfFirst)  # it has several paths
        inner = [self._of_value(item) for item in condition.parts]
        return _joined(" AND ", inner) or "1" if isinstance(condition, AllOf) else _joined(" OR ", inner) or "0"

    def _in_texts(self, plan: InTexts) -> str:
        # CASE, because SQLite would look into the side table last, as it takes that for the most work.
        there = self._of_side(plan.side, self._have_all(plan.sought))
        exactly = f"CASE WHEN {there} THEN {self.sql(plan.part)} END"
        search = partial(self.rows_in_texts, plan, exactly=True)
        return self._in_rows(plan.rows, search, exactly, in_columns=plan.in_columns)

    def rows_in_texts(self, plan: InTexts, *, exactly: bool) -> str:
        """SQL of the numbers of the rows whose texts have the trigrams of all that is sought.

        With `exactly`, they have the sought texts themselves. To look into the texts takes time, but saves reading
        documents that have the trigrams in another order.
        """
        trigrams = dict.fromkeys(text[at : at + 3] for text in plan.sought for at in range(len(text) - 2))
        quoted = ['"' + trigram.replace('"', '""') + '"' for trigram in list(trigrams)[:_MOST_TRIGRAMS]]
        have_all = self._have_all(plan.sought)
        met = f'"{plan.side}" MATCH {self.bind(" AND ".join(quoted))}' if quoted else have_all
        met = f"{met} AND {have_all}" if exactly else met
        return f'SELECT rowid FROM "{plan.side}" WHERE ({met})'

    def _have_all(self, sought: Sequence[str]) -> str:
        """SQL that is true for a row of a side table whose texts have all that is sought."""
        return " AND ".join(f"instr(text, {self.bind(text)})" for text in sought)

    def _in_rows(self, rows: Rows, search: Callable[[], str], exactly: str, *, in_columns: bool = True) -> str:
        """SQL for a condition that is `exactly` this, and that holds only for the rows that `search` finds.

        `in_columns`: an index of the table may answer other conditions of the query, so SQLite may use that one first.
        """
        if rows is Way.TESTED:
            return exactly
        if rows is Way.SEARCHED:
            return f"({'+row' if in_columns else 'row'} IN ({search()}) AND {exactly})"
        return f"(row IN (SELECT value FROM json_each({self.bind(dumps(rows))})) AND {exactly})"

    def _of_side(self, side: str, sql: str) -> str:
        """SQL of an expression over the row that a side table has for a document."""
        return f'(SELECT {sql} FROM "{side}" AS beside WHERE beside.rowid = "{self.table.name}".row)'

    def of_first_number(self, sides: Sequence[str], sql: str, asked: str) -> str:
        """SQL of an expression over `value`, the first number that side tables have for a document; NULL if none has.

        `asked`: the same expression over the document, which decides if a side table has something odd before.
        """
        values = [f"beside{place}.value" for place in range(len(sides))]
        first = " ".join(
            f"WHEN typeof({value}) IN ('integer', 'real') OR {value} = x'' THEN {value}" for value in values
        )
        tables = " CROSS JOIN ".join(f'"{side}" AS beside{place}' for place, side in enumerate(sides))
        rows = " AND ".join(f'beside{place}.rowid = "{self.table.name}".row' for place in range(len(sides)))
        number = f"SELECT CASE {first} END AS value FROM {tables} WHERE {rows}"
        return f"(SELECT CASE WHEN value = x'' THEN {asked} ELSE {sql} END FROM ({number}))"

    # --- Python --------------------------------------------------------------------------------------

    def _in_json(self, condition: Condition) -> str:
        """SQL that calls Python to test a condition on one column of JSON.

        SQLite first looks for the wanted text in the JSON, such as an id in a long list of objects. Python is called
        only if the text is there.
        """
        root, *others = [path[0] for path in paths_of(condition)]
        if len(others) >= MOST_CONDITIONS:
            raise InvalidFilter("the filter has too many conditions")
        asked = self.ask_of(meets(condition), root)
        test = condition.test if isinstance(condition, Field) else None
        text = test.value if isinstance(test, Equal) else None
        if not isinstance(text, str):
            return asked
        source = apart_column(root) if root in self.table.apart else "doc"
        return f"CASE WHEN instr({source}, {self.bind(dumps(text))}) = 0 THEN 0 ELSE {asked} END"

    def ask_of(self, function: Callable[[Document], Any], root: str) -> str:
        """SQL of what a function returns for a document. The function gets the part with the top-level field `root`."""
        if root in self.table.apart:
            column = _as_bytes(apart_column(root))
            return self.ask(lambda text: function({} if text is None else {root: orjson.loads(text)}), column)
        return self.ask(lambda text: function(orjson.loads(text)), _as_bytes("doc"))


def _as_bytes(column: str) -> str:
    """A column of JSON as bytes, because as text it may take four times as much memory in Python."""
    return f"CAST({column} AS BLOB)"


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
