"""Servers write points, delete, compact and read at once, stop anywhere, and machines fail: nothing is lost or doubled.

`servers.py` says how.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from apiserver.events.model import EventBatch
from apiserver.events.queries import PageQuery
from apiserver.stores.events.blocks.blocks import Version
from apiserver.stores.events.blocks.encoding import curve_of
from apiserver.stores.events.blocks.precedence import BlockPart
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from apiserver.stores.events.codec.points import Points as Columns
from apiserver.stores.events.codec.points import WholePoints
from tests.chance import examples
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.stores.events.blocks.plain_blocks import PlainBlocks, Write, found_of
from tests.stores.events.blocks.servers import BOUNDS, NUMBER, STEPS, Call, Contents, Servers, ShakyBlocks, finish

#: Values by metric and iteration. A batch with both metrics is put as a bundle.
Points = dict[tuple[str, int], float]
METRICS = ("loss", "other")
PLACES = [*product(METRICS, range(4))]
POINTS = st.dictionaries(st.sampled_from(PLACES), st.integers(0, 9).map(float), min_size=1, max_size=6)


class ScalarServers(Servers):
    keys = PLACES
    undone_may_stay = True

    def new_server(self, blocks: PlainBlocks, cache: int) -> ColumnarScalars:
        return ColumnarScalars(blocks, cache=cache, bounds=BOUNDS)

    async def read_all(self, server: ColumnarScalars) -> Contents:
        return await read(server)

    def contents(self, write: Write) -> Contents:
        if write.block is None or (write.block.statement is not None and write.block.statement.newest is not None):
            return {}
        found: Points = {}
        for block in found_of(write.block, Version(write.place, 1)):
            curve = curve_of(BlockPart(block, block.first, block.last), write.block.columns, {})
            places = [(block.series[0], iteration) for iteration in curve.iters.tolist()]
            found |= zip(places, curve.values.tolist(), strict=True)
        return found

    @precondition(lambda self: len(self.calls) < 4)
    @rule(server=NUMBER, points=POINTS, steps=STEPS)
    def add(self, server: int, points: Points, steps: int) -> None:
        self.begin(Call(self.server(server).add(added(points))), steps)

    @precondition(lambda self: len(self.calls) < 4)
    @rule(server=NUMBER, points=POINTS, steps=STEPS)
    def put(self, server: int, points: Points, steps: int) -> None:
        self.begin(Call(self.server(server).put_points(OWNER, whole(points))), steps)


def whole(points: Points) -> list[WholePoints]:
    found = []
    for metric in METRICS:
        iters = np.array(sorted(at for name, at in points if name == metric), np.int64)
        if len(iters):
            values = np.array([points[metric, at] for at in iters.tolist()])
            columns = Columns(iters, values, iters, np.zeros_like(iters), iters)
            found.append(WholePoints((metric, "train"), columns, ["worker"]))
    return found


async def read(server: ColumnarScalars) -> Points:
    found = await server.scalar_points(SCALARS, PageQuery(1000))
    metrics = [found.names[number][0] for number in found.series.tolist()]
    places = [*zip(metrics, found.iters.tolist(), strict=True)]
    assert len({*places}) == len(places)
    return dict(zip(places, found.values.tolist(), strict=True))


def added(points: Points) -> EventBatch:
    return batch(*(scalars([value], metric=metric, iters=[at]) for (metric, at), value in points.items()))


TestServers = ScalarServers.TestCase
TestServers.settings = settings(examples(50), stateful_step_count=50)


def test_a_compaction_that_began_before_does_not_hide_points_that_are_put_in_a_gap() -> None:
    blocks, points = ShakyBlocks(), {("loss", 0): 0.5, ("loss", 1): 0.75, ("loss", 3): 0.25, ("other", 0): 1.0}
    copier, other = ColumnarScalars(blocks, bounds=BOUNDS), ColumnarScalars(blocks, bounds=BOUNDS)
    for at in (("loss", 0), ("loss", 3)):
        finish(Call(copier.add(added({at: points[at]}))))
    putting = Call(copier.put_points(OWNER, whole({("loss", 1): 0.75})))
    go_on(putting, 3)  # it has found nothing at 1
    finish(Call(other.add(added({("other", 0): 1.0}))))
    compacting = Call(other.compact(OWNER, fewest=2))
    go_on(compacting, 4)  # it has made a chunk of 0 to 3
    assert len(blocks.of(OWNER).writes) == 3
    finish(putting)
    finish(compacting)
    for _ in range(2):
        finish(Call(read(other), [{at: {points.get(at)} for at in PLACES}]))
        finish(Call(other.compact(OWNER, fewest=2)))


def go_on(call: Call, steps: int) -> None:
    for _ in range(steps):
        assert not call.has_ended()


def test_nothing_is_removed_because_of_a_chunk_that_may_be_undone() -> None:
    blocks, points = ShakyBlocks(), {("loss", 1): 0.5, ("loss", 2): 0.25, ("other", 1): 0.75}
    one, other = ColumnarScalars(blocks, bounds=BOUNDS), ColumnarScalars(blocks, bounds=BOUNDS)
    finish(Call(one.add(added(points))))
    blocks.holds = True
    compacting = Call(one.compact(OWNER, fewest=1))
    writes = blocks.of(OWNER).writes
    while len(writes) == 1:
        assert not compacting.has_ended()
    writes[-1].is_visible = True
    blocks.holds = False
    finish(Call(other.compact(OWNER, fewest=1)))
    blocks.of(OWNER).fail_over()
    finish(Call(read(other), [{at: {points.get(at)} for at in PLACES}]))
    finish(compacting)
