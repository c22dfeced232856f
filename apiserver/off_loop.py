"""Work that may be long, kept off the event loop: while one piece of code runs there, nobody else is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

#: What goes over more things than these is done in a thread; less takes no longer than handing it over.
MANY = 1000

T = TypeVar("T")


async def off_loop(size: int, function: Callable[[], T]) -> T:
    """What `function`, which goes over `size` things, returns: done in a thread if they are many."""
    return await asyncio.to_thread(function) if size > MANY else function()


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """What all of these return, done at the same time. When one fails, the others are ended first."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        tasks.clear()  # they have the error, which has this frame: what they read would stay until that is collected
