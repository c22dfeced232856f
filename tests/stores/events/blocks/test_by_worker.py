"""What workers reported, read of blocks: chunks tell who reported when, so that few points are read."""

from __future__ import annotations

from functools import partial

import pytest

from apiserver.events.model import WorkerSpan
from apiserver.events.queries import Grid
from apiserver.stores.events.blocks import encoding
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.stores.events.blocks.watched_blocks import WatchedBlocks

pytestmark = pytest.mark.anyio

BOUNDS = ColumnarBounds(block_points=100)


async def compacted(blocks: WatchedBlocks) -> ColumnarScalars:
    """An engine with chunks of 100 points each, of which the last one is of two workers."""
    engine = ColumnarScalars(blocks, bounds=BOUNDS)
    await engine.add(batch(scalars(range(350), worker="one")))
    await engine.add(batch(scalars(range(50), iters=range(350, 400), worker="two")))
    await engine.compact(OWNER, fewest=1)
    blocks.forget()
    return engine


async def test_spans_need_no_points_of_chunks() -> None:
    blocks = WatchedBlocks()
    engine = await compacted(blocks)
    expected = [WorkerSpan("loss", "train", "one", 350, 0, 349), WorkerSpan("loss", "train", "two", 50, 350, 399)]
    assert await engine.worker_spans(SCALARS) == expected
    assert blocks.columns == {encoding.SPANS}
    await engine.add(batch(scalars([1.0], iters=[20], timestamps=[1000], worker="two")))
    blocks.forget()
    expected = [WorkerSpan("loss", "train", "one", 349, 0, 349), WorkerSpan("loss", "train", "two", 51, 350, 1000)]
    assert await engine.worker_spans(SCALARS) == expected
    assert [block.first for block, _ in blocks.fetched] == [0, 20]


async def test_means_read_only_the_chunks_of_their_time() -> None:
    blocks = WatchedBlocks()
    engine = await compacted(blocks)
    (one,) = await engine.worker_means(SCALARS, Grid(120, 179, 30))
    assert (one.worker, one.steps.tolist(), one.means.tolist()) == ("one", [0, 1], [134.5, 164.5])
    assert {block.first for block, names in blocks.fetched if encoding.DETAILS in names} == {100}


async def test_spans_are_whole_if_blocks_are_compacted_meanwhile() -> None:
    blocks = WatchedBlocks()
    engine = await compacted(blocks)
    await engine.add(batch(scalars([1.0], iters=[400], worker="two")))
    blocks.before_fetch = partial(ColumnarScalars(blocks, bounds=BOUNDS).compact, OWNER, fewest=1)
    assert [span.points for span in await engine.worker_spans(SCALARS)] == [350, 51]
