"""Tables as Arrow record batches: an IPC stream, or a Parquet file. The only module that needs the extra `parquet`."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
from arro3.io import write_ipc_stream, write_parquet

from apiserver.tables.table import Batch, Column, Kind, Repeated, Values

_TYPES: dict[Kind, Any] = {
    Kind.TEXT: DataType.utf8(),
    Kind.INT: DataType.int64(),
    Kind.FLOAT: DataType.float64(),
    Kind.TIME: DataType.timestamp("ms", tz="UTC"),
    Kind.DATE: DataType.timestamp("ms", tz="UTC"),
    Kind.FLAG: DataType.bool(),
    Kind.JSON: DataType.utf8(),
}
#: How Parquet writes numbers.
_ENCODINGS: dict[Kind, Any] = {
    Kind.FLOAT: "byte_stream_split",
    **dict.fromkeys((Kind.INT, Kind.TIME, Kind.DATE), "delta_binary_packed"),
}
#: The number of a system's error, as a panic of arro3 tells it.
_CODE = re.compile(r"Os \{ code: (\d+)")
#: The end of an IPC stream.
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def schema(columns: Sequence[Column], about: Mapping[str, str] = {}) -> Schema:
    """The table's schema; `about` becomes its metadata."""
    return Schema([Field(name, _TYPES[kind], nullable=True) for name, kind in columns], metadata=dict(about))


def record_batch(of: Schema, columns: Sequence[Column], batch: Batch) -> RecordBatch:
    """A batch as a record batch."""
    arrays = [_array(column.kind, values) for column, values in zip(columns, batch.columns, strict=True)]
    return RecordBatch.from_arrays(arrays, schema=of)


def _array(kind: Kind, values: Values) -> Array:
    type = _TYPES[kind]
    if isinstance(values, Repeated):
        names = Array(list(values.names), DataType.utf8())
        return names.take(Array.from_numpy(values.codes))
    if isinstance(values, np.ndarray):
        return Array.from_numpy(np.ascontiguousarray(values)).cast(type)
    if kind is Kind.JSON:
        values = [None if value is None else value.decode() for value in values]
    if kind in (Kind.TIME, Kind.DATE):
        return Array(values, DataType.int64()).cast(type)
    return Array(values, type)


class IpcStream:
    """Writes an IPC stream piece by piece: each piece is a whole stream of one batch, without its head and its end."""

    def __init__(self, columns: Sequence[Column], about: Mapping[str, str]) -> None:
        self._columns = columns
        self._schema = schema(columns, about)
        self.head = self._stream([]).removesuffix(_END)
        """What comes before all batches."""
        self.end = _END

    def piece(self, batch: Batch) -> bytes:
        """The next rows."""
        stream = self._stream([record_batch(self._schema, self._columns, batch)])
        return stream[len(self.head) : -len(_END)]

    def _stream(self, batches: list[RecordBatch]) -> bytes:
        written = io.BytesIO()
        write_ipc_stream(RecordBatchReader.from_batches(self._schema, batches), written, compression=None)
        return written.getvalue()


def write_parquet_file(
    path: Path, columns: Sequence[Column], batches: Iterator[Batch], about: Mapping[str, str], rows: int
) -> None:
    """Write a Parquet file with row groups of so many `rows`.

    Texts that repeat are written once a row group. Floats are written byte by byte (all first bytes, all second bytes,
    and so on), and integers as differences: that is a third of the size, and four times as fast, as looking for numbers
    that repeat.

    OSError if the disk does not take it.
    """
    of = schema(columns)
    reader = RecordBatchReader.from_batches(of, (record_batch(of, columns, batch) for batch in batches))
    encodings = {column.name: _ENCODINGS[column.kind] for column in columns if column.kind in _ENCODINGS}
    with _panics_as_errors(path):
        write_parquet(
            reader,
            path,
            compression="zstd(1)",
            max_row_group_size=rows,
            key_value_metadata=dict(about),
            dictionary_enabled=False,
            column_dictionary_enabled={(column.name,): True for column in columns if column.kind is Kind.TEXT},
            column_encoding={(name,): encoding for name, encoding in encodings.items()},
        )


@contextmanager
def _panics_as_errors(path: Path) -> Iterator[None]:
    """Make an OSError of what arro3 raises if a write fails: a panic, which no `except Exception` sees."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        code = _CODE.search(str(error))
        if code is None:
            raise RuntimeError(f"arro3 cannot write {path}: {error}") from None
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from None
