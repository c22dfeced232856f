"""Any table comes back from any format as it was, bit for bit."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import math
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import arro3.io
import numpy as np
import orjson
import pytest
from arro3.core import DataType
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.errors import ApiError
from apiserver.tables.formats import Format, chosen, to_files
from apiserver.tables.formats.arrow import write_parquet_file
from apiserver.tables.formats.writers import DEFAULT, Options, pieces
from apiserver.tables.table import Batch, Column, Kind, Repeated, Table

INT64 = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.one_of(st.floats(), st.sampled_from([-0.0, math.inf, -math.inf, 5e-324, 1e22, 123456789012345680.0]))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MAYBE = {
    Kind.TEXT: st.none() | TEXTS,
    Kind.INT: st.none() | INT64,
    Kind.FLOAT: st.none() | FLOATS,
    Kind.FLAG: st.none() | st.booleans(),
    Kind.JSON: st.none() | st.recursive(st.integers(-9, 9) | TEXTS, st.lists, max_leaves=4).map(orjson.dumps),
}
POINTS = (Column("metric", Kind.TEXT), Column("iter", Kind.INT), Column("time", Kind.TIME), Column("v", Kind.FLOAT))
POINT = st.tuples(TEXTS, INT64, INT64, FLOATS)
ANY = tuple(Column(f"{kind}, \n'\"ü", kind) for kind in MAYBE)
ROW = st.tuples(*MAYBE.values())


def point_batch(rows: Sequence[tuple[Any, ...]]) -> Batch:
    """Points as the store answers them: arrays, and names that repeat."""
    names = sorted({row[0] for row in rows})
    codes = np.array([names.index(row[0]) for row in rows], np.int32)
    numbers: list[Any] = [
        np.array([row[n] for row in rows], type) for n, type in ((1, np.int64), (2, np.int64), (3, np.float64))
    ]
    return Batch(len(rows), [Repeated(codes, names), *numbers])


def any_batch(rows: Sequence[tuple[Any, ...]]) -> Batch:
    return Batch(len(rows), [[row[n] for row in rows] for n in range(len(ANY))])


def written(format: Format, columns: Sequence[Column], batches: Sequence[Batch], options: Options = DEFAULT) -> bytes:
    async def each() -> AsyncGenerator[Batch, None]:
        for batch in batches:
            yield batch

    async def whole() -> bytes:
        return b"".join([piece async for piece in pieces(format, Table(columns, each()), options)])

    return asyncio.run(whole())


def same(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    def one(value: Any) -> Any:
        return ("NaN",) if isinstance(value, float) and math.isnan(value) else (value, str(value))

    return [[one(value) for value in row] for row in found] == [[one(value) for value in row] for row in expected]


def from_json(kind: Kind, value: Any) -> Any:
    return float(value) if kind is Kind.FLOAT and value is not None else value


def from_csv(kind: Kind, cell: str | None) -> Any:
    if cell is None:
        return None
    match kind:
        case Kind.INT | Kind.TIME:
            return int(cell)
        case Kind.FLOAT:
            return float(cell)
        case Kind.FLAG:
            return cell == "true"
        case Kind.JSON:
            return orjson.loads(cell)
    return cell


def csv_rows(content: bytes) -> list[list[str | None]]:
    """The cells; None for one with nothing in it, "" for two quotes."""
    text = content.decode()
    rows: list[list[str | None]] = [[]]
    cell, quoted, seen = "", False, False
    place = 0
    while place < len(text):
        character = text[place]
        if quoted and text[place : place + 2] == '""':
            cell += '"'
            place += 1
        elif character == '"':
            quoted, seen = not quoted, True
        elif quoted:
            cell += character
        elif character == "," or text[place : place + 2] == "\r\n":
            rows[-1].append(cell if cell or seen else None)
            cell, seen = "", False
            if character == "\r":
                rows.append([])
                place += 1
        else:
            cell += character
        place += 1
    return rows[:-1]


@pytest.mark.check
@pytest.mark.parametrize(("columns", "row", "batch"), [(POINTS, POINT, point_batch), (ANY, ROW, any_batch)])
@pytest.mark.parametrize("format", [Format.JSON, Format.NDJSON, Format.CSV, Format.ARROW, Format.PARQUET])
def test_a_table_comes_back(columns: Any, row: Any, batch: Any, format: Format, tmp_path_factory: Any) -> None:
    path: Path = tmp_path_factory.mktemp("parquet") / "table"

    @given(st.lists(row, max_size=6), st.lists(row, max_size=6))
    def comes_back(first: list[Any], second: list[Any]) -> None:
        rows, batches = [*first, *second], [batch(some) for some in (first, second) if some]
        if format is Format.PARQUET:
            write_parquet_file(path, columns, iter(batches), {}, 4)
            content = path.read_bytes()
        else:
            content = written(format, columns, batches, Options(plain_csv=True))
        expected = [
            [orjson.loads(v) if c.kind is Kind.JSON and v is not None else v for c, v in zip(columns, one, strict=True)]
            for one in rows
        ]
        assert same(_read(format, columns, content), expected)

    comes_back()


def _read(format: Format, columns: Sequence[Column], content: bytes) -> list[list[Any]]:
    match format:
        case Format.JSON | Format.NDJSON:
            found = json.loads(content) if format is Format.JSON else [*map(json.loads, content.split(b"\n")[:-1])]
            return [[from_json(column.kind, one[column.name]) for column in columns] for one in found]
        case Format.CSV:
            head, *cells = csv_rows(content)
            assert head == [column.name for column in columns]
            assert next(csv.reader(io.StringIO(content.decode(), newline=""))) == head
            return [[from_csv(c.kind, cell) for c, cell in zip(columns, one, strict=True)] for one in cells]
    read = arro3.io.read_ipc_stream if format is Format.ARROW else arro3.io.read_parquet
    table = read(io.BytesIO(content)).read_all()
    by_column = []
    for column in columns:
        values = table.column(column.name)
        values = values.cast(DataType.int64()) if column.kind is Kind.TIME else values
        found = [one for chunk in values.chunks for one in chunk.to_pylist()]
        is_json = column.kind is Kind.JSON
        by_column.append([orjson.loads(one) if is_json and one is not None else one for one in found])
    return [list(row) for row in zip(*by_column, strict=True)]


@pytest.mark.test
@given(st.lists(FLOATS, min_size=1, max_size=5))
def test_binary_formats_keep_all_bits(values: list[float]) -> None:
    array = np.array(values)
    batch = point_batch([("m", n, n, 0.0) for n in range(len(values))])
    batch = Batch(batch.rows, [*batch.columns[:3], array])
    table = arro3.io.read_ipc_stream(io.BytesIO(written(Format.ARROW, POINTS, [batch]))).read_all()
    assert table.column("v").chunks[0].to_numpy().tobytes() == array.tobytes()


@pytest.mark.test
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-(2**60), 2**60), FLOATS), min_size=1, max_size=8))
def test_blocks_of_plain_numbers(rows: list[tuple[str, int, float]]) -> None:
    columns = (Column("variant", Kind.TEXT), Column("x", Kind.INT), Column("mean", Kind.FLOAT))
    names = ["a", "b"]
    codes = np.array([names.index(row[0]) for row in rows], np.int32)
    numbers = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    content = written(
        Format.BINARY, columns, [Batch(len(rows), [Repeated(codes, names), *numbers])], Options(double=True)
    )
    size = int.from_bytes(content[:4], "little")
    head, place = orjson.loads(content[4 : 4 + size]), 4 + size
    assert head["columns"] == ["mean"]
    found: list[tuple[str, float, float]] = []
    for series in head["series"]:
        count = series["rows"]
        assert place % 8 == 0
        if series["x"] is None:
            x: list[float] = np.frombuffer(content, "<f8", count, place).tolist()
            place += 8 * count
        else:
            x = [float(series["x"][0] + series["x"][1] * n) for n in range(count)]
        mean = np.frombuffer(content, "<f8", count, place).tolist()
        place += 8 * count
        found += zip([series["variant"]] * count, x, mean, strict=True)
    assert place == len(content)
    assert same(
        found, [(name, n if isinstance(found[k][1], int) else float(n), v) for k, (name, n, v) in enumerate(rows)]
    )


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([0.1, 2.5, math.nan], 4),
        ([5.0, 5.0], 4),
        ([math.nan, math.inf], 4),
        ([1.0, 1e300], 8),
        ([1.0, -1e300, math.inf], 8),
        ([1e12, 1e12 + 4096], 8),
    ],
)
def test_blocks_have_wider_numbers_where_a_curve_needs_them(values: list[float], width: int) -> None:
    columns = (Column("variant", Kind.TEXT), Column("x", Kind.INT), Column("mean", Kind.FLOAT))
    mean = np.array([1.0, 2.0, *values])
    names = Repeated(np.array([0, 0, *([1] * len(values))], np.int32), ["plain", "v"])
    content = written(Format.BINARY, columns, [Batch(len(mean), [names, np.arange(len(mean)), mean])])
    head = orjson.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])
    assert head["bytes"] == width


def test_texts_that_a_spreadsheet_would_run() -> None:
    columns = (Column("a", Kind.TEXT), Column("b", Kind.FLOAT))
    numbers = ["-1", "+0.5", "-.5e-3", "-1.", "-2E+10"]
    run = ["=1+1", "+1+1", "-1-1", "-", "-1e", "-x", "-inf", "-1\n", "-\u0661", "@x", "\tx", "\rx", "=-1"]
    texts = [*run, *numbers, "x=1"]
    content = written(Format.CSV, columns, [Batch(len(texts), [texts, [-1.0] * len(texts)])]).decode()
    cells = [row[0] for row in csv.reader(io.StringIO(content, newline=""))][1:]
    assert cells == [*(f"'{text}" for text in run), *numbers, "x=1"]
    assert content.count(",-1.0\r\n") == len(texts)


def test_the_format_that_a_request_asks_for() -> None:
    possible = (Format.JSON, Format.CSV, Format.PARQUET)
    assert chosen("csv", "application/json", possible) is Format.CSV
    for accept, expected in (
        ("", Format.JSON),
        ("*/*", Format.JSON),
        ("text/csv", Format.CSV),
        ("text/csv;q=0.5, application/vnd.apache.parquet", Format.PARQUET),
        ("text/html,application/xhtml+xml,*/*;q=0.8", Format.JSON),
        ("image/png, text/csv;q=0.1", Format.CSV),
        ("text/*", Format.CSV),
        ("image/*, application/*;q=0.5", Format.JSON),
        ("text/csv;q=0, */*;q=0.1", Format.JSON),
    ):
        assert chosen(None, accept, possible) is expected
    for ending, accept, status in (
        ("xls", "", 404),
        ("arrow", "", 404),
        (None, "image/png", 406),
        (None, "image/*", 406),
        (None, ";;q=", 200),
    ):
        if status == 200:
            chosen(ending, accept, possible)
        else:
            with pytest.raises(ApiError) as refused:
                chosen(ending, accept, possible)
            assert refused.value.code == status
            asked = accept or f".{ending}"
            said = f"There is no format '{asked}' here: let the address end in one of .json, .csv, .parquet"
            assert refused.value.message == said


@pytest.mark.test
@pytest.mark.parametrize("rows", [1, 100_000])
def test_a_disk_that_takes_no_file_is_said(rows: int) -> None:
    numbers = np.random.default_rng(7).integers(0, 2**62, rows)

    async def batches() -> AsyncGenerator[Batch, None]:
        for _ in range(3):
            yield Batch(rows, [numbers])

    def table() -> Table:
        return Table(POINTS[1:2], batches(), {})

    async def parquet() -> None:
        await to_files.write_parquet(Path("/dev/full"), table(), free=0)

    async def csv() -> None:
        await to_files.write_pieces(Path("/dev/full"), pieces(Format.CSV, table(), DEFAULT), free=0)

    for write in (parquet, csv):
        with pytest.raises(Refusal, match="cannot write the file: No space left on device") as refused:
            asyncio.run(write())
        assert (refused.value.why, refused.value.retry_after) == (Why.UNAVAILABLE, 60)


@pytest.mark.parametrize("format", [Format.PARQUET, Format.CSV])
def test_an_error_of_reading_the_table_is_not_blamed_on_the_disk(format: Format, tmp_path: Path) -> None:
    async def batches() -> AsyncGenerator[Batch, None]:
        yield Batch(1, [np.array([7])])
        raise TimeoutError("the store was too slow")

    async def write() -> None:
        table = Table(POINTS[1:2], batches(), {})
        if format is Format.PARQUET:
            await to_files.write_parquet(tmp_path / "file", table, free=0)
        else:
            await to_files.write_pieces(tmp_path / "file", pieces(format, table, DEFAULT), free=0)

    with pytest.raises(TimeoutError, match="the store was too slow"):
        asyncio.run(write())
