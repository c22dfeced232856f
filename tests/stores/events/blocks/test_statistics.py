"""Stats, last values and numbers of points need few columns, and are right while blocks become chunks.

That they are those of the plain event store is tested in `test_scalars.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from apiserver.events.model import SINGLE_VALUE_ITERATION
from apiserver.stores.events.blocks import encoding
from apiserver.stores.events.blocks.blocks import NewBlock
from apiserver.stores.events.blocks.bounds import BOUNDS
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from apiserver.stores.events.codec.points import Points, WholePoints
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.stores.events.blocks.plain_blocks import PlainBlocks
from tests.stores.events.blocks.servers import Call, ShakyBlocks, finish
from tests.stores.events.blocks.watched_blocks import WatchedBlocks

pytestmark = pytest.mark.anyio

OTHER = OWNER._replace(id="other task")
NAME = ("loss", "train")


Fetched = tuple[int, int, tuple[str, ...]]


def fetched(blocks: WatchedBlocks) -> list[list[Fetched]]:
    """The first and the last iteration of each block that was fetched, and which columns, request by request."""
    return [[(block.first, block.last, tuple(names)) for block, names in some] for some in blocks.fetches]


async def test_stats_of_many_owners_take_one_request_for_blocks_and_one_for_columns() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks)
    await engine.add(batch(scalars([1.0] * 9), scalars([2.0] * 9, owner=OTHER)))
    for owner in (OWNER, OTHER):
        await engine.compact(owner, fewest=1)
    await engine.add(batch(scalars([3.0, 4.0], iters=[20, 25], owner=OTHER)))
    engine = ColumnarScalars(blocks)  # the server that made the chunks has their columns
    blocks.forget()
    for _ in range(2):
        queries = [SCALARS, replace(SCALARS, owner=OTHER)]
        assert [[one.sum for one in found] for found in await engine.scalar_stats_of_each(queries)] == [[9.0], [25.0]]
    of_chunks, of_fragment = [(0, 8, ("stats",))] * 2, (20, 25, ("curve", "details"))
    assert (blocks.searches, fetched(blocks)) == (2, [[*of_chunks, of_fragment]])


async def test_blocks_that_do_not_overlap_are_counted_without_their_columns() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks)
    await engine.add(batch(scalars([1.0] * 9)))
    await engine.compact(OWNER, fewest=1)
    await engine.add(batch(scalars([5.0], iters=[SINGLE_VALUE_ITERATION]), scalars([1.0] * 3, variant="test")))
    engine = ColumnarScalars(blocks)
    blocks.forget()
    assert await engine.count(SCALARS) == 13
    assert blocks.fetches == []
    await engine.add(batch(scalars([2.0] * 4, iters=[7, 8, 9, 10])))
    assert await engine.count(SCALARS) == 15
    assert [[one[:2] for one in some] for some in fetched(blocks)] == [[(0, 8), (7, 10)]]


async def test_only_the_last_blocks_are_read_for_last_values() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks)
    for first in range(0, 50, 10):
        await engine.add(batch(scalars([float(first + n) for n in range(10)], iters=range(first, first + 10))))
    await engine.add(batch(scalars([1.0], variant="test")))
    assert await engine.last_values(SCALARS, 2) == {NAME: [48.0, 49.0], ("loss", "test"): [1.0]}
    assert fetched(blocks) == [[(0, 0, ("curve",)), (40, 49, ("curve",))]]
    blocks.forget()
    await engine.add(batch(scalars([-1.0] * 10, iters=range(40, 50))))
    assert (await engine.last_values(SCALARS, 12))[NAME] == [38.0, 39.0, *[-1.0] * 10]
    assert [sorted(first for first, _, _ in some) for some in fetched(blocks)] == [[40], [30]]


async def test_a_chunk_may_count_where_it_has_no_point() -> None:
    def chunk(iters: Sequence[int], ends: tuple[int, int], up_to: int) -> list[NewBlock]:
        column = np.array(iters)
        points = Points(column, column.astype(np.float64), column, column * 0, column)
        return encoding.chunks_of(OWNER, WholePoints(NAME, points, ["worker"]), ends, up_to, 1, BOUNDS)

    blocks = PlainBlocks()
    await blocks.put([*chunk([0, 99], (0, 99), 1), *chunk([0], (0, 20), 2), *chunk([99], (99, 99), 3)])
    engine = ColumnarScalars(blocks)
    (stats,) = await engine.scalar_stats(SCALARS)
    assert (stats.count, stats.min_iter, stats.max_iter, stats.sum) == (2, 0, 99, 99.0)
    assert await engine.count(SCALARS) == 2
    assert await engine.last_values(SCALARS, 2) == {NAME: [0.0, 99.0]}


def test_answers_are_the_same_whenever_a_compaction_comes_between() -> None:
    for steps in range(6):
        blocks = ShakyBlocks()
        writer, reader = ColumnarScalars(blocks), ColumnarScalars(blocks, cache=0)
        for value in range(3):
            finish(Call(writer.add(batch(scalars([float(value)] * 3, iters=range(value, value + 3))))))
        finish(Call(writer.compact(OWNER, fewest=1)))
        finish(Call(writer.add(batch(scalars([8.0, 7.0], iters=[2, 5])))))
        answers: list[Any] = []
        reading = Call(read(reader, answers))
        for _ in range(steps):
            assert not reading.has_ended()
        finish(Call(writer.compact(OWNER, fewest=1)))
        finish(reading)
        assert answers == [(6, 20.0, 2), 6, {NAME: [2.0, 2.0, 7.0]}]


async def read(engine: ColumnarScalars, answers: list[Any]) -> None:
    (stats,) = await engine.scalar_stats(SCALARS)
    answers.append((stats.count, stats.sum, stats.max_value_iter))
    answers.append(await engine.count(SCALARS))
    answers.append(await engine.last_values(SCALARS, 3))
