"""Work in threads, and what an error takes along; work on items while more of them come."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator

import pytest

from apiserver.common.off_loop import in_thread, while_more_come

pytestmark = pytest.mark.anyio


class Cursor:
    """What must not reach the event loop; unlike a real one, it can be seen when it goes."""


async def test_an_error_brings_nothing_that_its_functions_held() -> None:
    let_go_by: list[int] = []

    def holding() -> None:
        cursor = Cursor()
        weakref.finalize(cursor, lambda: let_go_by.append(threading.get_ident()))
        raise ValueError("while a cursor is held")

    def work() -> None:
        cursor = Cursor()
        weakref.finalize(cursor, lambda: let_go_by.append(threading.get_ident()))
        try:
            holding()
        except ValueError as error:
            raise KeyError("another") from error

    with pytest.raises(KeyError) as raised:
        await asyncio.to_thread(in_thread(work))
    assert len(let_go_by) == 2
    assert threading.get_ident() not in let_go_by
    assert isinstance(raised.value.__cause__, ValueError)
    assert [frame.name for frame in raised.traceback][-1] == "work"  # for the log


async def test_what_work_returns_is_returned() -> None:
    assert await asyncio.to_thread(in_thread(lambda: 7)) == 7


async def numbers(most: int, made: asyncio.Semaphore) -> AsyncIterator[int]:
    """0, 1, 2 …; `made` is released for each of them."""
    for number in range(most):
        made.release()
        yield number


async def test_two_items_are_worked_on_while_the_next_one_is_made() -> None:
    made, begun = asyncio.Semaphore(0), asyncio.Semaphore(0)
    started: list[int] = []
    ended: list[int] = []
    may_end = [asyncio.Event() for _ in range(5)]

    async def work(number: int) -> None:
        started.append(number)
        begun.release()
        await may_end[number].wait()
        ended.append(number)

    working = asyncio.create_task(while_more_come(numbers(5, made), work, 2))
    for semaphore in (made, begun, made, begun, made):
        await semaphore.acquire()
    assert (started, made.locked()) == ([0, 1], True)  # the third one is made, and waits
    may_end[1].set()
    for semaphore in (begun, made):
        await semaphore.acquire()
    assert (started, ended, made.locked()) == ([0, 1, 2], [1], True)
    for event in may_end:
        event.set()
    await working
    assert sorted(ended) == list(range(5))


async def test_an_item_that_fails_ends_all_others() -> None:
    cancelled: list[int] = []

    async def work(number: int) -> None:
        if number == 1:
            raise ValueError("of one item")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    with pytest.raises(ValueError, match="of one item"):
        await while_more_come(numbers(100, asyncio.Semaphore(0)), work, 3)
    assert sorted(cancelled) == [0, 2]
