"""What is encoded comes back exactly: whole numbers, chunks, log blocks, documents."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.aggregates import COLUMNS
from apiserver.stores.events.codec import chunks, compression, integers, lines, pieces
from apiserver.stores.events.codec.checked import Damaged, Kind, Place, place_of, unwrap, wrap
from apiserver.stores.events.codec.lines import LogPart
from tests.contract.event_stores import lines as log_lines

int64 = st.integers(-(2**63), 2**63 - 1)
float_bits = st.binary(min_size=8, max_size=8).map(lambda bits: float(np.frombuffer(bits, np.float64)[0]))


@pytest.mark.test
@given(st.one_of(st.lists(int64, min_size=1), st.lists(st.integers(-5, 5), min_size=1, max_size=300)))
def test_whole_numbers(numbers: list[int]) -> None:
    column = np.array(numbers, np.int64)
    for sealed in (False, True):
        assert integers.decode(integers.encode(column, sealed=sealed), len(column)).tolist() == numbers


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


@pytest.mark.test
@given(
    st.lists(st.tuples(st.floats() | float_bits | st.sampled_from([0.5, 1.25]), int64), min_size=1, max_size=300),
    st.booleans(),
)
def test_chunks(rows: list[tuple[float, int]], sealed: bool) -> None:
    """Every bit of every number comes back: of numbers that are none, and of negative zeros, too."""
    values, times = map(np.array, zip(*rows, strict=True))
    iters = np.unique(times)[: len(rows)] if sealed else np.arange(len(rows)) * 3 - 7
    values, times = values[: len(iters)].astype(np.float64), times[: len(iters)].astype(np.int64)
    details = [times, np.arange(len(iters)) % 3, np.full(len(iters), 5)]
    curve, rest = chunks.encode_curve(iters, values, sealed=sealed), chunks.encode_details(*details, sealed=sealed)
    place = Place(Kind.CHUNK, 7)
    curve, rest = wrap(curve, place), wrap(rest, place)
    points = chunks.decode_points(len(iters), curve, rest)
    assert points.iters.tolist() == iters.tolist()
    assert points.values.tobytes() == values.tobytes()
    assert [points.timestamps.tolist(), points.workers.tolist(), points.received.tolist()] == [
        one.tolist() for one in details
    ]
    assert chunks.decode_curves([(len(iters), curve)] * 2).values.tobytes() == values.tobytes() * 2
    assert chunks.decode_times(len(iters), rest)[0].tolist() == times.tolist()


@pytest.mark.parametrize("sealed", [False, True])
def test_damage_is_found_and_named(sealed: bool) -> None:
    column = np.random.default_rng(0).random(2000)
    stored = wrap(chunks.encode_curve(np.arange(2000), column, sealed=sealed), Place(Kind.CHUNK, 5 << 24))
    for at in (0, 3, 4, 8, 20, 40, len(stored) // 2, len(stored) - 1):
        flipped = bytearray(stored)
        flipped[at] ^= 1
        with pytest.raises(Damaged, match="is damaged"):
            chunks.decode_curves([(2000, bytes(flipped))])
    for torn in (stored[:-1], stored[:100], stored[:1000] + bytes(len(stored) - 1000)):
        with pytest.raises(Damaged, match=f"chunk {5 << 24} is damaged"):
            chunks.decode_curves([(2000, torn)])


def test_what_has_no_checksum_is_damaged() -> None:
    for stored in (b"", bytes(12), bytes(13), chunks.encode_curve(np.arange(3), np.array([1.0, 2.0, 3.0]))):
        assert place_of(stored) is None
        with pytest.raises(Damaged, match="a chunk is damaged"):
            unwrap(stored)


def test_content_says_what_it_belongs_to() -> None:
    place = Place(Kind.TAIL_PAGE, -(2**63))
    stored = wrap(b"content", place)
    assert (bytes(unwrap(stored)), place_of(stored)) == (b"content", place)


@pytest.mark.parametrize(
    ("value", "width"), [(0.5, 4), (math.nan, 4), (math.inf, 4), (-0.0, 4), (0.1, 8), (1e300, 8), (1e-320, 8)]
)
def test_values_take_half_the_room_where_that_loses_nothing(value: float, width: int) -> None:
    body = chunks.encode_curve(np.arange(100), np.full(100, value))
    assert abs(len(body) - 100 * width) < 30
    curve = chunks.decode_curves([(100, wrap(body, Place(Kind.CHUNK, 7)))])
    assert np.array_equal(curve.values, np.full(100, value), equal_nan=True)
    assert np.array_equal(np.signbit(curve.values), np.signbit(np.full(100, value)))


def test_curves_of_adjacent_chunks_are_one() -> None:
    curves = [(n, chunks.encode_curve(np.arange(n) + 100 * n, np.full(n, float(n)))) for n in (1, 3, 2)]
    curve = chunks.decode_curves([(n, wrap(body, Place(Kind.CHUNK, n))) for n, body in curves])
    assert curve.iters.tolist() == [100, 300, 301, 302, 200, 201]
    assert curve.values.tolist() == [1.0, 3.0, 3.0, 3.0, 2.0, 2.0]


@pytest.mark.test
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


@given(st.binary())
def test_compression(data: bytes) -> None:
    assert compression.decompress(compression.compress(data)) == data


@pytest.mark.test
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


@pytest.mark.test
@given(st.lists(st.tuples(st.lists(st.floats(), min_size=1, max_size=60), st.booleans(), st.booleans()), min_size=1))
def test_blocks_of_adjacent_chunks(adjacent: list[tuple[list[float], bool, bool]]) -> None:
    blocks, encoded = [], []
    for values, is_narrow, is_sealed in adjacent:
        with np.errstate(over="ignore"):
            column = np.array(values, np.float32).astype(np.float64) if is_narrow else np.array(values)
        (rows,) = pieces.blocks_of(np.arange(len(column)) - 5, column, np.zeros(1, np.intp), [2])
        blocks.append(rows)
        encoded.append(memoryview(pieces.encode_blocks(rows) if is_sealed else rows.tobytes()))
    x, sums = pieces.decode_blocks(encoded, tuple(COLUMNS))
    whole = np.concatenate(blocks)
    assert x.tolist() == whole["start"].tolist()
    for name, found in sums.items():
        assert found.tobytes() == whole[name].astype(found.dtype).tobytes()
