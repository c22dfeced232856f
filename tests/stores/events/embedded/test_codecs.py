"""What is encoded comes back exactly: whole numbers, chunks, log blocks, documents."""

from __future__ import annotations

import base64
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import LogLine, LogPosition
from apiserver.stores.events.embedded import chunks, compression, integers, lines
from apiserver.stores.events.embedded.hot import LogPart
from tests.contract.event_stores import lines as log_lines

int64 = st.integers(-(2**63), 2**63 - 1)


@given(st.one_of(st.lists(int64, min_size=1), st.lists(st.integers(-5, 5), min_size=1, max_size=300)))
def test_whole_numbers(numbers: list[int]) -> None:
    column = np.array(numbers, np.int64)
    assert integers.decode(integers.encode(column), len(column)).tolist() == numbers


@pytest.mark.parametrize(
    ("column", "most"),
    [
        (np.arange(4096), 17),
        (np.full(4096, -7), 17),
        (np.arange(0, 10**15, 10**12), 17),
        (np.cumsum(np.arange(4096) % 100), 1000),
        (np.cumsum(np.random.default_rng(0).integers(0, 256, 4096)), 4200),
    ],
)
def test_regular_numbers_are_small(column: np.ndarray[tuple[int], np.dtype[np.int64]], most: int) -> None:
    assert len(integers.encode(column)) <= most


@given(st.lists(st.floats(), min_size=1, max_size=50))
def test_chunks(values: list[float]) -> None:
    length = len(values)
    iters = np.arange(length) * 3 - 7
    column = np.array(values, np.float64)
    details = [np.arange(length) ** 2, np.arange(length) % 3, np.full(length, 5)]
    points = chunks.decode_points(length, chunks.encode_curve(iters, column), chunks.encode_details(*details))
    assert points.iters.tolist() == iters.tolist()
    assert np.array_equal(points.values, column, equal_nan=True)
    assert [points.timestamps.tolist(), points.workers.tolist(), points.received.tolist()] == [
        one.tolist() for one in details
    ]


@pytest.mark.parametrize(
    ("value", "width"), [(0.5, 4), (math.nan, 4), (math.inf, 4), (-0.0, 4), (0.1, 8), (1e300, 8), (1e-320, 8)]
)
def test_values_take_half_the_room_where_that_loses_nothing(value: float, width: int) -> None:
    body = chunks.encode_curve(np.arange(100), np.full(100, value))
    assert abs(len(body) - 100 * width) < 30
    curve = chunks.decode_curves([(100, body)])
    assert np.array_equal(curve.values, np.full(100, value), equal_nan=True)
    assert np.array_equal(np.signbit(curve.values), np.signbit(np.full(100, value)))


def test_curves_of_adjacent_chunks_are_one() -> None:
    bodies = [(n, chunks.encode_curve(np.arange(n) + 100 * n, np.full(n, float(n)))) for n in (1, 3, 2)]
    curve = chunks.decode_curves(bodies)
    assert curve.iters.tolist() == [100, 300, 301, 302, 200, 201]
    assert curve.values.tolist() == [1.0, 3.0, 3.0, 3.0, 2.0, 2.0]


@given(st.lists(st.tuples(int64, st.text(), st.none() | int64), min_size=1, max_size=20))
def test_log_blocks(rows: list[tuple[int, str, int | None]]) -> None:
    sent = log_lines([message for _, message, _ in rows], timestamps=[time for time, _, _ in rows])
    sent.iters = [iter for _, _, iter in rows]
    sent.extras = {n: b'{"a":1}' for n, (time, *_) in enumerate(rows) if time % 3 == 0}
    block = lines.of_parts([LogPart(100, 7, sent)])
    ids = {("console", ""): 12}
    back = lines.decode(lines.encode(block, ids), {12: ("console", "")})
    for name in lines.Lines.__slots__:
        assert list(getattr(back, name)) == list(getattr(block, name))
    assert back.timestamps.tolist() == sorted(time for time, _, _ in rows)


def test_log_blocks_without_further_fields_are_read() -> None:
    """One that was written before lines had any."""
    body = (
        "KLUv/SCEjQIAxAOYxBEABQABAMQRAAcAAQDEEQBkAJKSoKRpbmZvxBEAAQCSkaF3xACSkQzEAJKSwAOlaGVsbG+ld29ybGQIAEXRCnADxATy"
        "AdzAeGC0AcAB"
    )
    block = lines.decode(base64.b64decode(body), {12: ("console", "")})
    first, second = block.log_lines()
    assert first == LogLine(LogPosition(5, 7), "", "w", "hello", None, "console", "", 100)
    assert second == LogLine(LogPosition(6, 8), "info", "w", "world", 3, "console", "", 100)
    assert lines.decode(lines.encode(block, {("console", ""): 12}), {12: ("console", "")}).log_lines() == [
        first,
        second,
    ]


@given(st.binary())
def test_compression(data: bytes) -> None:
    assert compression.decompress(compression.compress(data)) == data


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 2)), min_size=1, max_size=9), st.data())
def test_columns_of_few_values(pairs: list[tuple[str, int | None]], data: st.DataObject) -> None:
    left, right = (lines.Column.of([*column]) for column in zip(*pairs, strict=True))
    both = left.with_column(right)
    assert [*both] == pairs
    assert sorted(map(repr, both.table)) == sorted(map(repr, set(pairs)))
    which = data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1))
    some = both.take(np.array(which))
    assert [*some] == [pairs[n] for n in which]
    assert [*some.distinct()] == [*some]
    assert set(some.distinct().table) == set(some)
