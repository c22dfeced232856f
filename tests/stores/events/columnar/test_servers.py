"""Servers write, delete, compact and read at once, stop anywhere, and machines fail: nothing is lost or doubled.

Each call of a server stops before every step of the store, until a rule lets it go on. Writes become visible in any
order, end later, and are undone if a machine fails before they have ended.

`EVENTS_EXAMPLES=5000 pytest tests/stores/events/columnar` looks longer.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from apiserver.events.model import Owner
from apiserver.events.queries import PageQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.columnar.blocks import Version
from apiserver.stores.events.columnar.encoding import curve_of
from apiserver.stores.events.columnar.scalars import ColumnarScalars
from apiserver.stores.events.columnar.stretches import BlockPart
from tests.chance import examples
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.stores.events.columnar.plain_blocks import PlainBlocks, Write

Points = dict[int, float]
#: The values that a reader may find at each iteration; None: no point.
Allowed = dict[int, set[float | None]]
ITERATIONS = range(4)
POINTS = st.dictionaries(st.sampled_from(ITERATIONS), st.integers(0, 9).map(float), min_size=1, max_size=4)
#: How far a call goes; usually to its end.
STEPS = st.sampled_from([50, 50, *range(8)])
#: Picks a server, a call or a write: the number modulo how many there are.
NUMBER = st.integers(0, 9)


class _Pause:
    def __await__(self) -> Generator[None, None, None]:
        yield


class ShakyBlocks(PlainBlocks):
    """Calls stop before each step. While it `holds` writes, they end when a rule lets them, else at once."""

    holds = False

    async def pause(self) -> None:
        await _Pause()

    async def lease(self, owner: Owner, holder: str, seconds: float) -> bool:
        """Nothing depends on leases: all servers may have one at once."""
        return True

    async def end(self, writes: Sequence[Write]) -> None:
        if not self.holds:
            await super().end(writes)
        while not all(one.has_ended for one in writes):
            if any(one.is_undone for one in writes):
                raise EventStoreBusy("a machine failed", may_be_kept=True)
            await self.pause()


@dataclass(eq=False)
class Call:
    """A call of a server that is under way. If it is a read: what it may answer, at each moment since it began."""

    steps: Coroutine[Any, Any, Any]
    allowed: list[Allowed] = field(default_factory=list)

    def has_ended(self) -> bool:
        """Let it go on by a step. What it answers must have been so at some moment."""
        try:
            self.steps.send(None)
        except StopIteration as end:
            self.check(end.value)
            return True
        except EventStoreBusy:
            return True
        return False

    def check(self, answer: Points) -> None:
        """Assert that this may be answered."""
        if self.allowed:
            assert any(all(answer.get(at) in values for at, values in one.items()) for one in self.allowed)


class Servers(RuleBasedStateMachine):
    """Each rule lets one server go on by a step, or stop for good, or lets the store do something."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = ShakyBlocks()
        self.servers = [ColumnarScalars(self.blocks, cache=cache) for cache in (0, 10**6, 10**6)]
        self.calls: list[Call] = []

    @property
    def writes(self) -> list[Write]:
        return self.blocks.of(OWNER).writes

    # --- servers -----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.calls) < 4)
    @rule(server=NUMBER, points=POINTS, steps=STEPS)
    def add(self, server: int, points: Points, steps: int) -> None:
        added = batch(scalars([*points.values()], iters=[*points]))
        self.begin(Call(self.server(server).add(added)), steps)

    @precondition(lambda self: len(self.calls) < 4)
    @rule(server=NUMBER, fewest=st.integers(1, 2), steps=STEPS)
    def compact(self, server: int, fewest: int, steps: int) -> None:
        self.begin(Call(self.server(server).compact(OWNER, fewest=fewest)), steps)

    @precondition(lambda self: len(self.writes) > 3 and len(self.calls) < 4)
    @rule(server=NUMBER, steps=STEPS)
    def delete(self, server: int, steps: int) -> None:
        self.begin(Call(self.server(server).delete([OWNER])), steps)

    @precondition(lambda self: self.writes and len(self.calls) < 4)
    @rule(server=NUMBER, steps=STEPS)
    def read(self, server: int, steps: int) -> None:
        self.begin(Call(read(self.server(server)), [self.allowed()]), steps)

    def begin(self, call: Call, steps: int) -> None:
        self.calls.append(call)
        self.go_on_with(call, steps)

    @precondition(lambda self: self.calls)
    @rule(number=NUMBER, steps=STEPS)
    def go_on(self, number: int, steps: int) -> None:
        self.go_on_with(self.calls[number % len(self.calls)], steps)

    def go_on_with(self, call: Call, steps: int) -> None:
        for _ in range(steps):
            if call.allowed:
                call.allowed.append(self.allowed())
            if call.has_ended():
                self.calls.remove(call)
                return

    @precondition(lambda self: self.calls)
    @rule(number=NUMBER)
    def stop(self, number: int) -> None:
        self.calls.pop(number % len(self.calls)).steps.close()

    def server(self, number: int) -> ColumnarScalars:
        return self.servers[number % len(self.servers)]

    # --- the store ---------------------------------------------------------------------------------

    @rule(holds=st.booleans())
    def hold_writes(self, holds: bool) -> None:
        self.blocks.holds = holds

    @precondition(lambda self: self.under_way())
    @rule(number=NUMBER)
    def let_a_write_be_seen(self, number: int) -> None:
        some = self.under_way()
        some[number % len(some)].is_visible = True

    @precondition(lambda self: self.under_way())
    @rule(number=NUMBER)
    def end_a_write(self, number: int) -> None:
        some = self.under_way()
        one = some[number % len(some)]
        one.is_visible = one.has_ended = True

    @precondition(lambda self: self.under_way())
    @rule()
    def end_all_writes(self) -> None:
        for one in self.under_way():
            one.is_visible = one.has_ended = True

    @precondition(lambda self: self.under_way())
    @rule()
    def let_a_machine_fail(self) -> None:
        self.blocks.of(OWNER).fail_over()

    def under_way(self) -> list[Write]:
        return [one for one in self.writes if not (one.has_ended or one.is_undone)]

    def teardown(self) -> None:
        for call in self.calls:
            call.steps.close()

    # --- what has to be ----------------------------------------------------------------------------

    def allowed(self) -> Allowed:
        """The value of the last write counts. One that was undone may count, too: its client was told so."""
        found: Allowed = {at: {None} for at in ITERATIONS}
        for one in self.writes:
            if one.is_undone:
                for at, value in _points(one).items():
                    found[at].add(value)
            elif one.is_visible and one.is_deletion:
                found = {at: {None} for at in ITERATIONS}
            elif one.is_visible:
                for at, value in _points(one).items():
                    found[at] = {value}
        return found

    @invariant()
    def every_point_is_there_once(self) -> None:
        blocks = PlainBlocks()
        blocks.owners = self.blocks.owners
        call = Call(read(ColumnarScalars(blocks)), [self.allowed()])
        assert call.has_ended()


async def read(server: ColumnarScalars) -> Points:
    found = await server.scalar_points(SCALARS, PageQuery(1000))
    assert len({*found.iters.tolist()}) == len(found.iters)
    return dict(zip(found.iters.tolist(), found.values.tolist(), strict=True))


def _points(write: Write) -> Points:
    """The points of a fragment; none of other writes."""
    if write.block is None or write.block.statement is not None:
        return {}
    block = write.block.at(Version(write.place, 1))
    curve = curve_of(BlockPart(block, block.first, block.last), write.block.columns)
    return dict(zip(curve.iters.tolist(), curve.values.tolist(), strict=True))


TestServers = Servers.TestCase
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


def finish(call: Call) -> None:
    while not call.has_ended():
        pass
