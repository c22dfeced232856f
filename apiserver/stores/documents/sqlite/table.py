"""How one collection lies in SQLite: a row a document.

`doc` is the document's JSON without the fields kept apart, which have a column each (`apart.<field>`, NULL: missing):
those that grow large, so that who does not name them neither reads nor writes them, and the short lists that queries
ask for, so that they need not be looked for in `doc`. `key.<path>` holds an indexed field's value: NULL for
missing and null, numbers and text as they are, booleans as blobs (which SQLite, as MongoDB, orders after text).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.stores.documents.base import Document, Index, InvalidDocument
from apiserver.stores.documents.dialect.documents import check_name, identity_of, key_of
from apiserver.stores.documents.dialect.paths import Path, parse

_ROWS = 1_000_000
_SHARING = {"project": 3_000, **dict.fromkeys(["company", "user", "status", "type", "framework", "ready"], 300_000)}
_OTHERS = 10
"""What the planner is told: of so many rows, how many share a field's value."""

_BOOLEANS = {False: b"\x08\x00", True: b"\x08\x01"}


@dataclass(frozen=True, slots=True)
class Table:
    """The layout of one collection."""

    name: str
    indexes: tuple[Index, ...]
    keys: tuple[Path, ...]
    apart: tuple[str, ...]
    large: tuple[str, ...]
    """Of the fields kept apart, those that may be large."""
    numeric: tuple[str, ...]

    @classmethod
    def of(
        cls,
        name: str,
        indexes: Iterable[Index],
        large: Sequence[str] = (),
        numeric: Sequence[str] = (),
        lists: Sequence[str] = (),
    ) -> Table:
        """The layout that the declared indexes, large fields and short lists give a collection."""
        check_name(name)
        own = tuple(index for index in indexes if index.collection == name)
        keys = dict.fromkeys(field for index in own for field in index.fields if field != "id")
        return cls(name, own, tuple(parse(key) for key in keys), (*lists, *large), tuple(large), tuple(numeric))

    @property
    def lists(self) -> tuple[str, ...]:
        """Of the fields kept apart, the short lists."""
        return tuple(name for name in self.apart if name not in self.large)

    @property
    def columns(self) -> list[str]:
        """Every column that a document fills, quoted, in the order of `encode`."""
        large = (name for name in self.apart if name in self.large)
        return ["id", *map(column_of, self.keys), *map(apart_column, self.lists), "doc", *map(apart_column, large)]

    def sorts_by(self, path: Path) -> bool:
        """Whether an index orders documents by this field."""
        return any(index.sorts and parse(index.fields[-1]) == path for index in self.indexes)

    def source(self, path: Path) -> tuple[str, Path]:
        """The column of JSON that a path leads into, and the path inside it."""
        return (apart_column(path[0]), path[1:]) if path[0] in self.apart else ("doc", path)

    def insertion(self, name: str = "") -> str:
        """The statement that adds a row of all columns to this table, or to one alike."""
        columns = self.columns
        return f'INSERT INTO "{name or self.name}" ({", ".join(columns)}) VALUES ({", ".join("?" * len(columns))})'

    def encode(self, document: Document) -> list[Any]:
        """The values of a document's columns; InvalidDocument when it cannot be kept."""
        identity = identity_of(self.name, document)
        names = {path[0] for path in self.keys} | set(self.apart)
        values = {"id": identity, **self.encode_changed(document, names)}
        return [values[column] for column in self.columns]

    def encode_changed(self, document: Document, names: Container[str]) -> dict[str, Any]:
        """The columns to write, with their values, when some top-level fields of a document changed."""
        changed = [path for path in self.keys if path[0] in names]
        keys = {column_of(path): encode_key(key_of(self.name, document, path)) for path in changed}
        rest = {name: value for name, value in document.items() if name not in self.apart}
        apart = {
            apart_column(name): dumps(document[name]) if name in document else None
            for name in self.apart
            if name in names
        }
        return {**keys, "doc": dumps(rest), **apart}

    def as_stored(self, document: Document, changed: Mapping[str, Any]) -> Document:
        """A document as it is read when these columns of it have been written."""
        written = [name for name in self.apart if apart_column(name) in changed]
        rest = {name: document[name] for name in self.apart if name in document and name not in written}
        return {**rest, **decode(changed["doc"], written, [changed[apart_column(name)] for name in written])}


def column_of(path: Path) -> str:
    """The quoted column of an indexed field."""
    return "id" if path == ("id",) else f'"key.{".".join(path)}"'


def sorted_column(path: Path) -> str:
    """SQL of what documents sort by an indexed field: NULL where there is no value."""
    return f"nullif({column_of(path)}, '')"


def apart_column(name: str) -> str:
    """The quoted column of a field kept apart."""
    return f'"apart.{name}"'


def encode_key(value: Any) -> Any:
    """A single value as SQLite stores, compares and orders it."""
    if isinstance(value, bool):
        return _BOOLEANS[value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidDocument("a whole number beyond 64 bits")
    return value


def decode_key(key: Any) -> Any:
    """The value that `encode_key` was given."""
    return key == _BOOLEANS[True] if isinstance(key, bytes) else key


def dumps(value: Any) -> str:
    """JSON text; InvalidDocument for what JSON has not."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise InvalidDocument(f"not a JSON value: {error}") from None


def decode(doc: str | bytes, names: Sequence[str], apart: Sequence[str | bytes | None]) -> Document:
    """The document of a `doc` column and some columns kept apart."""
    document: Document = orjson.loads(doc)
    for name, text in zip(names, apart, strict=True):
        if text is not None:
            document[name] = orjson.loads(text)
    return document


def create(connection: sqlite3.Connection, table: Table) -> None:
    """Make the table and its indexes, or bring older ones to the layout that is declared now."""
    present = [row[1] for row in connection.execute(f'PRAGMA table_info("{table.name}")')]
    if not present:
        connection.execute(_definition(table, table.name))
    elif set(present) != {"row", *(column.strip('"') for column in table.columns)}:
        _rewrite(connection, table, [name.removeprefix("apart.") for name in present if name.startswith("apart.")])
    _create_indexes(connection, table)
    _advise(connection, table)


def _definition(table: Table, name: str) -> str:
    """Columns have no type, as with one SQLite would take the number 1 for the text "1"."""
    constraints = {"id": "id NOT NULL UNIQUE", "doc": "doc NOT NULL"}
    columns = ", ".join(constraints.get(column, column) for column in table.columns)
    return f'CREATE TABLE "{name}" ("row" INTEGER PRIMARY KEY, {columns})'


def _rewrite(connection: sqlite3.Connection, table: Table, was_apart: list[str]) -> None:
    """Put every document into a table of the new layout."""
    fresh = f"{table.name}.new"
    connection.execute(_definition(table, fresh))
    columns = ", ".join(["doc", *map(apart_column, was_apart)])
    for row, doc, *apart in connection.execute(f'SELECT "row", {columns} FROM "{table.name}" ORDER BY "row"'):
        connection.execute(table.insertion(fresh), table.encode(decode(doc, was_apart, apart)))
        connection.execute(f'UPDATE "{fresh}" SET "row" = ? WHERE "row" = last_insert_rowid()', (row,))
    connection.execute(f'DROP TABLE "{table.name}"')
    connection.execute(f'ALTER TABLE "{fresh}" RENAME TO "{table.name}"')


def _create_indexes(connection: sqlite3.Connection, table: Table) -> None:
    """Make the declared indexes that are not there, and drop those that were declared once."""
    known = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
    present = dict(connection.execute(known, (table.name,)).fetchall())
    wanted = {f"{table.name}:{','.join(index.fields)}": _index(table, index) for index in table.indexes}
    for name, sql in present.items():
        if wanted.get(name) != sql:
            connection.execute(f'DROP INDEX "{name}"')
    for name, sql in wanted.items():
        if present.get(name) != sql:
            connection.execute(sql)


def _index(table: Table, index: Index) -> str:
    *columns, last = [parse(field) for field in index.fields]
    ends = [sorted_column(last), "id"] if index.sorts else [column_of(last)]
    ends += [apart_column(field) if field in table.apart else column_of(parse(field)) for field in index.covers]
    unique = "UNIQUE " if index.unique else ""
    name = f"{table.name}:{','.join(index.fields)}"
    return f'CREATE {unique}INDEX "{name}" ON "{table.name}" ({", ".join([*map(column_of, columns), *ends])})'


def _advise(connection: sqlite3.Connection, table: Table) -> None:
    """Tell the planner how many rows share a value, as it cannot know of a table that grows: else it takes a company,
    which all rows may share, for as good a start as an id. The same for every file, so that plans never change.
    """
    indexes = {f"{table.name}:{','.join(index.fields)}": _sharing(index) for index in table.indexes}
    indexes[f"sqlite_autoindex_{table.name}_1"] = [1]
    advice = {(name, " ".join(map(str, [_ROWS, *sharing]))) for name, sharing in indexes.items()}
    if _known_advice(connection, table) == advice:  # a start with a full disk writes nothing
        return
    connection.execute("ANALYZE sqlite_schema")
    connection.execute("DELETE FROM sqlite_stat1 WHERE tbl = ?", (table.name,))
    connection.executemany(
        "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", [(table.name, *one) for one in sorted(advice)]
    )
    connection.execute("ANALYZE sqlite_schema")


def _known_advice(connection: sqlite3.Connection, table: Table) -> set[tuple[str, str]]:
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'").fetchone() is None:
        return set()
    return set(connection.execute("SELECT idx, stat FROM sqlite_stat1 WHERE tbl = ?", (table.name,)))


def _sharing(index: Index) -> list[int]:
    """Rows, of a million, that share the values of the index's first field, of its first two, and so on."""
    rows = [_SHARING.get(field, _OTHERS) for field in index.fields]
    shared = [min(rows[: depth + 1]) for depth in range(len(rows))]
    if index.sorts:
        return [*shared, *[1] * (1 + len(index.covers))]
    return [*shared[:-1], 1] if index.unique else shared
