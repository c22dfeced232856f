"""Deletions of lines by age and series: what is sent again, servers that stop, machines that fail.

`test_log_servers.py` has what other servers may do meanwhile, by chance. Here are the cases that chance hardly finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from apiserver.events.model import LogPosition
from apiserver.events.queries import PageQuery
from apiserver.stores.events.blocks import log_blocks
from apiserver.stores.events.blocks.blocks import BlockStore, NewBlock
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.logs import ColumnarLogs
from tests.contract.event_stores import LOGS, OWNER, batch, lines
from tests.stores.events.blocks import block_stores
from tests.stores.events.blocks.servers import Call, ShakyBlocks, finish

pytestmark = pytest.mark.anyio
blocks = block_stores.blocks


async def messages(logs: ColumnarLogs) -> list[str]:
    return [line.message for line in await logs.log_lines(LOGS, PageQuery(1000))]


async def test_a_body_sent_again_after_its_lines_were_deleted_adds_nothing(blocks: BlockStore) -> None:
    logs = ColumnarLogs(blocks)
    sent = batch(lines(["one", "two"], digest=b"body"))
    for compacted in (False, True):
        await logs.add(sent)
        if compacted:
            await logs.compact(OWNER, fewest=1)
        assert await logs.delete_logs(LOGS, 1) == 1
        for fewest in (1, 1, 100):
            await logs.add(sent)
            assert await messages(logs) == ["two"]
            await logs.compact(OWNER, fewest=fewest)
        assert await logs.delete_logs(LOGS, None) == 1
        for fewest in (1, 1, 100):
            await logs.add(sent)
            assert await messages(logs) == []
            await logs.compact(OWNER, fewest=fewest)
        await logs.delete([OWNER])


async def test_chunks_know_the_deleted_lines_of_their_times(blocks: BlockStore) -> None:
    logs = ColumnarLogs(blocks, bounds=ColumnarBounds(chunk_bytes=1000))
    times = [*range(0, 100, 10)]
    known = batch(lines([f"{time}" for time in times], timestamps=times, digest=b"body"))
    await logs.add(known)
    assert await logs.delete_logs(LOGS, None) == 10
    await logs.add(batch(lines([f"{time}" for time in range(20, 60)], timestamps=range(20, 60))))
    await logs.compact(OWNER, fewest=1)
    assert len((await blocks.find(LOGS)).blocks) > 10
    await logs.add(known)
    for time in range(-1, 100):
        found = await logs.log_lines(LOGS, PageQuery(1, LogPosition(time, -1)))
        assert [line.message for line in found] == ([str(max(time, 20))] if time < 60 else [])


async def test_the_lines_of_a_deletion_that_stopped_can_be_deleted(blocks: BlockStore) -> None:
    logs = ColumnarLogs(blocks)
    await logs.add(batch(lines(["one", "two"])))
    await blocks.put([log_blocks.note(OWNER, "of a server that stopped")])
    await logs.compact(OWNER, fewest=1)
    assert [block.statement for block in (await blocks.find(LOGS)).blocks] == [None, None]
    await logs.compact(OWNER, fewest=1)
    assert await logs.log_count(LOGS) == 2
    assert await logs.delete_logs(LOGS, None) == 2
    assert await messages(logs) == []


class CountedPuts(ShakyBlocks):
    """Calls of `put` are counted before they do anything."""

    puts = 0

    async def put(self, blocks: Sequence[NewBlock]) -> None:
        self.puts += 1
        await super().put(blocks)


class Machines:
    """Three servers, and a store whose writes end when one says so. There are the lines "old" of 0 and "new" of 5."""

    def __init__(self) -> None:
        self.blocks = CountedPuts()
        self.one, self.other, self.third = (ColumnarLogs(self.blocks) for _ in range(3))
        self.add(0, "old", "new")

    def add(self, time: int, *messages: str) -> None:
        finish(Call(self.third.add(batch(lines(messages, timestamps=[time + 5 * n for n in range(len(messages))])))))

    @property
    def writes(self) -> int:
        return len(self.blocks.of(OWNER).writes)

    def until(self, call: Call, has_happened: Callable[[], bool], steps: int = 50) -> None:
        """Let a call go on until something has happened."""
        for _ in range(steps):
            if has_happened():
                return
            assert not call.has_ended()
        raise AssertionError("nothing happened")

    def until_it_has_put_its_note(self, deleting: Call) -> None:
        before = self.writes
        self.until(deleting, lambda: self.writes > before)

    def until_it_has_read(self, deleting: Call) -> None:
        """Let a deletion go on until it is about to put chunks of what it has read."""
        before = self.blocks.puts
        self.until(deleting, lambda: self.blocks.puts == before + 2)

    def under_way(self, call: Call, *, is_visible: bool) -> None:
        """Let a call go on until it has written something, which does not end."""
        self.blocks.holds, before = True, self.writes
        self.until(call, lambda: self.writes > before)
        self.blocks.of(OWNER).writes[-1].is_visible = is_visible
        self.blocks.holds = False

    def messages(self) -> list[str]:
        call = Answer(messages(ColumnarLogs(self.blocks)))
        finish(call)
        return list(call.answer)


class Answer(Call):
    """A call, and what it answers; None: it gave up."""

    answer: Any = None

    def check(self, answer: Any) -> None:
        self.answer = answer


def test_a_note_that_may_be_undone_lets_nobody_compact() -> None:
    machines = Machines()
    deleting = Answer(machines.one.delete_logs(LOGS, 5))
    machines.until_it_has_read(deleting)
    machines.add(7, "newest")
    machines.under_way(Call(machines.other.compact(OWNER, fewest=1)), is_visible=True)
    finish(Call(machines.third.compact(OWNER, fewest=1)))
    machines.blocks.of(OWNER).fail_over()
    finish(deleting)
    assert deleting.answer == 1
    assert machines.messages() == ["new", "newest"]


def test_who_ends_a_deletion_does_not_compact_what_it_found_before() -> None:
    machines = Machines()
    deleting = Answer(machines.one.delete_logs(LOGS, 5))
    machines.until_it_has_read(deleting)
    machines.add(7, "newest")
    compacting = Call(machines.other.compact(OWNER, fewest=1))
    machines.under_way(compacting, is_visible=False)
    note = machines.blocks.of(OWNER).writes[-1]
    finish(deleting)
    note.is_visible = note.has_ended = True
    finish(compacting)
    assert deleting.answer == 1
    assert machines.messages() == ["new", "newest"]


def test_lines_that_come_behind_the_note_are_kept() -> None:
    machines = Machines()
    deleting = Answer(machines.one.delete_logs(LOGS, 5))
    machines.until_it_has_put_its_note(deleting)
    machines.add(0, "late")
    finish(deleting)
    assert deleting.answer == 1
    assert machines.messages() == ["late", "new"]


def test_who_compacts_meanwhile_ends_the_deletion() -> None:
    machines = Machines()
    deleting = Answer(machines.one.delete_logs(LOGS, 5))
    machines.until_it_has_read(deleting)
    machines.add(7, "newest")
    finish(Call(machines.other.compact(OWNER, fewest=1)))
    finish(deleting)
    assert deleting.answer is None
    finish(Call(machines.other.compact(OWNER, fewest=1)))
    assert machines.messages() == ["new", "newest"]


def test_a_deletion_waits_for_writes_of_earlier_places() -> None:
    machines = Machines()
    machines.under_way(Call(machines.other.add(batch(lines(["slow"])))), is_visible=False)
    slow = machines.blocks.of(OWNER).writes[-1]
    machines.add(0, "old, too")
    deleting = Answer(machines.one.delete_logs(LOGS, 5))
    for _ in range(50):
        assert not deleting.has_ended()
    slow.is_visible = slow.has_ended = True
    finish(deleting)
    assert deleting.answer == 3
    assert machines.messages() == ["new"]


def test_a_deletion_waits_for_that_of_the_owner_which_may_be_undone() -> None:
    machines = Machines()
    deleting = Answer(machines.one.delete_logs(LOGS, 5))
    machines.until_it_has_put_its_note(deleting)
    machines.under_way(Call(machines.other.delete([OWNER])), is_visible=True)
    for _ in range(50):
        assert not deleting.has_ended()
    machines.blocks.of(OWNER).fail_over()
    finish(deleting)
    assert deleting.answer == 1
    assert machines.messages() == ["new"]
