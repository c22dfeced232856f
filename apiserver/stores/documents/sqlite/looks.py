"""Looks into side tables before a statement runs: how many rows have what a part of its plan needs there?

If they are few, the statement names them one by one. Otherwise SQLite searches them in the side table if it is to find
all documents, or looks each document up there if it tests one after another. The result is the same, only the speed
differs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from apiserver.stores.documents.sqlite.bounds import SqliteBounds
from apiserver.stores.documents.sqlite.plans import Every, InTexts, InValues, Plan, Rows, Some, Unmet, Way
from apiserver.stores.documents.sqlite.rendering import Rendering

_FEW_TO_TEST = 10_000
"""Testing a pattern on so many rows takes less time than finding all rows that may match it."""


class Looks:
    """Looks for one statement, whose parameters they share. `of_all`: it finds all documents that meet its plan."""

    def __init__(
        self, connection: sqlite3.Connection, rendering: Rendering, bounds: SqliteBounds, *, of_all: bool
    ) -> None:
        self._connection = connection
        self._rendering = rendering
        self._few = bounds.few
        self._of_all = of_all

    def noted(self, plan: Plan) -> Plan:
        """The plan with the rows that its parts have in side tables."""
        if isinstance(plan, InValues):
            return plan._replace(rows=self._rows(self._rendering.rows_in_values(plan)))
        if isinstance(plan, InTexts):
            return plan._replace(part=self.noted(plan.part), rows=self._rows_in_texts(plan))
        if isinstance(plan, Every | Some):
            return plan._replace(parts=list(map(self.noted, plan.parts)))
        return Unmet(self.noted(plan.part)) if isinstance(plan, Unmet) else plan

    def _rows_in_texts(self, plan: InTexts) -> Rows:
        if self._of_all and self._are_few(plan.narrowing):
            return Way.TESTED
        return self._rows(self._rendering.rows_in_texts(plan, exactly=self._of_all))

    def _are_few(self, narrowing: Sequence[Plan]) -> bool:
        """Whether parts on columns leave so few rows that each can be tested."""
        rows = self._rendering.rows_of_table(Every(narrowing))
        ((left,),) = self._found(f"SELECT count(*) FROM ({rows} LIMIT {_FEW_TO_TEST + 1})")
        return bool(left <= _FEW_TO_TEST)

    def _rows(self, sql: str) -> Rows:
        """The numbers of the rows that SQL finds, if they are few."""
        rows = self._found(f"{sql} LIMIT {self._few + 1}")
        if len(rows) <= self._few:
            return tuple(row for (row,) in rows)
        return Way.SEARCHED if self._of_all else Way.TESTED

    def _found(self, sql: str) -> list[tuple[int]]:
        return self._connection.execute(sql, self._rendering.parameters).fetchall()
