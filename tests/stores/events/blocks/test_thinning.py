"""Servers thin series while others write, compact, delete and read, and stop anywhere: no point is lost that stays.

`servers.py` says how.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from apiserver.events.model import EventBatch, Int64Array, ScalarStats
from apiserver.events.queries import PageQuery
from apiserver.stores.events.blocks import thinning
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from apiserver.stores.events.codec.points import Points, take
from tests.chance import examples
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.blocks.plain_blocks import PlainBlocks
from tests.stores.events.blocks.servers import BOUNDS, NUMBER, STEPS, Allowed, Call, ShakyBlocks, finish
from tests.stores.events.blocks.test_servers import ScalarServers, read


class OddStay(NamedTuple):
    """Of a series, points at odd iterations stay, and those at both ends."""

    ends: Int64Array

    @classmethod
    def of(cls, stats: ScalarStats, ends: tuple[int, int], points: int) -> OddStay:
        return cls(np.array(ends))

    def thinned(self, points: Points) -> Points:
        return take(points, (points.iters % 2 == 1) | np.isin(points.iters, self.ends))


class ThinningServers(ScalarServers):
    thinned = False

    @precondition(lambda self: self.writes and len(self.calls) < 4)
    @rule(server=NUMBER, points=st.integers(1, 3), steps=STEPS)
    def thin(self, server: int, points: int, steps: int) -> None:
        self.thinned = True
        self.begin(Call(self.server(server).thin_scalars(SCALARS, points)), steps)

    def allowed(self) -> Allowed:
        """Points at odd iterations are there as if nothing had been thinned. Others may be gone, once it was."""
        gone = {None} if self.thinned else set()
        return {key: values if key[1] % 2 else values | gone for key, values in super().allowed().items()}


@pytest.fixture
def _odd_points_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "Thinning", OddStay)


@pytest.mark.test
@pytest.mark.usefixtures("_odd_points_stay")
def test_servers_that_thin_beside_others_lose_nothing_that_stays() -> None:
    run_state_machine_as_test(ThinningServers, settings=settings(examples(50), stateful_step_count=50))


@pytest.mark.test
def test_a_server_that_stops_anywhere_has_lost_nothing_and_the_next_one_completes_it() -> None:
    """What stays of the series fills several chunks."""
    bounds = replace(BOUNDS, block_points=6)
    values = np.random.default_rng(1).normal(size=90).tolist()
    added = [batch(scalars(values[n : n + 30], iters=range(n, n + 30))) for n in range(0, 90, 30)]
    whole = {("loss", at): value for at, value in enumerate(values)}
    stays = {("loss", at): whole["loss", at] for at in asyncio.run(_iterations_that_stay(added))}
    assert 12 < len(stays) <= 24
    partly = 0
    for steps in range(100):
        blocks = ShakyBlocks()
        for one in added:
            finish(Call(ColumnarScalars(blocks, bounds=bounds).add(one)))
        thinner = Call(ColumnarScalars(blocks, bounds=bounds).thin_scalars(SCALARS, 24))
        ended = any(thinner.has_ended() for _ in range(steps))
        thinner.steps.close()
        for write in blocks.of(OWNER).writes:  # what it had sent arrives
            write.is_visible = write.has_ended = True
        found = _read(blocks)
        assert stays.items() <= found.items() <= whole.items()
        partly += len(stays) < len(found) < len(whole)
        finish(Call(ColumnarScalars(blocks, bounds=bounds).thin_scalars(SCALARS, 24)))
        assert _read(blocks) == stays
        if ended:
            break
    assert ended
    assert partly > 1


async def _iterations_that_stay(added: Sequence[EventBatch]) -> list[int]:
    plain = PlainEventStore()
    for one in added:
        await plain.add(one)
    await plain.thin_scalars(SCALARS, 24)
    found: list[int] = (await plain.scalar_points(SCALARS, PageQuery(100))).iters.tolist()
    return found


def _read(blocks: PlainBlocks) -> dict[tuple[str, int], float]:
    """What a reader sees who is not stopped."""
    unstopped = PlainBlocks()
    unstopped.owners = blocks.owners
    return asyncio.run(read(ColumnarScalars(unstopped, bounds=BOUNDS)))
