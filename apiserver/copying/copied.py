"""What all copying shares: its error, its patience with a store that is busy, and how it says how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from apiserver.stores.documents.base import DocumentStoreBusy
from apiserver.stores.events.base import EventStoreBusy

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")
#: Takes a line for people.
Say = Callable[[str], None]

#: How often a store may be busy before it is given up; it says itself how many seconds to wait.
_ATTEMPTS = 60


class CopyError(Exception):
    """The copy is not whole; the message says why and what to do. What was copied stays, and need not be again."""


async def patiently(
    say: Say, ask: Callable[Asked, Awaitable[Answer]], *args: Asked.args, **options: Asked.kwargs
) -> Answer:
    """What a store answers, asked again while it is busy."""
    for _ in range(_ATTEMPTS):
        try:
            return await ask(*args, **options)
        except (EventStoreBusy, DocumentStoreBusy) as error:
            say(f"waiting: {error}")
            await asyncio.sleep(error.retry_after)
    return await ask(*args, **options)
