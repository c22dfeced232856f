"""Blocks that are kept: the same answers as without, nothing to read again, and a bound of memory."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.aggregates import ALL, Aggregate, Buckets
from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis
from apiserver.events.queries import EVERYWHERE, BucketQuery, Range
from apiserver.stores.events.codec import pieces
from apiserver.stores.events.codec.pieces import ColumnNames, Pieces
from apiserver.stores.events.embedded import buckets, decoded
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.kept_curves import NOTHING_KEPT
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.contract import event_stores
from tests.contract.event_stores import OWNER, SCALARS
from tests.stores.events.embedded.merging import half_merged
from tests.stores.events.embedded.sizes import SMALL


def opened(folder: Path, bounds: EmbeddedBounds = SMALL) -> EmbeddedEventStore:
    """A store that merges and seals only when told to."""
    return EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6, seal_seconds=None, bounds=bounds)


@pytest.fixture
def bounds() -> EmbeddedBounds:
    return SMALL


@pytest.fixture
async def store(tmp_path: Path, bounds: EmbeddedBounds) -> Any:
    made = opened(tmp_path, bounds)
    await made.open()
    yield made
    await made.close()


async def add(store: EmbeddedEventStore, values: dict[int, float]) -> None:
    """Whole numbers are best: sums of them are exact, whatever is summed up first."""
    await store.add(event_stores.batch(event_stores.scalars(list(values.values()), iters=list(values))))


async def ask(store: EmbeddedEventStore, interval: int = 16, within: Range = EVERYWHERE) -> Buckets:
    asked = BucketQuery(BucketAxis.ITER, lambda *_: interval, within, ALL)
    (found,) = await store.scalar_buckets(SCALARS, asked)
    return found


async def ask_anew(store: EmbeddedEventStore, *asked: Any) -> Buckets:
    """Ask a store that keeps nothing."""
    parts = store._parts
    kept, parts.curves = parts.curves, NOTHING_KEPT
    try:
        return await ask(store, *asked)
    finally:
        parts.curves = kept


def assert_same(one: Buckets, other: Buckets) -> None:
    assert one.x.tolist() == other.x.tolist()
    for aggregate in Aggregate:
        assert str(one.values[aggregate].tolist()) == str(other.values[aggregate].tolist()), aggregate


operations = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 40), st.sampled_from([1, 1, 3, 1000])),
        st.tuples(
            st.just("put"),
            st.one_of(st.integers(-20, 200), st.just(SINGLE_VALUE_ITERATION)),
            st.sampled_from([7.0, float("nan"), float("inf")]),
        ),
        st.tuples(st.sampled_from(["merge", "merge", "ask_while_merging", "seal", "reopen", "delete"])),
        st.tuples(
            st.just("ask"),
            st.sampled_from([3, 12, 16, 100]),
            st.sampled_from([EVERYWHERE, EVERYWHERE, Range.of(20, None), Range.of(None, 45), Range.of(13, 66)]),
        ),
    ),
    max_size=15,
)


@pytest.mark.test
@examples(60)
@given(operations)
def test_answers_do_not_depend_on_what_is_kept(operations: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(Path(folder), operations))


async def _run(folder: Path, operations: list[tuple[Any, ...]]) -> None:
    store = opened(folder)
    await store.open()
    last = -1
    ask_all = [("ask", 16, EVERYWHERE)] * 2
    for name, *arguments in [("grow", 60, 1), ("merge",), *ask_all, *operations, *ask_all]:
        match name, *arguments:
            case "grow", count, step:
                await add(store, {last + step * n: float(n * 7 % 10) for n in range(1, count + 1)})
                last += count * step
            case "put", iter, value:
                await add(store, {iter: value})
                last = max(last, iter)
            case ["merge"]:
                await store.merge()
            case ["ask_while_merging"] if last >= 0:
                async with half_merged(store):
                    for _ in range(2):
                        assert_same(await ask(store), await ask_anew(store))
            case ["seal"]:
                await store.seal()
            case ["delete"]:
                await store.delete([OWNER])
                last = -1
            case ["reopen"]:
                await store.close()
                await store.open()
            case "ask", interval, within if last >= 0:
                assert_same(await ask(store, interval, within), await ask_anew(store, interval, within))
    await store.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many chunks' blocks were decoded together."""
    found: list[int] = []
    real = pieces.decode_blocks

    def decode(encoded: Sequence[memoryview], columns: ColumnNames) -> Pieces:
        found.append(len(encoded))
        return real(encoded, columns)

    for module in (buckets, decoded):
        monkeypatch.setattr(module, "decode_blocks", decode)
    return found


async def merged(store: EmbeddedEventStore, values: dict[int, float]) -> None:
    await add(store, values)
    await store.merge()


CURVE = {n: float(n % 13) for n in range(1000)}


@pytest.mark.anyio
async def test_blocks_are_kept_the_second_time_and_not_read_again(store: EmbeddedEventStore, read: list[int]) -> None:
    await merged(store, CURVE)
    first = await ask(store)
    all_chunks = sum(read)
    assert all_chunks > 100
    for chunks in (all_chunks, 0, 0):
        read.clear()
        assert_same(await ask(store), first)
        assert sum(read) == chunks
    for interval, within in ((32, EVERYWHERE), (16, Range.of(100, 700))):
        found = await ask(store, interval, within)
        assert not read
        assert_same(found, await ask_anew(store, interval, within))
        assert read
        read.clear()


@pytest.mark.anyio
async def test_who_wants_a_part_of_a_curve_does_not_read_all_of_it(store: EmbeddedEventStore, read: list[int]) -> None:
    await merged(store, CURVE)
    for _ in range(3):
        read.clear()
        await ask(store, 16, Range.of(100, 300))
        assert 0 < sum(read) < 40


@pytest.mark.anyio
async def test_only_what_changed_is_read_again(store: EmbeddedEventStore, read: list[int]) -> None:
    await merged(store, CURVE)
    await ask(store)
    await ask(store)
    for news in (dict.fromkeys(range(1000, 1100), 1.0), {900: -5.0}):
        await merged(store, news)
        read.clear()
        found = await ask(store)
        assert 0 < sum(read) < 40
        assert_same(found, await ask_anew(store))


async def assert_right(store: EmbeddedEventStore) -> None:
    """What is kept is right, and something is."""
    for _ in range(3):
        assert_same(await ask(store), await ask_anew(store))
    assert store._parts.curves.size > 2000


@pytest.mark.test
@pytest.mark.anyio
@pytest.mark.parametrize("bounds", [replace(SMALL, fold_points=2)])
async def test_a_last_chunk_that_grows_is_not_counted_twice(store: EmbeddedEventStore) -> None:
    for first in range(0, 300, 3):
        await merged(store, {first + n: 1.0 for n in range(3)})
        if first > 200:
            await assert_right(store)


@pytest.mark.test
@pytest.mark.anyio
async def test_sealed_chunks_take_the_place_of_others(store: EmbeddedEventStore) -> None:
    await merged(store, CURVE)
    await assert_right(store)
    await store.seal()
    await assert_right(store)
    await merged(store, {990: 1.0})
    await assert_right(store)


@pytest.mark.test
@pytest.mark.anyio
async def test_what_is_kept_while_a_merge_is_half_done_is_forgotten_with_it(store: EmbeddedEventStore) -> None:
    await merged(store, CURVE)
    await assert_right(store)
    await add(store, {500: 1000.0})
    async with half_merged(store):
        await assert_right(store)
    await assert_right(store)


@pytest.mark.anyio
async def test_chunks_with_steps_of_different_size(store: EmbeddedEventStore) -> None:
    await merged(store, CURVE)
    await assert_right(store)
    await merged(store, {n: float(n % 13) for n in range(2_000, 200_000, 1000)})
    await assert_right(store)


@pytest.mark.anyio
async def test_a_change_that_is_not_merged_yet_shows(store: EmbeddedEventStore, read: list[int]) -> None:
    await merged(store, CURVE)
    await ask(store)
    await ask(store)
    read.clear()
    await add(store, {500: 1000.0})
    found = await ask(store)
    assert not read
    assert found.values[Aggregate.MAX][500 // 16] == 1000
    assert_same(found, await ask_anew(store))


@pytest.mark.anyio
@pytest.mark.parametrize("bounds", [replace(SMALL, kept_curve_points=1001), replace(SMALL, bytes_of_a_curve=20_000)])
async def test_short_and_very_long_curves_are_not_kept(store: EmbeddedEventStore, read: list[int]) -> None:
    await merged(store, CURVE)
    for _ in range(3):
        read.clear()
        await ask(store)
        assert sum(read) > 100
    assert store._parts.curves.size == 0


@pytest.mark.anyio
async def test_the_size_is_that_of_the_arrays(store: EmbeddedEventStore) -> None:
    await merged(store, CURVE)
    await ask(store)
    assert 0 < store._parts.curves.size < 2000, "after one look, only that there was one is kept"
    await ask(store)
    ((_, kept),) = store._parts.curves._curves.items()
    assert isinstance(kept, decoded.Blocks)
    arrays = sum(column.nbytes for column in (kept.pieces.x, *kept.pieces.sums.values()))
    assert arrays < store._parts.curves.size < arrays + 300 * len(kept.chunks) + 2000
    assert len(kept.pieces.x) == kept.chunks[-1][3].stop
