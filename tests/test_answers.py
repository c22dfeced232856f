"""What answers may take: one alone, all together, and who waits for room."""

from __future__ import annotations

import asyncio

import pytest

from apiserver import answers
from apiserver.answers import LARGEST, SMALL, Answers, AnswerTooLarge, Held, NoRoom

pytestmark = pytest.mark.anyio


def test_one_answer_has_a_bound() -> None:
    held = Held(Answers())
    held.add(LARGEST - 10)
    held.add(10)
    with pytest.raises(AnswerTooLarge):
        held.add(1)
    assert held.size == LARGEST


def test_all_together_have_a_bound_and_small_ones_do_not_count() -> None:
    all_answers = Answers(limit=10 * SMALL)
    first, second, small = (Held(all_answers) for _ in range(3))
    first.add(9 * SMALL)
    small.add(SMALL)
    second.add(SMALL // 2)
    with pytest.raises(NoRoom):
        second.add(SMALL)
    assert second.size == SMALL // 2
    first.settle(2 * SMALL)
    second.add(5 * SMALL)


def test_what_still_reads_for_an_answer_that_has_ended_is_ended() -> None:
    all_answers = Answers(limit=10 * SMALL)
    held = Held(all_answers)
    held.add(9 * SMALL)
    held.end()
    with pytest.raises(NoRoom):
        held.add(2 * SMALL)
    Held(all_answers).add(10 * SMALL)


async def test_who_waits_longest_is_first() -> None:
    all_answers = Answers(limit=4 * SMALL)
    taken = [Held(all_answers) for _ in range(2)]
    for held in taken:
        held.add(2 * SMALL)
    came: list[int] = []

    async def wait(number: int) -> None:
        await Held(all_answers).room()
        came.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(3)]
    await asyncio.sleep(0)
    assert came == []
    waiting[0].cancel()
    taken[0].end()
    await asyncio.wait([waiting[1]])
    assert came == [1]
    taken[1].end()
    await asyncio.wait([waiting[2]])
    assert came == [1, 2]
    await Held(all_answers).room()  # there is room


async def test_who_leaves_when_it_is_its_turn_lets_the_next_look() -> None:
    all_answers = Answers(limit=4 * SMALL)
    taken = Held(all_answers)
    taken.add(4 * SMALL)
    waiting = [asyncio.create_task(Held(all_answers).room()) for _ in range(2)]
    await asyncio.sleep(0)
    taken.end()
    waiting[0].cancel()
    await asyncio.wait([waiting[1]], timeout=30)
    assert waiting[1].done()


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

    waiting = asyncio.create_task(answers.held_page(page, lambda size: size))
    await has_read.wait()
    await asyncio.sleep(0)
    assert not waiting.done()
    other.end()
    assert await waiting == 2 * SMALL
    assert len(read) == 2
    for _ in range(5):  # each in the place of the one before
        await answers.held_page(page, lambda size: size)
    assert held.size == 2 * SMALL
