"""The points of scalars that every event store answers, by iteration and by time."""

from __future__ import annotations

from itertools import product

import pytest

from apiserver.events.model import SINGLE_VALUE_ITERATION, MetricSelection, ScalarPoints, ScalarPosition
from apiserver.events.queries import PageQuery
from tests.contract.event_stores import (
    INF,
    NAN,
    RECEIVED,
    SCALARS,
    Case,
    batch,
    buckets_of,
    case,
    same,
    scalars,
    select,
)

__all__ = ["case"]

pytestmark = pytest.mark.anyio


def rows(points: ScalarPoints) -> list[tuple[int, str, str]]:
    return [
        (iter, *points.names[series])
        for iter, series in zip(points.iters.tolist(), points.series.tolist(), strict=True)
    ]


async def test_a_page_may_end_at_an_iteration(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 2.0, 3.0], variant="a", iters=[-5, 0, 5])))
    await case.settle()
    await case.store.add(batch(scalars([4.0], variant="b", iters=[3]), scalars([5.0], variant="a", iters=[-7])))
    for until, inside in ((-8, []), (-7, [5.0]), (-5, [5.0, 1.0]), (3, [5.0, 1.0, 2.0, 4.0])):
        found = await case.store.scalar_points(SCALARS, PageQuery(10, until=until))
        assert found.values[found.iters <= until].tolist() == inside


async def test_points_have_everything(case: Case) -> None:
    await case.store.add(batch(scalars([1.5, NAN], timestamps=[7, 3], worker="w1"), received=RECEIVED))
    await case.settle()
    await case.store.add(batch(scalars([-INF], iters=[5], worker="w2"), received=RECEIVED + 1))
    points = await case.store.scalar_points(SCALARS, PageQuery(10))
    assert [points.names[n] for n in points.series] == [("loss", "train")] * 3
    assert (points.iters.tolist(), points.timestamps.tolist()) == ([0, 1, 5], [7, 3, 5])
    assert same(points.values, [1.5, NAN, -INF])
    assert points.workers == ["w1", "w1", "w2"]
    assert points.received.tolist() == [RECEIVED, RECEIVED, RECEIVED + 1]


async def test_pages_neither_skip_nor_repeat(case: Case) -> None:
    await case.store.add(batch(scalars([0.0] * 5, variant="b"), scalars([0.0] * 4, iters=[2, 4, 6, 8], variant="a")))
    await case.settle()
    await case.store.add(batch(scalars([0.0] * 3, iters=[1, 2, 9], variant="c")))
    await case.settle()
    expected = sorted(
        [(n, "loss", "b") for n in range(5)]
        + [(n, "loss", "a") for n in (2, 4, 6, 8)]
        + [(n, "loss", "c") for n in (1, 2, 9)]
    )
    for descending, limit in product((False, True), (1, 2, 7, 100)):
        walked: list[tuple[int, str, str]] = []
        found = rows(await case.store.scalar_points(SCALARS, PageQuery(limit, descending=descending)))
        while found:
            assert len(found) <= limit
            walked += found
            after = ScalarPosition(*walked[-1])
            found = rows(await case.store.scalar_points(SCALARS, PageQuery(limit, after, descending=descending)))
        assert walked == (expected[::-1] if descending else expected)


async def test_a_page_of_whole_iterations_does_not_end_inside_one(case: Case) -> None:
    await case.store.add(batch(*(scalars([0.0] * 3, variant=variant) for variant in "abcd")))
    await case.settle()
    expected = [(n, "loss", variant) for n in range(3) for variant in "abcd"]
    middle = ScalarPosition(1, "loss", "b")
    for descending, beyond in ((False, [(1, "loss", "c"), (1, "loss", "d")]), (True, [(1, "loss", "a")])):
        found = await case.store.scalar_points(SCALARS, PageQuery(5, descending=descending, whole=True))
        assert rows(found) == (expected[::-1] if descending else expected)[:8]
        found = await case.store.scalar_points(SCALARS, PageQuery(1, middle, descending=descending, whole=True))
        assert rows(found) == beyond


async def test_pages_of_points_are_selected(case: Case) -> None:
    await case.store.add(batch(*(scalars([0.0], metric=m, variant=v) for m in "ab" for v in "xy")))
    await case.settle()
    found = await case.store.scalar_points(
        select(SCALARS, MetricSelection("a", ("y",)), MetricSelection("b")), PageQuery(10)
    )
    assert rows(found) == [(0, "a", "y"), (0, "b", "x"), (0, "b", "y")]


async def test_pages_of_a_long_series(case: Case) -> None:
    await case.store.add(batch(scalars([float(n) for n in range(20_000)])))
    await case.settle()
    for after, descending in ((None, False), (None, True), (8000, False), (8000, True), (19_999, False), (0, True)):
        position = None if after is None else ScalarPosition(after, "loss", "train")
        found = await case.store.scalar_points(SCALARS, PageQuery(5000, position, descending=descending))
        if descending:
            expected = list(range(20_000 if after is None else after))[::-1][:5000]
        else:
            expected = list(range(0 if after is None else after + 1, 20_000))[:5000]
        assert found.iters.tolist() == expected
        assert found.values.tolist() == expected


@pytest.mark.parametrize("descending", [False, True])
async def test_shorter_pages_of_a_long_series_have_every_point_once(case: Case, descending: bool) -> None:
    await case.store.add(batch(scalars([float(n) for n in range(20_000)])))
    await case.settle()
    await case.store.add(batch(scalars([0.5] * 100, iters=range(19_000, 22_000, 30))))
    expected = [*range(20_000), *range(20_020, 22_000, 30)]
    walked: list[int] = []
    after = None
    while True:
        asked: PageQuery[ScalarPosition] = PageQuery(7000, after, descending=descending, may_be_shorter=True)
        found = (await case.store.scalar_points(SCALARS, asked)).iters.tolist()
        if not found:
            break
        assert len(found) <= 7000
        walked += found
        after = ScalarPosition(walked[-1], "loss", "train")
    assert walked == (expected[::-1] if descending else expected)


async def test_iterations_may_be_as_large_as_64_bits_hold(case: Case) -> None:
    extremes = [-(2**63), -1, 2**63 - 1]
    await case.store.add(batch(scalars([1.0, 2.0, 3.0], iters=extremes, timestamps=[0, 1, 2])))
    await case.settle()
    (stats,) = await case.store.scalar_stats(SCALARS)
    assert (stats.min_iter, stats.max_iter) == (extremes[0], extremes[-1])
    for descending in (False, True):
        found = await case.store.scalar_points(SCALARS, PageQuery(10, descending=descending))
        assert found.iters.tolist() == (extremes[::-1] if descending else extremes)
    beyond = await case.store.scalar_points(SCALARS, PageQuery(10, ScalarPosition(extremes[-1], "loss", "train")))
    assert beyond.iters.tolist() == []
    assert (await buckets_of(case, 1)).x.tolist() == extremes


async def test_a_walk_ends_with_the_greatest_iteration(case: Case) -> None:
    iters = [*range(600), 2**63 - 4, 2**63 - 1]
    await case.store.add(batch(scalars([0.0] * len(iters), iters=iters, timestamps=iters)))
    await case.settle()
    await case.store.add(batch(scalars([1.0], iters=[2**63 - 4], timestamps=[0])))
    found = await case.store.scalar_points(SCALARS, PageQuery(10, ScalarPosition(599, "loss", "train")))
    assert (found.iters.tolist(), found.values.tolist()) == (iters[-2:], [1.0, 0.0])


async def test_points_come_by_time(case: Case) -> None:
    later = [SINGLE_VALUE_ITERATION, *range(3)]
    await case.store.add(
        batch(
            scalars([0.0] * 4, variant="b", iters=range(4), timestamps=[5, 1, 9, 5]),
            scalars([1.0] * 4, variant="a", iters=later, timestamps=[0, 5, 7, -3]),
        )
    )
    await case.settle()

    async def page(after: int | None, limit: int) -> list[tuple[int, int, str]]:
        found = await case.store.earliest_points(SCALARS, limit, after)
        assert [found.names[n][0] for n in found.series] == ["loss"] * len(found.iters)
        return [(time, *row[::2]) for time, row in zip(found.timestamps.tolist(), rows(found), strict=True)]

    assert await page(None, 3) == [(-3, 2, "a"), (0, SINGLE_VALUE_ITERATION, "a"), (1, 1, "b")]
    assert await page(1, 1) == [(5, 0, "a"), (5, 0, "b"), (5, 3, "b")]
    assert await page(-3, 1) == [(0, SINGLE_VALUE_ITERATION, "a")]
    assert await page(5, 100) == [(7, 1, "a"), (9, 2, "b")]
    assert await page(9, 1) == []
    found = await case.store.earliest_points(select(SCALARS, MetricSelection("loss", ("b",))), 1)
    assert rows(found) == [(1, "loss", "b")]


async def test_points_of_a_long_series_come_by_time(case: Case) -> None:
    length = 12_000
    times = [(n * 7919) % 100 + n // 2 for n in range(length)]  # in about the order of iterations
    await case.store.add(batch(scalars([float(n) for n in range(length)], timestamps=times)))
    await case.settle()
    expected = sorted((time, n) for n, time in enumerate(times))
    walked: list[tuple[int, int]] = []
    while len(walked) < length:
        after = walked[-1][0] if walked else None
        found = await case.store.earliest_points(SCALARS, 5000, after)
        walked += zip(found.timestamps.tolist(), found.values.astype(int).tolist(), strict=True)
        assert len(found.iters) >= min(5000, length - len(walked) + len(found.iters))
    assert walked == expected


async def test_last_values_are_the_last_by_iteration(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 2.0, 3.0], iters=[5, 1, 9]), scalars([4.0], variant="valid")))
    await case.settle()
    await case.store.add(batch(scalars([8.0], iters=[7])))
    found = await case.store.last_values(SCALARS, 3)
    assert found == {("loss", "train"): [1.0, 8.0, 3.0], ("loss", "valid"): [4.0]}
    assert await case.store.last_values(select(SCALARS, MetricSelection("loss", ("train",))), 1) == {
        ("loss", "train"): [3.0]
    }
