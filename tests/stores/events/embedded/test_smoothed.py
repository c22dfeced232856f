"""Smoothed curves that are kept: the same answers as without, little to read, and a bound of memory."""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.aggregates import ALL, Aggregate, Buckets
from apiserver.events.model import BucketAxis, EventType, Owner
from apiserver.events.queries import EVERYWHERE, BucketQuery, Range, SeriesQuery
from apiserver.events.smoothing import Kind, Smoothing
from apiserver.stores.events.codec.chunks import Body, Room
from apiserver.stores.events.embedded import smoothed
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.kept_curves import KeptCurves
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.contract import event_stores
from tests.contract.event_stores import OWNER, SCALARS
from tests.events import plain_smoothing
from tests.stores.events.embedded.sizes import SMALL

SMOOTHINGS = [
    *(Smoothing(kind, 0.8, 5) for kind in Kind),
    Smoothing(Kind.MEAN, points=30),
    Smoothing(Kind.MEDIAN, points=2),
]
EMA = Smoothing(Kind.EXPONENTIAL, 0.9)


@pytest.fixture
def bounds() -> EmbeddedBounds:
    return SMALL


@pytest.fixture
async def store(tmp_path: Path, bounds: EmbeddedBounds) -> Any:
    made = EmbeddedEventStore(tmp_path, merge_points=10**9, merge_seconds=10**6, bounds=bounds)
    await made.open()
    yield made
    await made.close()


async def add(store: EmbeddedEventStore, values: dict[int, float], owner: Owner = OWNER) -> None:
    points = event_stores.scalars(list(values.values()), iters=list(values), owner=owner)
    await store.add(event_stores.batch(points))


async def ask(
    store: EmbeddedEventStore, smoothing: Smoothing, interval: int = 12, within: Range = EVERYWHERE
) -> Buckets:
    asked = BucketQuery(BucketAxis.ITER, lambda *_: interval, within, ALL, smoothing)
    (found,) = await store.scalar_buckets(SCALARS, asked)
    return found


async def ask_anew(store: EmbeddedEventStore, *asked: Any) -> Buckets:
    """Ask a store that knows nothing yet."""
    parts = store._parts
    kept, parts.curves = parts.curves, KeptCurves(-1)
    try:
        return await ask(store, *asked)
    finally:
        parts.curves = kept


def assert_same(one: Buckets, other: Buckets) -> None:
    assert one.x.tolist() == other.x.tolist()
    for aggregate in Aggregate:
        assert one.values[aggregate] == pytest.approx(other.values[aggregate], rel=1e-9, abs=1e-9, nan_ok=True)


@dataclass
class Plain:
    """The same curve in plain Python."""

    points: dict[int, float] = field(default_factory=dict)

    def check(self, found: Buckets, smoothing: Smoothing, interval: int, within: Range) -> None:
        """The buckets are right, with the interval or one that is wider by up to a half."""
        iters = sorted(self.points)
        values = plain_smoothing.smoothed(smoothing, iters, [self.points[iter] for iter in iters])
        inside = [(x, y) for x, y in zip(iters, values, strict=True) if within.least <= x <= within.greatest]
        shifts = range(interval.bit_length()) if interval > 1 else [0]
        for width in {-(-interval >> shift) << shift for shift in shifts}:
            groups: dict[int, list[float]] = {}
            for x, y in inside:
                groups.setdefault(x // width * width, []).append(y)
            if list(groups) != found.x.tolist():
                continue
            finite = [[y for y in group if math.isfinite(y)] for group in groups.values()]
            means = [math.fsum(group) / len(group) if group else math.nan for group in finite]
            greatest = [max(group, default=math.nan) for group in finite]
            if np.allclose(found.values[Aggregate.MEAN], means, rtol=1e-9, atol=1e-9, equal_nan=True):
                assert found.values[Aggregate.COUNT].tolist() == list(map(len, groups.values()))
                assert found.values[Aggregate.MAX] == pytest.approx(greatest, rel=1e-9, abs=1e-9, nan_ok=True)
                return
        pytest.fail(f"{found} is not {smoothing} of {self.points} by {interval}")


VALUES = st.one_of(st.floats(-100, 100), st.sampled_from([math.nan, math.inf]))
operations = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 40), st.sampled_from([1, 1, 3, 1000])),
        st.tuples(st.just("put"), st.integers(-20, 200), VALUES),
        st.tuples(st.sampled_from(["merge", "merge", "seal", "reopen", "delete"])),
        st.tuples(
            st.just("ask"),
            st.sampled_from(SMOOTHINGS),
            st.sampled_from([1, 3, 12, 16, 100]),
            st.sampled_from([EVERYWHERE, Range.of(20, None), Range.of(None, 45), Range.of(13, 66)]),
        ),
    ),
    max_size=15,
)


@pytest.mark.check
@examples(40)
@given(operations)
def test_kept_curves_are_what_they_would_be_anew(operations: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(Path(folder), operations))


async def _run(folder: Path, operations: list[tuple[Any, ...]]) -> None:
    store, plain = EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6, bounds=SMALL), Plain()
    await store.open()
    ask_all = [("ask", one, 12, EVERYWHERE) for one in SMOOTHINGS]
    for name, *arguments in [("grow", 60, 1), ("merge",), *ask_all, *operations, *ask_all]:
        match name, *arguments:
            case "grow", count, step:
                first = max(plain.points, default=0) + step
                news = {first + n * step: float(n * 7 % 10) for n in range(count)}
                plain.points |= news
                await add(store, news)
            case "put", iter, value:
                plain.points[iter] = value
                await add(store, {iter: value})
            case ["merge"]:
                await store.merge()
            case ["seal"]:
                await store.seal()
            case ["delete"]:
                await store.delete([OWNER])
                plain.points.clear()
            case ["reopen"]:
                await store.close()
                await store.open()
            case "ask", smoothing, interval, within if plain.points:
                found = await ask(store, smoothing, interval, within)
                plain.check(found, smoothing, interval, within)
                assert_same(found, await ask_anew(store, smoothing, interval, within))
    await store.close()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of points of chunks that were decoded together."""
    found: list[int] = []
    real = Room.decode

    def decode(self: Room, bodies: Sequence[Body]) -> Any:
        found.append(sum(count for count, _ in bodies))
        return real(self, bodies)

    monkeypatch.setattr(Room, "decode", decode)
    return found


@pytest.mark.test
@pytest.mark.anyio
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
async def test_a_curve_that_was_asked_for_is_not_read_again(
    store: EmbeddedEventStore, smoothing: Smoothing, decoded: list[int]
) -> None:
    await add(store, {n: float(n % 13) for n in range(1000)})
    await store.merge()
    first = await ask(store, smoothing)
    assert sum(decoded) > 500, "most of it: the last chunk is decoded alone, and may be sealed"
    decoded.clear()
    assert_same(await ask(store, smoothing), first)
    assert_same(await ask(store, smoothing, 24, Range.of(0, 500)), await ask(store, smoothing, 24, Range.of(0, 500)))
    assert sum(decoded) < 150, (
        "each time, only the rest of the curve, which is less than a stretch, and the range's end"
    )


@pytest.mark.anyio
async def test_only_what_changed_is_read_again(store: EmbeddedEventStore, decoded: list[int]) -> None:
    curve = {n: float(n % 13) for n in range(1000)}
    await add(store, curve)
    await store.merge()
    await ask(store, EMA)
    for news in (dict.fromkeys(range(1000, 1100), 1.0), {900: -5.0}):
        await add(store, news)
        await store.merge()
        decoded.clear()
        found = await ask(store, EMA)
        assert 0 < sum(decoded) < 250
        Plain(curve := curve | news).check(found, EMA, 12, EVERYWHERE)


@pytest.mark.anyio
async def test_nothing_is_kept_of_points_that_are_not_merged(store: EmbeddedEventStore) -> None:
    await add(store, {n: float(n % 13) for n in range(1000)})
    await store.merge()
    await add(store, {500: 3.0})
    await ask(store, EMA)
    ((_, known),) = store._parts.curves._curves.items()
    assert isinstance(known, smoothed.Known)
    assert 450 < known.stretches[-1].end < 500


@pytest.mark.anyio
async def test_other_series_and_owners_change_nothing(store: EmbeddedEventStore, decoded: list[int]) -> None:
    for owner in (OWNER, Owner(OWNER.company, "other")):
        await add(store, {n: float(n % 13) for n in range(1000)}, owner)
    await store.merge()
    await ask(store, EMA)
    await add(store, {3: 7.0}, Owner(OWNER.company, "other"))
    await store.add(event_stores.batch(event_stores.scalars([1.0], variant="another")))
    await store.merge()
    decoded.clear()
    asked = BucketQuery(BucketAxis.ITER, lambda *_: 12, smoothing=EMA, aggregates=ALL)
    await store.scalar_buckets(SeriesQuery(OWNER, EventType.SCALAR), asked)
    assert sum(decoded) < 60


@pytest.mark.test
@pytest.mark.anyio
async def test_all_curves_together_have_a_bound(store: EmbeddedEventStore, tmp_path: Path) -> None:
    await add(store, {n: float(n % 13) for n in range(1000)})
    await store.merge()
    await store.seal()  # it changes how many stretches a curve has, and so its size
    await ask(store, EMA)
    most = 5 * store._parts.curves.size
    await store.close()
    bounded = EmbeddedEventStore(tmp_path, seal_seconds=None, bounds=replace(SMALL, curve_bytes=most))
    await bounded.open()
    curves = bounded._parts.curves
    asked = [Smoothing(Kind.EXPONENTIAL, n / 100) for n in range(50)]
    for smoothing in asked:
        await ask(bounded, smoothing)
        assert curves.size <= most
    assert [key.smoothing for key in curves._curves] == asked[-5:]
    assert curves.size == sum(known.size for known in curves._curves.values())
    await bounded.close()


@pytest.mark.anyio
@pytest.mark.parametrize("bounds", [replace(SMALL, bytes_of_a_curve=20_000)])
async def test_of_a_large_curve_only_the_beginning_is_kept(store: EmbeddedEventStore, decoded: list[int]) -> None:
    await add(store, {n: float(n % 13) for n in range(1000)})
    await store.merge()
    first = await ask(store, EMA)
    assert 20_000 <= store._parts.curves.size < 23_000
    decoded.clear()
    assert_same(await ask(store, EMA), first)
    assert 0 < sum(decoded) < 1000


@pytest.mark.anyio
async def test_readers_of_an_older_view_find_and_keep_nothing(store: EmbeddedEventStore) -> None:
    await add(store, {n: float(n % 13) for n in range(1000)})
    await store.merge()
    await ask(store, EMA)
    curves = store._parts.curves
    ((key, known),) = curves._curves.items()
    assert isinstance(known, smoothed.Known)
    begun = smoothed.Known(known.length, known.after, known.shift)
    merged = curves._merged
    assert merged is not None
    assert curves.find(key, begun, merged) is known
    assert curves.find(key, begun, merged - 1) is begun
    curves.will_merge(Memtable(merged + 1))
    curves.keep(key, known.until(500), merged)
    assert curves.find(key, begun, merged) is begun
    curves.has_merged(merged)
    assert curves.find(key, begun, merged) is known
    await add(store, {500: 3.0})
    await store.merge()
    curves.keep(key, known, merged)
    assert curves.find(key, begun, merged + 1).stretches[-1].end < 500
