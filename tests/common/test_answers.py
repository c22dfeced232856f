"""What answers may take: one alone, all together, and who waits for room."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from apiserver.common import answers
from apiserver.common.answers import (
    LARGEST,
    MUCH,
    SMALL,
    TINY,
    AnswerBounds,
    Answers,
    AnswerTooLarge,
    Held,
    NoRoom,
    NoRoomForLong,
    some_at_a_time,
)

pytestmark = pytest.mark.anyio


def test_one_answer_has_a_bound() -> None:
    held = Held(Answers())
    held.add(LARGEST - 10)
    held.add(10)
    with pytest.raises(AnswerTooLarge):
        held.add(1)
    assert held.size == LARGEST
    held.end()
    Held(Answers()).add(2 * LARGEST)  # a single document that is larger can be read


def test_all_together_have_a_bound_and_tiny_ones_do_not_count() -> None:
    all_answers = Answers(limit=10 * SMALL)
    first, second, tiny, small = (Held(all_answers) for _ in range(4))
    first.add(9 * SMALL)
    tiny.add(TINY)
    second.add(TINY)
    with pytest.raises(NoRoom):
        second.add(2 * SMALL)
    assert second.size == TINY
    small.add(SMALL)
    first.settle(2 * SMALL)
    second.add(5 * SMALL)


def test_small_answers_have_a_bound_of_their_own() -> None:
    all_answers = Answers(limit=10 * SMALL)
    Held(all_answers).add(10 * SMALL)
    for _ in range(10):
        Held(all_answers).add(SMALL)
    with pytest.raises(NoRoom):
        Held(all_answers).add(SMALL)


def test_what_still_reads_for_an_answer_that_has_ended_is_ended() -> None:
    all_answers = Answers(limit=10 * SMALL)
    held = Held(all_answers)
    held.add(9 * SMALL)
    held.end()
    with pytest.raises(NoRoom):
        held.add(2 * SMALL)
    Held(all_answers).add(10 * SMALL)


async def test_who_waits_has_what_it_wants_before_later_ones() -> None:
    all_answers = Answers(limit=4 * SMALL)
    taken = [Held(all_answers) for _ in range(2)]
    for held in taken:
        held.add(2 * SMALL)
    waiting = [asyncio.create_task(_wait(all_answers, 2 * SMALL)) for _ in range(4)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    taken[0].end()
    first = await waiting[1]
    assert not waiting[2].done()
    taken[1].end()
    await waiting[2]
    first.add(2 * SMALL)  # it is counted already
    with pytest.raises(NoRoom):
        Held(all_answers).add(2 * SMALL)
    first.end()
    await waiting[3]


async def test_all_who_have_room_need_not_wait() -> None:
    all_answers = Answers(limit=10 * SMALL)
    taken = Held(all_answers)
    taken.add(9 * SMALL)
    waiting = [asyncio.create_task(_wait(all_answers, 2 * SMALL)) for _ in range(4)]
    await asyncio.sleep(0)
    taken.settle(SMALL)
    await asyncio.gather(*waiting)


async def test_of_much_one_is_made_at_a_time() -> None:
    all_answers = Answers()
    first, second = Held(all_answers), Held(all_answers)
    first.add(MUCH)
    first.add(1)
    with pytest.raises(NoRoom):
        second.add(MUCH + 1)
    second.add(MUCH)  # as much as one may have without a turn
    second.end()
    waiting = [asyncio.create_task(_wait(all_answers, MUCH + 1)) for _ in range(2)]
    await asyncio.sleep(0)
    first.settle(MUCH + 1)  # it is made, and only has to be sent
    second = await waiting[0]
    await asyncio.sleep(0)
    assert not waiting[1].done()
    second.end()
    (await waiting[1]).end()
    first.end()
    Held(all_answers).add(LARGEST)


async def test_small_answers_keep_no_large_one_waiting() -> None:
    all_answers = Answers(limit=4 * SMALL)
    taken, small = Held(all_answers), Held(all_answers)
    taken.add(4 * SMALL)
    waiting = asyncio.create_task(_wait(all_answers, 6 * SMALL))
    await asyncio.sleep(0)
    small.add(SMALL)
    taken.end()
    await waiting


async def test_another_attempt_ends_what_still_reads_for_the_one_before() -> None:
    all_answers = Answers(limit=4 * SMALL)
    taken, held = Held(all_answers), Held(all_answers)
    taken.add(3 * SMALL)
    with pytest.raises(NoRoom):
        held.add(2 * SMALL)
    another = held.anew()
    with pytest.raises(NoRoom):  # by a thread that knows nothing of that
        held.add(SMALL)
    held.add(-SMALL)
    taken.end()
    await another.room()
    another.add(2 * SMALL)
    another.end()
    Held(all_answers).add(4 * SMALL)


async def test_what_a_read_takes_is_held_while_it_goes_on() -> None:
    all_answers = Answers(limit=4 * SMALL)
    held = Held(all_answers)
    answers.begin(held)
    answers.will_read(LARGEST)  # not for a read
    with answers.reading():
        await asyncio.create_task(_will_read(3 * SMALL))
        with pytest.raises(NoRoom):
            Held(all_answers).add(2 * SMALL)
        assert held.size == 3 * SMALL
    assert held.size == 0
    with pytest.raises(NoRoom):  # the room is kept for whoever keeps what was read
        Held(all_answers).add(2 * SMALL)
    answers.hold(3 * SMALL)
    answers.begin(None)
    with answers.reading():
        answers.will_read(LARGEST)


async def _will_read(size: int) -> None:
    answers.will_read(size)


async def test_who_leaves_when_it_is_its_turn_gives_it_up() -> None:
    all_answers = Answers(limit=4 * SMALL)
    taken = Held(all_answers)
    taken.add(4 * SMALL)
    waiting = [asyncio.create_task(_wait(all_answers, 4 * SMALL)) for _ in range(2)]
    await asyncio.sleep(0)
    taken.end()
    waiting[0].cancel()
    assert (await waiting[1]).size == 0


async def test_nobody_waits_for_ever() -> None:
    all_answers = Answers(4 * SMALL, AnswerBounds(patience_seconds=0.01))
    taken = Held(all_answers)
    taken.add(4 * SMALL)
    with pytest.raises(NoRoomForLong):
        await _wait(all_answers, 2 * SMALL)
    taken.end()
    Held(all_answers).add(4 * SMALL)


async def _wait(all_answers: Answers, size: int) -> Held:
    held = Held(all_answers)
    with pytest.raises(NoRoom):
        held.add(size)
    await held.room()
    return held


async def test_what_a_task_reads_counts_for_the_answer_that_it_makes() -> None:
    answers.hold(2 * LARGEST)  # for none
    assert answers.counter() is None
    assert answers.held_size() == 0
    held = Held(Answers())
    answers.begin(held)
    answers.hold(3)
    count = answers.counter()
    assert count is not None
    await asyncio.to_thread(count, 4)
    await asyncio.create_task(_reads(5))
    assert held.size == answers.held_size() == 12


async def _reads(size: int) -> None:
    answers.hold(size)


async def test_a_part_of_an_answer_is_read_again_once_there_is_room() -> None:
    all_answers = Answers(limit=4 * SMALL)
    other, held = Held(all_answers), Held(all_answers)
    other.add(3 * SMALL)
    answers.begin(held)
    read: list[int] = []
    has_read = asyncio.Event()

    async def page() -> int:
        read.append(2 * SMALL)
        has_read.set()
        return 2 * SMALL

    waiting = asyncio.create_task(answers.held_page(page, lambda size: size, first=True))
    await has_read.wait()
    await asyncio.sleep(0)
    assert not waiting.done()
    other.end()
    assert await waiting == 2 * SMALL
    assert len(read) == 2
    for _ in range(5):  # each in the place of the one before
        await answers.held_page(page, lambda size: size, first=True)
    assert held.size == 2 * SMALL


async def test_items_are_read_some_at_a_time_and_fewer_when_they_are_too_large() -> None:
    asked: list[list[int]] = []

    async def read(some: Sequence[int]) -> list[int]:
        asked.append([*some])
        if sum(some) > 10:
            raise AnswerTooLarge
        return [*some]

    parts = [part async for part in some_at_a_time([1, 1, 1, 9, 9, 1, 1, 1], 4, read)]
    assert parts == [[1, 1], [1, 9], [9, 1], [1, 1]]
    assert asked == [[1, 1, 1, 9], [1, 1], [1, 9], [9, 1], [1, 1]]
    with pytest.raises(AnswerTooLarge):
        [part async for part in some_at_a_time([1, 11], 4, read)]
    assert [part async for part in some_at_a_time([], 4, read)] == []
