"""Reads groups: how many documents have the same values at some paths, and these values.

The caller is told of the memory that groups take while they are read, because a field may have any number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.filters import parse_filter, paths_of
from apiserver.stores.documents.dialect.groups import Group
from apiserver.stores.documents.dialect.paths import parse
from apiserver.stores.documents.query import Counted, Filter
from apiserver.stores.documents.sqlite.table import Table
from apiserver.stores.documents.sqlite.translate import Statement

_LONG_TAKES = 3
"""How often a long value of a group is in memory, as JSON and decoded."""
#: Bytes of a group besides its value.
_GROUP_TAKES = 200
#: Bytes of groups with short values that the caller is told of at a time.
_TOLD_AT_ONCE = 64 * 1024
_LARGE_ANSWER = 256 * 1024
"""Characters of all long values of an answer. An answer with more is not remembered."""


class Groups:
    """The groups of the documents that meet a filter, by their values of some fields. It is asked once."""

    def __init__(
        self,
        table: Table,
        filter: Filter,
        fields: Sequence[str],
        *,
        counted: Counted | None = None,
        longest: int | None = None,
    ) -> None:
        """`counted` is called with the bytes of the groups as they are read.

        `longest`: longer texts may be cut to one character more.
        """
        if not fields:
            raise InvalidFilter("a field to group by is needed")
        self.condition = parse_filter(filter)
        self.question = repr((filter, fields, longest))
        self.table = table
        self._paths = [parse(field) for field in fields]
        self._counted = counted
        self._longest = longest
        self._long_characters = 0
        self._short_bytes = 0

    @property
    def roots(self) -> set[str]:
        """The top-level fields that the groups depend on."""
        return {path[0] for path in [*self._paths, *paths_of(self.condition)]}

    @property
    def are_small(self) -> bool:
        """Whether the groups that were read take so little memory that they may be remembered."""
        return self._long_characters < _LARGE_ANSWER

    def read(self, statement: Statement) -> list[Group]:
        """All groups. The same values may be those of several groups."""
        columns, decoders = zip(*(statement.grouped(path, self._longest) for path in self._paths), strict=True)
        where = statement.where(self.condition, of_all=True)
        long = statement.bounds.long
        sql = self._sql_of_json(columns, where, long) if self._are_json else self._sql(columns, where)
        return [self._group(decoders, long, number, values) for number, *values in statement.rows(sql)]

    @property
    def _are_json(self) -> bool:
        """Whether each value has a column of JSON, as tags have."""
        return all(len(path) == 1 and path[0] in self.table.apart for path in self._paths)

    def _sql(self, columns: Sequence[str], where: str) -> str:
        """SQL of the number of rows with each combination of values, and of these values."""
        # "+" keeps SQLite from taking an index in this order, because a covering index is faster.
        groups = ", ".join(f"+{column}" for column in columns)
        return f'SELECT count(*), {", ".join(columns)} FROM "{self.table.name}" WHERE {where} GROUP BY {groups}'

    def _sql_of_json(self, columns: Sequence[str], where: str, long: int) -> str:
        """The same for columns of JSON. Each row with a value of more than `long` bytes is a group of its own.

        Otherwise SQLite would have the long values of all groups in memory at once.
        """
        name = self.table.name
        groups = ", ".join(
            f"CASE WHEN length(CAST({column} AS BLOB)) > {long} THEN row ELSE {column} END" for column in columns
        )
        places = f'SELECT count(*) AS number, min(row) AS place FROM "{name}" WHERE {where} GROUP BY {groups}'
        return f'SELECT number, {", ".join(columns)} FROM ({places}) CROSS JOIN "{name}" ON row = place'

    def _group(self, decoders: Sequence[Callable[[Any], Any]], long: int, number: int, values: list[Any]) -> Group:
        """The group of a row."""
        self._count([len(value) for value in values if isinstance(value, str)], long)
        return (number, *(decode(value) for decode, value in zip(decoders, values, strict=True)))

    def _count(self, lengths: list[int], long: int) -> None:
        """Count the values of a group, by their characters: long ones at once, short ones some groups at a time."""
        long_characters = sum([length for length in lengths if length > long])
        self._long_characters += long_characters
        if self._counted is None:
            return
        if long_characters:
            self._counted(_LONG_TAKES * long_characters)
        self._short_bytes += _GROUP_TAKES + sum(lengths) - long_characters
        if self._short_bytes > _TOLD_AT_ONCE:
            self._counted(self._short_bytes)
            self._short_bytes = 0
