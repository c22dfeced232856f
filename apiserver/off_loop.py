"""Work that may be long, kept off the event loop: while one piece of code runs there, nobody else is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

#: What goes over more things than these is done in a thread; less takes no longer than handing it over.
MANY = 1000

T = TypeVar("T")


async def off_loop(size: int, function: Callable[[], T]) -> T:
    """What `function`, which goes over `size` things, returns: done in a thread if they are many."""
    return await asyncio.to_thread(function) if size > MANY else function()
