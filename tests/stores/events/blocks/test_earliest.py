"""Points in the order of their timestamps, read of blocks: only chunks are read that may have the first ones."""

from __future__ import annotations

import pytest

from apiserver.stores.events.blocks import encoding
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.stores.events.blocks.watched_blocks import WatchedBlocks

pytestmark = pytest.mark.anyio


async def test_only_chunks_are_read_that_may_have_the_first_points() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks, bounds=ColumnarBounds(block_points=100))
    await engine.add(batch(scalars(range(500), timestamps=range(500, 0, -1))))
    await engine.compact(OWNER, fewest=1)
    blocks.forget()
    page = await engine.earliest_points(SCALARS, 150, after=110)
    assert page.timestamps.tolist() == [*range(111, 261)]
    assert {block.first for block, names in blocks.fetched if encoding.DETAILS in names} == {200, 300}
