"""The table of one collection in SQLite. Each document is a row:

| column | holds |
|---|---|
| `id` | the document's id |
| `key.<path>` | the value of an indexed field: a number, a text, a boolean as a blob, NULL for missing and null |
| `apart.<field>` | the JSON of a top-level field that may be large, or of a short list; NULL if it is missing |
| `doc` | the JSON of all other fields |

A query reads and writes a large field only if it names it. A query for an item of a short list need not parse `doc`.
Booleans are blobs because SQLite sorts blobs after text, as MongoDB sorts booleans.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.stores.documents.base import Index, InvalidDocument
from apiserver.stores.documents.dialect.documents import check_name, identity_of, key_of
from apiserver.stores.documents.dialect.paths import Path, parse
from apiserver.stores.documents.query import Document

_ROWS = 1_000_000
_SHARING = {"project": 3_000, **dict.fromkeys(["company", "user", "status", "type", "framework", "ready"], 300_000)}
_OTHERS = 10
"""What SQLite's planner is told: the rows of a table, and how many of them share a value of a field."""

_BOOLEANS = {False: b"\x08\x00", True: b"\x08\x01"}


@dataclass(frozen=True, slots=True)
class Table:
    """The layout of one collection."""

    name: str
    indexes: tuple[Index, ...]
    keys: tuple[Path, ...]
    sorted: frozenset[Path]
    """The fields by which an index orders documents."""
    apart: tuple[str, ...]
    large: tuple[str, ...]
    """The fields in `apart` that may be large."""
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
        """The layout of a collection with these declared indexes, large fields and short lists."""
        check_name(name)
        own = tuple(index for index in indexes if index.collection == name)
        keys = dict.fromkeys(field for index in own for field in index.fields if field != "id")
        ordered = frozenset(parse(index.fields[-1]) for index in own if index.sorts)
        return cls(name, own, tuple(map(parse, keys)), ordered, (*lists, *large), tuple(large), tuple(numeric))

    @property
    def lists(self) -> tuple[str, ...]:
        """The fields in `apart` that are short lists."""
        return tuple(name for name in self.apart if name not in self.large)

    @property
    def columns(self) -> list[str]:
        """All columns except the row number, quoted, in the order of `encode`."""
        large = (name for name in self.apart if name in self.large)
        return ["id", *map(column_of, self.keys), *map(apart_column, self.lists), "doc", *map(apart_column, large)]

    def source(self, path: Path) -> tuple[str, Path]:
        """The column of JSON that a path leads into, and the path inside it."""
        return (apart_column(path[0]), path[1:]) if path[0] in self.apart else ("doc", path)

    def insertion(self, name: str = "") -> str:
        """The statement that adds a row to this table, or to the one with another name but the same columns."""
        columns = self.columns
        return f'INSERT INTO "{name or self.name}" ({", ".join(columns)}) VALUES ({", ".join("?" * len(columns))})'

    def encode(self, document: Document) -> list[Any]:
        """The values of a document's columns; InvalidDocument when it cannot be kept."""
        identity = identity_of(self.name, document)
        names = {path[0] for path in self.keys} | set(self.apart)
        values = {"id": identity, **self.encode_changed(document, names)}
        return [values[column] for column in self.columns]

    def encode_changed(self, document: Document, names: Container[str]) -> dict[str, Any]:
        """The columns to write, with their values, if the top-level fields `names` of a document have changed."""
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
        """The document that a read will find after these columns of it have been written."""
        written = [name for name in self.apart if apart_column(name) in changed]
        rest = {name: document[name] for name in self.apart if name in document and name not in written}
        return {**rest, **decode(changed["doc"], written, [changed[apart_column(name)] for name in written])}


def column_of(path: Path) -> str:
    """The quoted column of an indexed field."""
    return "id" if path == ("id",) else f'"key.{".".join(path)}"'


def sorted_column(path: Path) -> str:
    """SQL of the value by which an index sorts documents: NULL if there is none or if it is an empty text."""
    return f"nullif({column_of(path)}, '')"


def apart_column(name: str) -> str:
    """The quoted column of a top-level field that is not in `doc`."""
    return f'"apart.{name}"'


def encode_key(value: Any) -> Any:
    """A single value as SQLite stores, compares and orders it."""
    if isinstance(value, bool):
        return _BOOLEANS[value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidDocument("a whole number beyond 64 bits")
    return value


def decode_key(key: Any) -> Any:
    """The value that `encode_key` has encoded."""
    return key == _BOOLEANS[True] if isinstance(key, bytes) else key


def dumps(value: Any) -> str:
    """The JSON of a value. InvalidDocument for types that JSON does not have."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise InvalidDocument(f"not a JSON value: {error}") from None


def decode(doc: str | bytes, names: Sequence[str], apart: Sequence[str | bytes | None]) -> Document:
    """The document of a `doc` column and of the `apart` columns of some `names`."""
    document: Document = orjson.loads(doc)
    for name, text in zip(names, apart, strict=True):
        if text is not None:
            document[name] = orjson.loads(text)
    return document


def index_name(table: str, fields: Sequence[str]) -> str:
    """The name of the index of some (dotted) fields."""
    return f"{table}:{','.join(fields)}"


def create(connection: sqlite3.Connection, table: Table) -> None:
    """Make the table and its indexes, or change older ones to the layout that is declared now."""
    present = [row[1] for row in connection.execute(f'PRAGMA table_info("{table.name}")')]
    if not present:
        connection.execute(_definition(table, table.name))
    elif set(present) != {"row", *(column.strip('"') for column in table.columns)}:
        _rewrite(connection, table, [name.removeprefix("apart.") for name in present if name.startswith("apart.")])
    _create_indexes(connection, table)
    _advise(connection, table)


def _definition(table: Table, name: str) -> str:
    """SQL that makes the table. Columns have no type: with one, SQLite would take the number 1 for the text "1"."""
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
    """Make the declared indexes that are missing, and drop those that are no longer declared."""
    known = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
    present = dict(connection.execute(known, (table.name,)).fetchall())
    wanted = {index_name(table.name, index.fields): _index(table, index) for index in table.indexes}
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
    name = index_name(table.name, index.fields)
    return f'CREATE {unique}INDEX "{name}" ON "{table.name}" ({", ".join([*map(column_of, columns), *ends])})'


def _advise(connection: sqlite3.Connection, table: Table) -> None:
    """Tell SQLite's planner how many rows share a value. Otherwise it takes a company, which all rows may share, for as
    good a start as an id. Every file gets the same figures, so that plans never change.
    """
    indexes = {index_name(table.name, index.fields): _sharing(index) for index in table.indexes}
    indexes[f"sqlite_autoindex_{table.name}_1"] = [1]
    advice = {(name, " ".join(map(str, [_ROWS, *sharing]))) for name, sharing in indexes.items()}
    if _known_advice(connection, table) == advice:  # so a start on a full disk need not write
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
    """How many of a million rows share a value of the index's first field, of its first two fields, and so on."""
    rows = [_SHARING.get(field, _OTHERS) for field in index.fields]
    shared = [min(rows[: depth + 1]) for depth in range(len(rows))]
    if index.sorts:
        return [*shared, *[1] * (1 + len(index.covers))]
    return [*shared[:-1], 1] if index.unique else shared
