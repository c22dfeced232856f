"""Reads tables in batches of columns: CSV with a header, NDJSON, and Parquet, which needs the extra "parquet"."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import orjson

from apiserver.extras import installed_by
from apiserver.importing.report import ImportFailed
from apiserver.protobuf_wire import Malformed

#: Some rows of a table: its columns by name, all of one length. A value that is missing is None.
Batch: TypeAlias = Mapping[str, Sequence[Any]]

ROWS = 65_536
_LONGEST_FIELD = 2**24
PARQUET = (".parquet", ".pq")
_JSON = (".ndjson", ".jsonl", ".json")


#: Of the lines with the same problem, so many are named.
_NAMED = 5
_SEPARATORS = ",;\t"


@dataclass(slots=True)
class Broken:
    """Counts what is broken in a table, by kind, and keeps the first places of each kind, such as "line 3"."""

    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, places: Sequence[str], count: int | None = None) -> None:
        """Count some of a kind; the first places are enough if there is a count."""
        self.counts[kind] = self.counts.get(kind, 0) + (len(places) if count is None else count)
        named = self.places.setdefault(kind, [])
        named.extend(places[: _NAMED - len(named)])

    def reasons(self) -> Iterator[str]:
        """A text for each kind: "2 × no metric: line 3, line 7"."""
        for kind, count in self.counts.items():
            yield f"{count:,} × {kind}: {', '.join(self.places[kind])}{', …' if count > _NAMED else ''}"


@dataclass(slots=True)
class Rows:
    """Some rows of a table, and the place of each in the file: its line, or in Parquet its row, from 1 on."""

    columns: Batch
    numbers: Sequence[int]
    unit: str = "line"

    def places(self, chosen: Sequence[int]) -> list[str]:
        """The first few places of the chosen rows."""
        return [f"{self.unit} {self.numbers[row]}" for row in chosen[:_NAMED]]


def rows(path: Path, broken: Broken) -> Iterator[Rows]:
    """The rows of a table. Lines that cannot be read are counted, and left out.

    Raises OSError, Malformed for a file that is no table, ImportFailed without the extra.
    """
    if path.suffix in PARQUET:
        done = 0
        for batch in batches(path):
            count = len(next(iter(batch.values()), ()))
            yield Rows(batch, range(done + 1, done + count + 1), "row")
            done += count
    elif path.suffix in _JSON:
        yield from _ndjson(path, broken)
    else:
        yield from _csv(path, broken)


def batches(path: Path) -> Iterator[Batch]:
    """The batches of a Parquet file. Raises OSError, Malformed for what is no table, ImportFailed without the extra."""
    if not path.is_file():
        raise OSError(f"there is no file {path.name}")
    yield from _parquet(path)


def _csv(path: Path, broken: Broken) -> Iterator[Rows]:
    csv.field_size_limit(_LONGEST_FIELD)
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
        separator = _separator(file.readline(_LONGEST_FIELD))
        file.seek(0)
        found = _csv_rows(csv.reader(file, delimiter=separator), broken)
        _, names = next(found, (0, []))
        width = len(names)
        while names and (some := list(islice(found, ROWS))):
            full, numbers = [], []
            for line, row in some:
                if len(row) > width and any(row[width:]):
                    broken.add("more cells than the header has", [f"line {line}"])
                elif row:
                    full.append(row if len(row) >= width else row + [""] * (width - len(row)))
                    numbers.append(line)
            columns = zip(*full, strict=False)
            yield Rows(
                {name: [one or None for one in column] for name, column in zip(names, columns, strict=False)}, numbers
            )


def _separator(header: str) -> str:
    """What separates most names of a header: a comma, a semicolon or a tab."""
    try:
        return max(_SEPARATORS, key=lambda one: len(next(csv.reader([header], delimiter=one), ())))
    except csv.Error:
        return ","


def _csv_rows(reader: Any, broken: Broken) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its first line."""
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            broken.add(f"a line that is no CSV ({error})", [f"line {line}"])
            continue
        yield line, row


def _ndjson(path: Path, broken: Broken) -> Iterator[Rows]:
    with path.open("rb") as file:
        lines = enumerate(iter(lambda: file.readline(_LONGEST_FIELD), b""), 1)
        while some := list(islice(lines, ROWS)):
            found, numbers = [], []
            for number, line in some:
                if not line.strip():
                    continue
                row = _json_object(line)
                if row is None:
                    broken.add("a line that is no JSON object", [f"line {number}"])
                else:
                    found.append(row)
                    numbers.append(number)
            names = dict.fromkeys(name for row in found for name in row)
            yield Rows({name: [row.get(name) for row in found] for name in names}, numbers)


def _json_object(line: bytes) -> dict[str, Any] | None:
    """The object of a line. NaN and Infinity are numbers; numbers that are too large stay texts, which are none."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            row = json.loads(line, parse_float=lambda text: float(text) if math.isfinite(float(text)) else text)
        except (ValueError, RecursionError):
            return None
    return row if isinstance(row, dict) else None


def _parquet(path: Path) -> Iterator[Batch]:
    try:
        from arro3.core import DataType
        from arro3.io import read_parquet
    except ImportError:
        raise ImportFailed(f"{path.name}: Parquet needs an extra: {installed_by('parquet')}") from None
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise Malformed(f"{path.name} is not a Parquet file")
    try:
        for batch in read_parquet(path, batch_size=ROWS):
            yield {name: _column(batch.column(name), DataType) for name in batch.schema.names}
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # arro3 has errors of its own for each kind of damage, panics among them
        raise Malformed(f"{path.name} is not a Parquet file that can be read: {error}") from None


def _column(column: Any, types: Any) -> Sequence[Any]:
    """A column of a batch: numbers as an array, times as epoch milliseconds, all else as Python has it."""
    if types.is_timestamp(column.type):
        column = column.cast(types.timestamp("ms")).cast(types.int64())
    elif types.is_decimal(column.type):
        column = column.cast(types.float64())
    elif types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_numeric(column.type) and not column.null_count:
        return cast(Sequence[Any], np.asarray(column.to_numpy()))
    found: Sequence[Any] = column.to_pylist()
    return found
