"""Lines that are put while other servers compact: each is there once, and counts once."""

from __future__ import annotations

import numpy as np
import pytest

from apiserver.events.queries import PageQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.loading import TRIES
from apiserver.stores.events.blocks.logs import ColumnarLogs
from apiserver.stores.events.codec.lines import Column, Lines
from tests.contract.event_stores import LOGS, OWNER, batch, lines
from tests.stores.events.blocks.servers import Call, ShakyBlocks, finish
from tests.stores.events.blocks.watched_blocks import WatchedBlocks

pytestmark = pytest.mark.anyio


def numbered(*numbers: int) -> Lines:
    """Lines of a copy, each at the time that its number says."""
    times, zeros = np.array(numbers, np.int64), np.zeros(len(numbers), np.int64)
    none = Column([None], zeros)
    return Lines(times, times, times, none, none, [*map(str, numbers)], none, Column([("x", "")], zeros), none)


async def numbers(server: ColumnarLogs) -> list[int]:
    """The numbers of the lines that are there."""
    found = await server.log_lines(LOGS, PageQuery(1000))
    assert await server.log_count(LOGS) == len(found)
    return [int(line.message) for line in found]


async def test_a_compaction_that_began_before_does_not_hide_lines_that_are_put_in_a_gap() -> None:
    blocks = ShakyBlocks()
    copier, other = ColumnarLogs(blocks), ColumnarLogs(blocks)
    for number in (1, 9):
        finish(Call(copier.add(batch(lines([str(number)], timestamps=[number])))))
    putting = Call(copier.put_lines(OWNER, numbered(2, 5)))
    go_on(putting, 3)  # it has found nothing there
    finish(Call(other.add(batch(lines(["10"], timestamps=[10])))))
    compacting = Call(other.compact(OWNER, fewest=1))
    go_on(compacting, 4)  # it has made a chunk of 1 to 10
    assert len(blocks.of(OWNER).writes) == 3
    finish(putting)
    finish(compacting)
    for _ in range(2):
        finish(Call(assert_found(other, [1, 2, 5, 9, 10])))
        finish(Call(other.compact(OWNER, fewest=1)))
    assert len([one for one in blocks.of(OWNER).kept().values() if one.block]) == 1


async def assert_found(server: ColumnarLogs, expected: list[int]) -> None:
    assert await numbers(server) == expected


def go_on(call: Call, steps: int) -> None:
    for _ in range(steps):
        assert not call.has_ended()


async def test_lines_that_are_put_twice_at_once_are_there_once() -> None:
    blocks = ShakyBlocks()
    one, other = ColumnarLogs(blocks), ColumnarLogs(blocks)
    finish(Call(one.put_lines(OWNER, numbered(9))))
    first, second = Call(one.put_lines(OWNER, numbered(1, 2))), Call(other.put_lines(OWNER, numbered(1, 2, 3)))
    go_on(first, 3)
    go_on(second, 3)
    finish(first)
    finish(second)
    for _ in range(2):
        finish(Call(assert_found(other, [1, 2, 3, 9])))
        finish(Call(other.compact(OWNER, fewest=1)))


async def test_lines_of_a_write_that_may_be_undone_are_put_again() -> None:
    blocks = ShakyBlocks()
    one, other = ColumnarLogs(blocks), ColumnarLogs(blocks)
    finish(Call(one.add(batch(lines(["0"], timestamps=[0])))))
    blocks.holds = True
    putting = Call(one.put_lines(OWNER, numbered(1, 2)))
    writes = blocks.of(OWNER).writes
    while len(writes) == 1:
        assert not putting.has_ended()
    writes[-1].is_visible = True
    blocks.holds = False
    finish(Call(other.put_lines(OWNER, numbered(1, 2, 3))))
    for _ in range(2):
        finish(Call(assert_found(other, [0, 1, 2, 3])))
        blocks.of(OWNER).fail_over()
    finish(putting)


async def test_lines_between_others_are_put_beside_them() -> None:
    blocks = WatchedBlocks()
    logs = ColumnarLogs(blocks)
    for some in ([2, 4], [1, 2, 3, 4, 5], [7, 8], [1, 2, 3, 4, 5, 6, 7, 8, 9]):
        await logs.put_lines(OWNER, numbered(*some))
        assert await numbers(logs) == sorted({*await numbers(logs), *some})
    assert await logs.compact(OWNER, fewest=1)
    assert await numbers(ColumnarLogs(blocks)) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert len((await blocks.find(LOGS)).blocks) == 1


async def test_lines_are_put_though_others_are_compacted_meanwhile() -> None:
    blocks = WatchedBlocks()
    logs, other = ColumnarLogs(blocks, cache=0), ColumnarLogs(blocks)
    for number in (2, 4):
        await logs.add(batch(lines([str(number)], timestamps=[number])))
    blocks.before_fetch = lambda: other.compact(OWNER, fewest=1)
    await logs.put_lines(OWNER, numbered(1, 3, 5))
    assert await numbers(logs) == [1, 2, 3, 4, 5]


async def test_who_puts_lines_is_told_to_try_again_if_others_are_compacted_again_and_again() -> None:
    blocks = WatchedBlocks()
    logs = ColumnarLogs(blocks, cache=0)
    await logs.add(batch(lines(["2"], timestamps=[2])))
    tries = 0

    async def put_again() -> None:
        nonlocal tries
        tries += 1
        blocks.of(OWNER).writes[0].place = blocks.of(OWNER).places = blocks.of(OWNER).places + 1
        blocks.before_fetch = put_again

    blocks.before_fetch = put_again
    with pytest.raises(EventStoreBusy):
        await logs.put_lines(OWNER, numbered(1, 2, 3))
    assert tries == TRIES
