"""What compaction leaves behind: as few documents as there have to be. And that one server does it, however long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from apiserver.events.model import Owner
from apiserver.events.queries import PageQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import NewBlock
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.stores.events.blocks.plain_blocks import PlainBlocks

pytestmark = pytest.mark.anyio

FEWEST, FEW, LEASE = BOUNDS.fewest, BOUNDS.few, BOUNDS.lease


def bundles_left(blocks: PlainBlocks) -> int:
    """How many bundles are kept."""
    return len([one for one in blocks.of(OWNER).kept().values() if one.block is not None and one.block.members])


@pytest.mark.parametrize("fewest", [FEW, FEWEST])
async def test_bundles_do_not_stay_because_each_has_a_series_of_its_own(fewest: int) -> None:
    blocks = PlainBlocks()
    engine = ColumnarScalars(blocks)
    for number in range(fewest):
        own = scalars([0.5], metric=f"epoch {number}", iters=[number])
        await engine.add(batch(scalars([1.0], iters=[number]), own))
    await engine.compact(OWNER, fewest=fewest)
    assert bundles_left(blocks) == 0
    assert await blocks.crowded(fewest) == {}
    found = await engine.scalar_points(SCALARS, PageQuery(1000))
    assert len(found.iters) == 2 * fewest


async def test_a_series_that_comes_rarely_is_not_compacted_with_the_others_of_its_bundles() -> None:
    blocks = PlainBlocks()
    engine = ColumnarScalars(blocks)
    for number in range(FEWEST):
        rare = [scalars([0.5], metric="rare", iters=[number])] if number % 8 == 0 else []
        await engine.add(batch(scalars([1.0], iters=[number]), scalars([2.0], metric="other", iters=[number]), *rare))
    await engine.compact(OWNER)
    assert bundles_left(blocks) == FEWEST // 8
    await engine.compact(OWNER, fewest=FEW)
    assert bundles_left(blocks) == 0


async def test_single_values_of_a_batch_stay_in_one_document() -> None:
    blocks = PlainBlocks()
    engine = ColumnarScalars(blocks)
    await engine.add(batch(*(scalars([1.0], metric=f"metric {number}") for number in range(10))))
    await engine.compact(OWNER, fewest=FEW)
    assert len(blocks.of(OWNER).kept()) == bundles_left(blocks) == 1


class BreakingBlocks(PlainBlocks):
    """Fails once, after it has done what is asked."""

    breaks: BaseException | None = None
    at = ""

    async def then_break(self, name: str) -> None:
        if self.breaks is not None and name == self.at:
            error, self.breaks = self.breaks, None
            raise error

    async def ended(self, owner: Owner) -> int:
        ended = await super().ended(owner)
        await self.then_break("ended")
        return ended

    async def put(self, blocks: Sequence[NewBlock]) -> None:
        await super().put(blocks)
        await self.then_break("put")

    async def lease(self, owner: Owner, holder: str, seconds: float) -> bool:
        taken = await super().lease(owner, holder, seconds)
        await self.then_break("lease" if seconds else "giving back")
        return taken


@pytest.mark.parametrize("at", ["lease", "ended", "put"])
@pytest.mark.parametrize("error", [EventStoreBusy("away", overloaded=False), asyncio.CancelledError()], ids=repr)
async def test_a_compaction_that_ends_early_keeps_nobody_away(at: str, error: BaseException) -> None:
    engine = ColumnarScalars(blocks := BreakingBlocks(), bounds=ColumnarBounds(lease_questions=1))
    for value in (1.0, 2.0):
        await engine.add(batch(scalars([value])))
    blocks.at, blocks.breaks = at, error
    with pytest.raises(type(error)):
        await engine.compact(OWNER, fewest=FEW)
    assert await engine.delete_known(OWNER, await blocks.ended(OWNER)) == 1


async def test_a_lease_that_cannot_be_given_back_fails_no_compaction() -> None:
    engine = ColumnarScalars(blocks := BreakingBlocks())
    for value in (1.0, 2.0):
        await engine.add(batch(scalars([value])))
    blocks.at, blocks.breaks = "giving back", EventStoreBusy("away", overloaded=False)
    assert await engine.compact(OWNER, fewest=FEW)
    assert blocks.breaks is None


class SlowBlocks(PlainBlocks):
    """Each put takes two thirds of the time of a lease, once `is_slow`. Then another server asks for the lease."""

    time, puts, is_slow = 0.0, 0, False

    def now(self) -> float:
        return self.time

    async def put(self, blocks: Sequence[NewBlock]) -> None:
        await super().put(blocks)
        if self.is_slow:
            self.puts += 1
            self.time += LEASE * 2 / 3
            assert not await self.lease(OWNER, "another", LEASE)


@pytest.mark.parametrize("does", ["compact", "thin"])
async def test_the_lease_is_renewed_while_chunks_are_made(does: str) -> None:
    blocks = SlowBlocks()
    engine = ColumnarScalars(blocks, bounds=ColumnarBounds(points_at_a_time=100))
    for number in range(2):
        groups = [scalars([1.0] * 50, metric=name, iters=range(50 * number, 50 * number + 50)) for name in "abcde"]
        await engine.add(batch(*groups))
    blocks.is_slow = True
    if does == "compact":
        assert await engine.compact(OWNER, fewest=2)
    else:
        assert await engine.thin_scalars(SCALARS, 20) > 0
    assert blocks.puts >= 4
    assert await blocks.lease(OWNER, "another", LEASE)
