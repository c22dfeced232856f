"""Servers delete the points that a caller knows while others write, compact and read: none goes that came since.

`servers.py` says how.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from apiserver.stores.events.blocks import deletion
from apiserver.stores.events.blocks.compaction import found_up_to
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.chance import examples
from tests.contract.event_stores import OWNER
from tests.stores.events.blocks.plain_blocks import PlainBlocks
from tests.stores.events.blocks.servers import BOUNDS, NUMBER, STEPS, Allowed, Call, ShakyBlocks, finish
from tests.stores.events.blocks.test_servers import ScalarServers, added, read


class DeletingServers(ScalarServers):
    @precondition(lambda self: self.writes and len(self.calls) < 4)
    @rule(server=NUMBER, steps=STEPS)
    def delete_known(self, server: int, steps: int) -> None:
        known = self.blocks.of(OWNER).ended_up_to
        self.begin(Call(self.server(server).delete_known(OWNER, known)), steps)

    def allowed(self) -> Allowed:
        """Points of before the place of a deletion may be gone. All others are there as if nothing had been deleted."""
        visible = sorted(self.blocks.of(OWNER).visible, key=lambda one: one.place)
        before = max([one.before for one in visible if one.before is not None], default=0)
        last = {key: one.place for one in visible for key in self.contents(one)}
        gone = {key for key, place in last.items() if place < before}
        return {key: values | {None} if key in gone else values for key, values in super().allowed().items()}


@pytest.mark.test
def test_servers_that_delete_known_points_beside_others_lose_no_other() -> None:
    run_state_machine_as_test(DeletingServers, settings=settings(examples(50), stateful_step_count=50))


KNOWN = {("loss", 0): 0.5, ("loss", 1): 0.25, ("other", 0): 1.0}


@pytest.mark.parametrize("late", [("loss", 3), ("loss", 0)], ids=["beyond all others", "in place of another one"])
@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_point_that_comes_at_any_step_stays(late: tuple[str, int], is_compacted: bool) -> None:
    """The known points go all together, or none of them does."""
    outcomes = set()
    for steps in range(100):
        blocks = ShakyBlocks()
        one, other = ColumnarScalars(blocks, bounds=BOUNDS), ColumnarScalars(blocks, bounds=BOUNDS)
        for at, value in KNOWN.items():
            finish(Call(one.add(added({at: value}))))
        if is_compacted:
            finish(Call(one.compact(OWNER, fewest=1)))
        deleting = Call(one.delete_known(OWNER, blocks.of(OWNER).ended_up_to))
        ended = any(deleting.has_ended() for _ in range(steps))
        finish(Call(other.add(added({late: 7.0}))))
        if not ended:
            finish(deleting)
        found = _read(blocks)
        assert found.pop(late) == 7.0
        left = {at: value for at, value in KNOWN.items() if at != late}
        assert found in ({}, left)
        outcomes.add(bool(found))
        if ended:
            break
    assert ended
    assert outcomes == {True, False}


def test_nothing_goes_if_some_points_are_newer_than_the_caller_knows() -> None:
    async def run() -> None:
        scalars = ColumnarScalars(blocks := PlainBlocks(), bounds=BOUNDS)
        await scalars.add(added({("loss", 0): 0.5}))
        known = await blocks.ended(OWNER)
        await scalars.add(added({("loss", 1): 0.25}))
        await scalars.compact(OWNER, fewest=1)
        assert await scalars.delete_known(OWNER, known) == 0
        assert len(await read(scalars)) == 2
        assert await scalars.delete_known(OWNER, await blocks.ended(OWNER)) == 2
        assert await read(scalars) == {}
        assert await scalars.delete_known(OWNER, await blocks.ended(OWNER)) == 0
        await scalars.add(added({("loss", 0): 0.5}))
        assert await read(scalars) == {("loss", 0): 0.5}

    asyncio.run(run())


def test_a_deletion_begins_again_if_blocks_are_compacted_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its lease had run out."""

    async def run() -> None:
        scalars = ColumnarScalars(blocks := PlainBlocks(), cache=0, bounds=BOUNDS)
        other = ColumnarScalars(blocks, bounds=BOUNDS)
        for value in (1.0, 2.0):
            await scalars.add(added({("loss", 0): value, ("loss", 1): value}))
        found = 0

        async def find(*how: Any) -> Any:
            nonlocal found
            answer, found = await found_up_to(*how), found + 1
            if found == 1:
                blocks.of(OWNER).lease = ("", 0.0)
                await other.compact(OWNER, fewest=1)
            return answer

        monkeypatch.setattr(deletion, "found_up_to", find)
        assert await scalars.delete_known(OWNER, await blocks.ended(OWNER)) == 2
        assert found == 2
        assert await read(scalars) == {}

    asyncio.run(run())


def _read(blocks: PlainBlocks) -> dict[tuple[str, int], float]:
    """What a reader sees who is not stopped."""
    unstopped = PlainBlocks()
    unstopped.owners = blocks.owners
    return asyncio.run(read(ColumnarScalars(unstopped, bounds=BOUNDS)))
