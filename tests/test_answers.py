"""What answers may take: one alone, all together, and who waits for room."""

from __future__ import annotations

import asyncio

import pytest

from apiserver import answers
from apiserver.answers import LARGEST, SMALL, TINY, Answers, AnswerTooLarge, Held, NoRoom, NoRoomForLong

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


async def test_who_leaves_when_it_is_its_turn_gives_it_up() -> None:
    all_answers = Answers(limit=4 * SMALL)
    taken = Held(all_answers)
    taken.add(4 * SMALL)
    waiting = [asyncio.create_task(_wait(all_answers, 4 * SMALL)) for _ in range(2)]
    await asyncio.sleep(0)
    taken.end()
    waiting[0].cancel()
    assert (await waiting[1]).size == 0


async def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PATIENCE", 0.01)
    all_answers = Answers(limit=4 * SMALL)
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
