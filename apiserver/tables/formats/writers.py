"""Writes tables in every format but Parquet: pieces of bytes, made while the table is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from apiserver.tables.formats import Format, binary, text
from apiserver.tables.table import Batch, Kind, Repeated, Table

#: Rows that are written at once: a thread that writes keeps the event loop waiting.
_AT_ONCE = 2**13


@dataclass(frozen=True, slots=True)
class _Work:
    """How much is written at once. Columns of numbers take a tenth of the time of text."""

    few: int
    """Rows that are written on the event loop. More are written in a thread."""
    bytes_at_once: int
    """Bytes that are written at once, as many as they would be as text."""


_AS_TEXT, _AS_NUMBERS = _Work(200, 2**18), _Work(2**13, 2**20)


@dataclass(frozen=True, slots=True)
class Options:
    """How to write a table."""

    plain_csv: bool = False
    """Leave texts in CSV as they are, even those that a spreadsheet would take for a formula."""
    double: bool = False
    """Write values in BINARY as 64-bit floats, not as 32-bit floats."""


DEFAULT = Options()


def pieces(format: Format, table: Table, options: Options) -> AsyncGenerator[bytes, None]:
    """The table in a format."""
    match format:
        case Format.JSON:
            return _json(table)
        case Format.NDJSON:
            return _each(table, b"", lambda batch: text.json_rows(table.columns, batch, "\n") + b"\n")
        case Format.CSV:
            head = text.csv_head(table.columns, plain=options.plain_csv)
            return _each(table, head, lambda batch: text.csv_lines(table.columns, batch, plain=options.plain_csv))
        case Format.ARROW:
            from apiserver.tables.formats.arrow import IpcStream

            stream = IpcStream(table.columns, table.about)
            return _each(table, stream.head, stream.piece, stream.end, work=_AS_NUMBERS)
        case Format.TEXT:
            return _each(table, b"", lambda batch: _lines(table, batch))
        case Format.BINARY:
            return _each(
                table, b"", lambda batch: binary.block(table.columns, batch, double=options.double), work=_AS_NUMBERS
            )
        case Format.PARQUET:
            raise ValueError("a Parquet file cannot be written piece by piece")


async def _each(
    table: Table, head: bytes, write: Callable[[Batch], bytes], end: bytes = b"", work: _Work = _AS_TEXT
) -> AsyncGenerator[bytes, None]:
    async with aclosing(table.batches) as batches:
        if head:
            yield head
        async for batch in batches:
            for some in batch.parts(max(1, min(_AT_ONCE, work.bytes_at_once // _row_bytes(batch)))):
                yield write(some) if some.rows <= work.few else await asyncio.to_thread(write, some)
                del some
            del batch
        if end:
            yield end


async def _json(table: Table) -> AsyncGenerator[bytes, None]:
    """A list of objects, each on its line."""
    begun = False
    yield b"["
    async with aclosing(_each(table, b"", lambda batch: text.json_rows(table.columns, batch, ",\n"))) as rows:
        async for some in rows:
            yield (b",\n" if begun else b"") + some
            begun = True
    yield b"]\n"


def _row_bytes(batch: Batch) -> int:
    """Bytes that a row takes as text, about: of texts, as many as the longest name, or the mean of a list."""
    size = 1
    for values in batch.columns:
        if isinstance(values, Repeated):
            size += 8 + max(map(len, values.names), default=0)
        elif isinstance(values, list):
            size += 8 + sum([len(one) for one in values if isinstance(one, str | bytes)]) // max(len(values), 1)
        else:
            size += 24
    return size


def _lines(table: Table, batch: Batch) -> bytes:
    """The texts of the last column, each on lines of its own."""
    values = batch.columns[-1]
    assert isinstance(values, list)
    assert table.columns[-1].kind is Kind.TEXT
    return b"".join([value.encode() + (b"" if value.endswith("\n") else b"\n") for value in values])
