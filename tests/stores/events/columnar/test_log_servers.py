"""Servers add lines, send bodies again, delete, compact and read logs at once, stop anywhere, and machines fail.

Of each body, all lines are there once, or none is, and they keep their positions. `servers.py` says how.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from apiserver.events.model import EventBatch, LogPosition
from apiserver.events.queries import PageQuery
from apiserver.stores.events.columnar.blocks import Version
from apiserver.stores.events.columnar.log_blocks import lines_of
from apiserver.stores.events.columnar.logs import ColumnarLogs
from tests.chance import examples
from tests.contract.event_stores import LOGS, OWNER, batch, lines
from tests.stores.events.columnar.plain_blocks import PlainBlocks, Write
from tests.stores.events.columnar.servers import NUMBER, STEPS, Call, Contents, Servers, ShakyBlocks, finish

#: Bodies by their digests: the timestamps of their lines.
BODIES = {"a": [1, 2, 2], "b": [2], "c": [2, 2, 5], "d": [0, 9]}


def sent(body: str) -> EventBatch:
    """A batch that is the same each time, except when it came."""
    times = BODIES[body]
    return batch(lines([f"{body}{number}" for number in range(len(times))], timestamps=times, digest=body.encode()))


async def read(server: ColumnarLogs) -> dict[str, list[LogPosition]]:
    """The positions of the lines of each body that is there."""
    everything = await server.log_lines(LOGS, PageQuery(1000))
    positions = [line.position for line in everything]
    assert positions == sorted(set(positions))
    found: dict[str, list[LogPosition]] = {}
    for line in everything:
        found.setdefault(line.message[0], []).append(line.position)
    for body, of_body in found.items():
        assert [position.timestamp for position in of_body] == BODIES[body]
        assert [line.message for line in everything if line.message[0] == body] == [
            f"{body}{number}" for number in range(len(of_body))
        ]
    return found


class LogServers(Servers):
    keys = tuple(BODIES)
    undone_may_stay = False

    def __init__(self) -> None:
        super().__init__()
        self.positions: dict[str, list[LogPosition]] = {}
        """Those that were read since the last deletion or failure: behind these, a body may be written anew."""
        self.rewrites = 0

    def new_server(self, blocks: PlainBlocks, cache: int) -> ColumnarLogs:
        return ColumnarLogs(blocks, cache=cache)

    async def read_all(self, server: ColumnarLogs) -> Contents:
        self.forget_positions()
        before = self.rewrites
        found = await read(server)
        self.forget_positions()
        if before == self.rewrites:
            for body, positions in found.items():
                assert self.positions.setdefault(body, positions) == positions
        return dict.fromkeys(found, True)

    def contents(self, write: Write) -> Contents:
        if write.block is None or write.block.statement is not None:
            return {}
        lines = lines_of(write.block.at(Version(write.place, 1)), write.block.columns)
        return {lines.messages[0][0]: True}

    def forget_positions(self) -> None:
        """Forget positions if there was a deletion, if one became visible, or if a write was undone."""
        deletions = [one for one in self.writes if one.is_deletion]
        count = len(deletions) + sum(one.is_visible for one in deletions) + sum(one.is_undone for one in self.writes)
        if count != self.rewrites:
            self.rewrites = count
            self.positions.clear()

    @precondition(lambda self: len(self.calls) < 4)
    @rule(server=NUMBER, body=st.sampled_from([*BODIES]), steps=STEPS)
    def add(self, server: int, body: str, steps: int) -> None:
        self.begin(Call(self.server(server).add(sent(body))), steps)


TestLogServers = LogServers.TestCase
TestLogServers.settings = settings(examples(50), stateful_step_count=50)


def test_no_line_of_a_write_that_may_be_undone_gets_into_a_chunk() -> None:
    blocks = ShakyBlocks()
    one, other = ColumnarLogs(blocks), ColumnarLogs(blocks)
    finish(Call(one.add(sent("a"))))
    blocks.holds = True
    adding = Call(one.add(sent("b")))
    writes = blocks.of(OWNER).writes
    while len(writes) == 1:
        assert not adding.has_ended()
    writes[-1].is_visible = True
    blocks.holds = False
    finish(Call(other.compact(OWNER, fewest=1)))
    blocks.of(OWNER).fail_over()
    finish(Call(bodies(other), [{"a": {True}, "b": {None}}]))
    finish(adding)


async def bodies(server: ColumnarLogs) -> Contents:
    return dict.fromkeys(await read(server), True)
