"""Looks at the SQLite file of documents, which a server may be using: at one snapshot of it.

Each document is read, and what the file repeats of it is compared with it: the columns of indexed fields, and the rows
of side tables.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from apiserver.common.sizes import counted
from apiserver.stores import sqlite_files
from apiserver.stores.documents.base import DocumentStoreError, InvalidDocument
from apiserver.stores.documents.dialect.documents import is_name
from apiserver.stores.documents.indexes import APART, INDEXES, LISTS, NUMERIC
from apiserver.stores.documents.inspection import DocumentInspection
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.sqlite.side_tables import Side, parse_side
from apiserver.stores.documents.sqlite.table import Table, column_of, decode
from apiserver.stores.inspection import Finding, Held

#: Rows that are read at once.
_AT_ONCE = 200
_PAGES = ("page_size", "page_count", "freelist_count")


class FileInspection(DocumentInspection):
    """A look at the file through a connection that reads."""

    def __init__(self, path: Path, conn: sqlite3.Connection) -> None:
        self._path = path
        self._conn = conn

    async def held(self) -> list[Held]:
        return await asyncio.to_thread(self._held)

    def _held(self) -> list[Held]:
        size, pages, free = (self._conn.execute(f"PRAGMA {name}").fetchone()[0] for name in _PAGES)
        found = [Held(self._path.name, size * pages), Held("of it free", size * free)]
        for name in self._collections():
            columns = " + ".join(
                f'coalesce(length("{column}"), 0)' for column in self._columns(name) if column != "row"
            )
            query = f'SELECT count(*), coalesce(sum({columns}), 0) FROM "{name}"'
            number, bytes = self._conn.execute(query).fetchone()
            if number:
                found.append(Held(name, bytes, number, "documents"))
        return found

    def _collections(self) -> list[str]:
        tables = self._conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        return [name for (name,) in tables if is_name(name) and not name.startswith("sqlite_")]

    def _columns(self, collection: str) -> list[str]:
        return [row[1] for row in self._conn.execute(f'PRAGMA table_info("{collection}")')]

    async def each(self, collection: str, fields: Sequence[str]) -> AsyncIterator[list[Document]]:
        wanted = ("id", *fields)
        async for rows in self._rows(collection):
            yield [
                {name: document[name] for name in wanted if name in document}
                for _, document, _ in rows
                if document is not None
            ]

    async def texts(self, collection: str) -> AsyncIterator[list[bytes]]:
        names = ["doc", *(name for name in self._columns(collection) if name.startswith("apart."))]
        columns = ", ".join(f'CAST("{name}" AS BLOB)' for name in names)
        cursor = self._conn.execute(f'SELECT {columns} FROM "{collection}"')
        while rows := await asyncio.to_thread(cursor.fetchmany, _AT_ONCE):
            yield [text for row in rows for text in row if text is not None]

    async def _rows(self, collection: str) -> AsyncIterator[list[tuple[int, Document | None, dict[str, Any]]]]:
        if collection in self._collections():
            found = self._some_rows(collection)
            while rows := await asyncio.to_thread(next, found, None):
                yield rows

    def _some_rows(self, collection: str) -> Iterator[list[tuple[int, Document | None, dict[str, Any]]]]:
        """Row number, document (None: it cannot be read) and columns of each row."""
        columns = self._columns(collection)
        apart = [name for name in columns if name.startswith("apart.")]
        quoted = ", ".join(
            f'CAST("{name}" AS BLOB)' if name == "doc" or name in apart else f'"{name}"' for name in columns
        )
        cursor = self._conn.execute(f'SELECT {quoted} FROM "{collection}"')
        names = [name.removeprefix("apart.") for name in apart]
        while rows := cursor.fetchmany(_AT_ONCE):
            decoded = []
            for row in rows:
                values = dict(zip(columns, row, strict=True))
                decoded.append((values["row"], _document(values, names), values))
            yield decoded

    async def findings(self) -> AsyncIterator[Finding]:
        """Damage of the file, then of documents, then of what repeats them."""
        found = self._findings()
        while (finding := await asyncio.to_thread(next, found, None)) is not None:
            yield finding

    async def repair(self, findings: Collection[Finding], kept: Path) -> list[str]:
        """Mend what the file repeats of its documents; DocumentStoreError if that fails: the file is as it was."""
        wrong = [one for one in findings if one.kind in ("wrong-key", "wrong-side-table", "damaged-index")]
        try:
            return await asyncio.to_thread(self._mend, wrong) if wrong else []
        except sqlite_files.ERRORS as error:
            raise DocumentStoreError(f"{self._path} cannot be repaired: {error}") from error

    def _mend(self, findings: Collection[Finding]) -> list[str]:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as conn:
            conn.execute("BEGIN IMMEDIATE")
            for finding in findings:
                if finding.kind == "damaged-index":
                    conn.execute("REINDEX")
                elif finding.kind == "wrong-side-table":
                    conn.execute(f'DROP TABLE "{finding.place}"')
                    number = finding.place.partition(":")[2]
                    conn.execute('DELETE FROM "side:tables" WHERE number = ?', (int(number),))
                else:
                    _write_keys(conn, *finding.place.split("/", 1))
            conn.execute("COMMIT")
        return [f"{finding.thing}: mended" for finding in findings]

    def _findings(self) -> Iterator[Finding]:
        problems = sqlite_files.problems_of(self._conn)
        if problems:
            yield sqlite_files.finding_of("documents", self._path.name, problems)
        try:
            for name in self._collections():
                yield from self._of_collection(name)
        except sqlite_files.ERRORS as error:
            yield sqlite_files.unreadable("documents", self._path.name, "documents", error)

    def _of_collection(self, name: str) -> Iterator[Finding]:
        table = _table(name)
        is_current = {"row", *(column.strip('"') for column in table.columns)} == set(self._columns(name))
        sides = self._sides(name)
        wrong = dict.fromkeys(sides, 0)
        for rows in self._some_rows(name):
            for row, document, values in rows:
                if document is None or document.get("id") != values["id"]:
                    yield Finding(
                        *("documents", "damaged-document", f"{name}/{values['id']}"),
                        f"the document {values['id']} of {name} is damaged",
                        "calls that read it fail",
                    )
                    continue
                if is_current and not _agrees(table, document, values):
                    yield Finding(
                        *("documents", "wrong-key", f"{name}/{values['id']}"),
                        f"the indexed fields of the document {values['id']} of {name} are not those of the document",
                        "lists and searches may leave it out",
                        "they are written anew from the document, and nothing is lost",
                    )
                for side, (held, columns) in sides.items():
                    kept = self._conn.execute(f'SELECT {columns} FROM "{side}" WHERE rowid = ?', (row,)).fetchone()
                    wrong[side] += kept != held.of(document)
        for side in sides:
            (more,) = self._conn.execute(
                f'SELECT count(*) FROM "{side}" WHERE rowid NOT IN (SELECT row FROM "{name}")'
            ).fetchone()
            wrong[side] += more
        for side, number in wrong.items():
            if number:
                thing = f"the table {side} of {name} is wrong in {counted(number, 'rows')}"
                yield Finding(
                    *("documents", "wrong-side-table", side, thing),
                    "lists that are sorted or searched by it may be wrong",
                    "it is dropped, and made again when it is needed; nothing is lost",
                )

    def _sides(self, collection: str) -> dict[str, tuple[Side, str]]:
        """The side tables that are filled, and their columns."""
        query = "SELECT number, holds FROM \"side:tables\" WHERE collection = ? AND state = 'ready'"
        sides = {f"side:{number}": parse_side(holds) for number, holds in self._conn.execute(query, (collection,))}
        return {name: (side, ", ".join(side.columns)) for name, side in sides.items()}


def _table(name: str) -> Table:
    return Table.of(name, INDEXES, APART.get(name, ()), NUMERIC.get(name, ()), LISTS.get(name, ()))


def _write_keys(conn: sqlite3.Connection, collection: str, id: str) -> None:
    """Write the indexed fields of a document anew from the document."""
    table = _table(collection)
    columns = ", ".join(["doc", *(f'"apart.{name}"' for name in table.apart)])
    doc, *apart = conn.execute(f'SELECT {columns} FROM "{collection}" WHERE id = ?', (id,)).fetchone()
    encoded = dict(zip(table.columns, table.encode(decode(doc, table.apart, apart)), strict=True))
    keys = [column_of(path) for path in table.keys]
    changes = ", ".join(f"{key} = ?" for key in keys)
    conn.execute(f'UPDATE "{collection}" SET {changes} WHERE id = ?', (*(encoded[key] for key in keys), id))


def _document(values: dict[str, Any], apart: Sequence[str]) -> Document | None:
    try:
        found = decode(values["doc"], apart, [values[f"apart.{name}"] for name in apart])
    except (ValueError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _agrees(table: Table, document: Document, values: dict[str, Any]) -> bool:
    """Whether the columns of indexed fields are those of the document."""
    try:
        encoded = dict(zip(table.columns, table.encode(document), strict=True))
    except InvalidDocument:
        return False
    return all(encoded[column] == values[column.strip('"')] for column in ("id", *map(column_of, table.keys)))


@asynccontextmanager
async def looking_at(path: Path) -> AsyncIterator[FileInspection]:
    """A look at a file while the block is open; DocumentStoreError: it cannot be looked at."""
    try:
        with sqlite_files.opened_to_read(path) as conn:
            yield FileInspection(path, conn)
    except (OSError, *sqlite_files.ERRORS) as error:
        raise DocumentStoreError(f"{path} cannot be looked at: {error}") from error
