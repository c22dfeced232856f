"""Keeps long work off the event loop, because no other request is answered while code runs there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine
from traceback import clear_frames
from typing import Any, TypeVar

#: Work on more things is done in a thread. Less work takes no longer than handing it to a thread.
MANY = 1000

T = TypeVar("T")


async def off_loop(size: int, function: Callable[[], T]) -> T:
    """The result of `function`, which works on `size` things; it runs in a thread if they are many."""
    return await asyncio.to_thread(function) if size > MANY else function()


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """The results of coroutines that run at the same time. If one fails, the others are cancelled first."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        tasks.clear()  # the error refers to this frame: without this, the frame would keep the tasks' results in memory


async def while_more_come(items: AsyncIterable[T], work: Callable[[T], Coroutine[Any, Any, None]], most: int) -> None:
    """Work on each item while the next one is made, and on up to `most` at once, which may end in any order.

    If one fails, the others are cancelled first.
    """
    working: set[asyncio.Task[None]] = set()
    try:
        async for item in items:
            if len(working) == most:
                await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for done in [task for task in working if task.done()]:
                working.remove(done)
                done.result()
            working.add(asyncio.create_task(work(item)))
        await asyncio.gather(*working)
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)


def in_thread(work: Callable[[], T]) -> Callable[[], T]:
    """`work` for another thread. When it fails, that thread lets go of all that its functions held.

    An error keeps the variables of the functions that it went through. It ends on the event loop, which would let go of
    them. For a cursor of SQLite the loop would wait until that thread, busy with another query, leaves its connection.
    """

    def run() -> T:
        try:
            return work()
        except BaseException as error:
            before: BaseException | None = error
            while before is not None:
                clear_frames(before.__traceback__)
                before = before.__context__
            raise

    return run
