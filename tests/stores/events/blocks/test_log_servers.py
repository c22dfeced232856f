"""Servers add lines, put those of a copy, delete, compact and read logs at once, stop anywhere, and machines fail.

Bodies are sent again, and so are parts of the copy. Each line is there once or not at all, as it has to be, and keeps
its position. `servers.py` says how.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from apiserver.events.model import EventBatch, LogPosition, MetricSelection, Selection
from apiserver.events.queries import PageQuery
from apiserver.stores.events.blocks.blocks import NO_SERIES, Version
from apiserver.stores.events.blocks.log_blocks import lines_of
from apiserver.stores.events.blocks.logs import ColumnarLogs
from apiserver.stores.events.codec.lines import Column, Lines
from tests.chance import examples
from tests.contract.event_stores import LOGS, OWNER, batch, lines, select
from tests.contract.plain_event_store import selects
from tests.stores.events.blocks.plain_blocks import PlainBlocks, Write
from tests.stores.events.blocks.servers import (
    BOUNDS,
    NUMBER,
    STEPS,
    Allowed,
    Call,
    Contents,
    Servers,
    ShakyBlocks,
    finish,
)

#: Bodies by their digests: the metric and the timestamps of their lines.
BODIES = {
    **{"a": ("x", [1, 2, 2]), "b": ("y", [2]), "c": ("y", [2, 2, 5]), "d": ("x", [0, 9])},
    **{"e": ("x", [1]), "f": ("y", [0, 1]), "g": ("x", [2, 3]), "h": ("y", [1, 9])},
}
#: The same of the lines of a copy, which are put at their positions.
COPY, COPIED = "p", ("x", [1, 2, 2, 5, 9])
ALL = {**BODIES, COPY: COPIED}
#: Each line's message, and its timestamp.
TIMES = {f"{body}{number}": time for body, (_, times) in ALL.items() for number, time in enumerate(times)}
#: Parts of the copy.
PARTS = [range(5), range(3), range(1, 4), range(2, 5), range(3, 4)]
X: Selection = (MetricSelection("x"),)
#: How many steps each of two calls goes on in turn; in the end, usually both have ended.
TURNS = st.lists(st.integers(1, 7), max_size=4).map(lambda turns: [*turns, 50, 50])


def sent(body: str) -> EventBatch:
    """A batch that is the same each time, except when it came."""
    metric, times = BODIES[body]
    messages = [f"{body}{number}" for number in range(len(times))]
    return batch(lines(messages, metric=metric, timestamps=times, digest=body.encode()))


def copied(numbers: range) -> Lines:
    """These lines of the copy."""
    metric, times = COPIED
    at, zeros = np.array(numbers, np.int64), np.zeros(len(numbers), np.int64)
    none, level, worker = (Column([value], zeros) for value in (None, "info", "worker"))
    timestamps, messages = np.array(times, np.int64)[at], [f"{COPY}{number}" for number in numbers]
    return Lines(timestamps, at, timestamps, level, worker, messages, none, Column([(metric, "")], zeros), none)


async def read(server: ColumnarLogs) -> dict[str, LogPosition]:
    """The positions of the lines that are there."""
    everything, count = await server.log_page(LOGS, PageQuery(1000))
    assert len(everything) == count
    positions = [line.position for line in everything]
    assert positions == sorted(set(positions))
    found = {line.message: line.position for line in everything}
    assert len(found) == len(everything)
    assert {message: TIMES[message] for message in found} == {
        line.message: line.position.timestamp for line in everything
    }
    for body in ALL:
        of_body = [line.message for line in everything if line.message[0] == body]
        assert of_body == sorted(of_body)
    return found


@dataclass(frozen=True)
class Asked:
    """What `delete_logs` is asked for."""

    selection: Selection = ()
    before: int | None = None
    exclude: Selection = ()

    def dooms(self, message: str) -> bool:
        metric, _ = ALL[message[0]]
        is_old = self.before is None or TIMES[message] < self.before
        return (
            is_old and selects(self.selection, metric, "") and not (self.exclude and selects(self.exclude, metric, ""))
        )


ASKED = st.sampled_from([Asked(before=2), Asked(X), Asked(X, before=2), Asked(exclude=X), Asked()])


@dataclass(eq=False)
class Deleting(Call):
    """A deletion of lines. It may have deleted some since it has a place, and has deleted all once it has ended."""

    machine: LogServers = field(kw_only=True)
    asked: Asked = field(kw_only=True)
    place: int | None = None
    done_at: int | None = None
    """The last place that there was when it had ended well."""

    @property
    def is_done(self) -> bool:
        return self.done_at is not None

    def has_ended(self) -> bool:
        before = len(self.machine.writes)
        has_ended = super().has_ended()
        for one in self.machine.writes[before:]:
            if one.block is not None and one.block.series != NO_SERIES and one.block.series[1]:
                self.place = one.place
        return has_ended

    def check(self, answer: Any) -> None:
        assert self.place is not None
        self.done_at = len(self.machine.writes)
        least, most = self.machine.deleted_by(self)
        assert least <= answer <= most

    def deletes(self, message: str, place: int) -> bool:
        """Whether it has to delete a line that was first written at a place."""
        return self.place is not None and place < self.place and self.asked.dooms(message)

    def may_delete(self, message: str, place: int) -> bool:
        """Whether it may delete such a line. Lines of copies have no places in them, so it may find those of later."""
        if message[0] != COPY:
            return self.deletes(message, place)
        is_under_way = self.place is not None and (self.done_at is None or place <= self.done_at)
        return is_under_way and self.asked.dooms(message)


@dataclass(eq=False)
class Putting(Call):
    """Puts lines of the copy. Once it has ended, each was written, and that will not be undone."""

    machine: LogServers = field(kw_only=True)
    messages: list[str] = field(kw_only=True)

    def check(self, answer: Any) -> None:
        ended = [one for one in self.machine.writes if one.has_ended and not one.is_undone]
        assert {*self.messages} <= {message for one in ended for message in self.machine.contents(one)}


class LogServers(Servers):
    keys = tuple(TIMES)
    undone_may_stay = False

    def __init__(self) -> None:
        super().__init__()
        self.positions: dict[str, LogPosition] = {}
        """Those that were read since the last deletion or failure: behind these, a body may be written anew."""
        self.rewrites = 0
        self.deletions: list[Deleting] = []

    def new_server(self, blocks: PlainBlocks, cache: int) -> ColumnarLogs:
        return ColumnarLogs(blocks, cache=cache, bounds=BOUNDS)

    async def read_all(self, server: ColumnarLogs) -> Contents:
        self.forget_positions()
        before = self.rewrites
        found = await read(server)
        self.forget_positions()
        if before == self.rewrites:
            for message, position in found.items():
                assert self.positions.setdefault(message, position) == position
        return dict.fromkeys(found, True)

    def contents(self, write: Write) -> Contents:
        if write.block is None or not write.block.count:
            return {}
        if write.block.statement is not None and write.block.statement.newest is not None:
            return {}
        lines = lines_of(write.block.at(Version(write.place, 1)), write.block.columns)
        return dict.fromkeys(lines.messages, True)

    def allowed(self) -> Allowed:
        """What was written counts, except for lines that were deleted."""
        written = self.written([one for one in self.writes if one.is_visible])
        found: Allowed = {message: {None} for message in self.keys}
        for message, place in written.items():
            if not any(one.is_done and one.deletes(message, place) for one in self.deletions):
                may_be_gone = any(one.may_delete(message, place) for one in self.deletions)
                found[message] = {True, None} if may_be_gone else {True}
        return found

    def written(self, writes: list[Write]) -> dict[str, int]:
        """The lines that these writes leave, and where each was written.

        Of bodies that are sent again, the first place counts, as they change nothing. Of a copy, the last one counts.
        """
        found: dict[str, int] = {}
        for one in writes:
            if one.is_undone:
                continue
            if one.is_deletion:
                found.clear()
            for message in self.contents(one):
                if message[0] == COPY or message not in found:
                    found[message] = one.place
        return found

    def deleted_by(self, deleting: Deleting) -> tuple[int, int]:
        """How many lines a deletion may say that there were, at least and at most."""
        place = deleting.place or 0
        written = self.written([one for one in self.writes if one.place < place])
        earlier = [one for one in self.deletions if (one.place or place) < place]
        least = most = 0
        for message in filter(deleting.asked.dooms, written):
            others = [one for one in earlier if one.may_delete(message, written[message])]
            least += not others
            if message[0] != COPY:
                most += not any(one.is_done for one in others)
        for one in self.writes:  # lines of a copy may be put, found and deleted again and again meanwhile
            most += len([message for message in self.contents(one) if message[0] == COPY])
        is_sure = not any(one.is_deletion and one.place > place for one in self.writes)
        return least if is_sure else 0, most

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

    @precondition(lambda self: len(self.calls) < 4)
    @rule(server=NUMBER, numbers=st.sampled_from(PARTS), steps=STEPS)
    def put(self, server: int, numbers: range, steps: int) -> None:
        lines = copied(numbers)
        self.begin(Putting(self.server(server).put_lines(OWNER, lines), machine=self, messages=lines.messages), steps)

    @precondition(lambda self: self.writes and len(self.calls) < 4)
    @rule(server=NUMBER, asked=ASKED, steps=STEPS)
    def delete_lines(self, server: int, asked: Asked, steps: int) -> None:
        self.begin(self.deleting(server, asked), steps)

    @precondition(lambda self: self.writes and len(self.calls) < 3)
    @rule(asked=ASKED, other=st.sampled_from(["compact"] * 4 + [*BODIES]) | ASKED, turns=TURNS)
    def delete_lines_beside_another_server(self, asked: Asked, other: Asked | str, turns: list[int]) -> None:
        """Two servers take turns of so many steps."""
        server = self.server(1)
        if isinstance(other, Asked):
            second: Call = self.deleting(1, other)
        else:
            second = Call(server.add(sent(other)) if other in BODIES else server.compact(OWNER, fewest=1))
        calls = [self.deleting(0, asked), second]
        self.calls += calls
        for call, steps in zip(cycle(calls), turns, strict=False):
            if call in self.calls:
                self.go_on_with(call, steps)

    def deleting(self, server: int, asked: Asked) -> Deleting:
        series = select(LOGS, *asked.selection)
        call = self.server(server).delete_logs(series, asked.before, asked.exclude)
        self.deletions.append(Deleting(call, machine=self, asked=asked))
        return self.deletions[-1]


TestLogServers = LogServers.TestCase
TestLogServers.settings = settings(examples(50), stateful_step_count=50)


def test_no_line_of_a_write_that_may_be_undone_gets_into_a_chunk() -> None:
    blocks = ShakyBlocks()
    one, other = ColumnarLogs(blocks, bounds=BOUNDS), ColumnarLogs(blocks, bounds=BOUNDS)
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
    finish(Call(messages(other), [{"a0": {True}, "b0": {None}}]))
    finish(adding)


async def messages(server: ColumnarLogs) -> Contents:
    return dict.fromkeys(await read(server), True)
