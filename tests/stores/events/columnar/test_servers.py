"""Servers write points, delete, compact and read at once, stop anywhere, and machines fail: nothing is lost or doubled.

`servers.py` says how.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from apiserver.events.queries import PageQuery
from apiserver.stores.events.columnar import whole_points
from apiserver.stores.events.columnar.blocks import Version
from apiserver.stores.events.columnar.encoding import curve_of
from apiserver.stores.events.columnar.scalars import ColumnarScalars
from apiserver.stores.events.columnar.stretches import BlockPart
from apiserver.stores.events.columns.points import Points as Columns
from apiserver.stores.events.columns.whole import WholePoints
from tests.chance import examples
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.stores.events.columnar.plain_blocks import PlainBlocks, Write
from tests.stores.events.columnar.servers import (
    NUMBER,
    STEPS,
    Call,
    Contents,
    Servers,
    ShakyBlocks,
    finish,
    remembers_few,
)

__all__ = ["remembers_few"]

Points = dict[int, float]
NAME = ("loss", "train")
ITERATIONS = range(4)
POINTS = st.dictionaries(st.sampled_from(ITERATIONS), st.integers(0, 9).map(float), min_size=1, max_size=4)


class ScalarServers(Servers):
    keys = ITERATIONS
    undone_may_stay = True

    def new_server(self, blocks: PlainBlocks, cache: int) -> ColumnarScalars:
        return ColumnarScalars(blocks, cache=cache)

    async def read_all(self, server: ColumnarScalars) -> Contents:
        return await read(server)

    def contents(self, write: Write) -> Contents:
        if write.block is None or (write.block.statement is not None and write.block.statement.newest is not None):
            return {}
        block = write.block.at(Version(write.place, 1))
        curve = curve_of(BlockPart(block, block.first, block.last), write.block.columns)
        return dict(zip(curve.iters.tolist(), curve.values.tolist(), strict=True))

    @precondition(lambda self: len(self.calls) < 4)
    @rule(server=NUMBER, points=POINTS, steps=STEPS)
    def add(self, server: int, points: Points, steps: int) -> None:
        added = batch(scalars([*points.values()], iters=[*points]))
        self.begin(Call(self.server(server).add(added)), steps)

    @precondition(lambda self: len(self.calls) < 4)
    @rule(server=NUMBER, points=POINTS, steps=STEPS)
    def put(self, server: int, points: Points, steps: int) -> None:
        self.begin(Call(self.server(server).put_points(OWNER, [whole(points)])), steps)


def whole(points: Points) -> WholePoints:
    iters = np.array(sorted(points), np.int64)
    values = np.array([points[iter] for iter in iters.tolist()])
    return WholePoints(NAME, Columns(iters, values, iters, np.zeros_like(iters), iters), ["worker"])


async def read(server: ColumnarScalars) -> Points:
    found = await server.scalar_points(SCALARS, PageQuery(1000))
    assert len({*found.iters.tolist()}) == len(found.iters)
    return dict(zip(found.iters.tolist(), found.values.tolist(), strict=True))


@pytest.fixture(autouse=True, scope="module")
def _points_become_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_points, "MANY", 1)
        yield


TestServers = ScalarServers.TestCase
TestServers.settings = settings(examples(50), stateful_step_count=50)


def test_nothing_is_removed_because_of_a_chunk_that_may_be_undone() -> None:
    blocks, points = ShakyBlocks(), {1: 0.5, 2: 0.25}
    one, other = ColumnarScalars(blocks), ColumnarScalars(blocks)
    finish(Call(one.add(batch(scalars([*points.values()], iters=[*points])))))
    blocks.holds = True
    compacting = Call(one.compact(OWNER, fewest=1))
    writes = blocks.of(OWNER).writes
    while len(writes) == 1:
        assert not compacting.has_ended()
    writes[-1].is_visible = True
    blocks.holds = False
    finish(Call(other.compact(OWNER, fewest=1)))
    blocks.of(OWNER).fail_over()
    finish(Call(read(other), [{at: {points.get(at)} for at in ITERATIONS}]))
    finish(compacting)
