"""Servers of blocks that write, delete, compact and read at once, and stop anywhere, while machines fail.

Each call of a server stops before every step of the store, until a rule lets it go on. Writes become visible in any
order, end later, and are undone if a machine fails before they have ended.

`EVENTS_EXAMPLES=5000 pytest tests/stores/events/blocks` looks longer.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from apiserver.events.model import Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from tests.contract.event_stores import OWNER
from tests.stores.events.blocks.plain_blocks import PlainBlocks, Write

#: What is found, by keys: values of points by iterations, or whether there are the lines of a body.
Contents = dict[Any, Any]
#: What a reader may find by each key; None: nothing.
Allowed = dict[Any, set[Any]]
#: How far a call goes; usually to its end.
STEPS = st.sampled_from([50, 50, *range(8)])
#: Picks a server, a call or a write: the number modulo how many there are.
NUMBER = st.integers(0, 9)
#: Servers remember few blocks, too: those of a query that is asked again. Few points of a copy become chunks.
BOUNDS = ColumnarBounds(many_blocks=1, copied_points=1)


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

    def check(self, answer: Contents) -> None:
        """Assert that this may be answered."""
        if self.allowed:
            assert any(all(answer.get(at) in values for at, values in one.items()) for one in self.allowed)


class Servers(RuleBasedStateMachine):
    """Each rule lets one server go on by a step, or stop for good, or lets the store do something."""

    keys: Sequence[Any]
    """Of everything that there may be."""
    undone_may_stay: bool
    """Whether what was written may be found although the write was undone: its client was told so."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = ShakyBlocks()
        self.servers = [self.new_server(self.blocks, cache) for cache in (0, 10**6, 10**6)]
        self.calls: list[Call] = []

    def new_server(self, blocks: PlainBlocks, cache: int) -> Any:
        raise NotImplementedError

    async def read_all(self, server: Any) -> Contents:
        raise NotImplementedError

    def contents(self, write: Write) -> Contents:
        """What is in a fragment; nothing if the write is another one."""
        raise NotImplementedError

    @property
    def writes(self) -> list[Write]:
        return self.blocks.of(OWNER).writes

    # --- servers -----------------------------------------------------------------------------------

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
        self.begin(Call(self.read_all(self.server(server)), [self.allowed()]), steps)

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

    def server(self, number: int) -> Any:
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
        """What was written last counts."""
        found: Allowed = {key: {None} for key in self.keys}
        for one in sorted(self.writes, key=lambda one: one.place):
            if one.is_undone:
                for key, value in self.contents(one).items() if self.undone_may_stay else ():
                    found[key].add(value)
            elif one.is_visible and one.is_deletion:
                found = {key: {None} for key in self.keys}
            elif one.is_visible:
                for key, value in self.contents(one).items():
                    found[key] = {value}
        return found

    @invariant()
    def everything_is_there_once(self) -> None:
        blocks = PlainBlocks()
        blocks.owners = self.blocks.owners
        call = Call(self.read_all(self.new_server(blocks, 10**6)), [self.allowed()])
        assert call.has_ended()


def finish(call: Call) -> None:
    """Let a call go on to its end."""
    while not call.has_ended():
        pass
