"""Asks a store again while it is busy, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from apiserver.stores.documents.base import DocumentStoreBusy
from apiserver.stores.events.base import EventStoreBusy

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
#: Shows a line to the user.
Say = Callable[[str], None]

#: How often a store may be busy before the copy fails. The store says how many seconds to wait each time.
_ATTEMPTS = 60


class CopyError(Exception):
    """The copy is incomplete; the message says why and what to do. What was copied is not copied again."""


async def patiently(
    say: Say, ask: Callable[Arguments, Awaitable[Result]], *args: Arguments.args, **options: Arguments.kwargs
) -> Result:
    """Call `ask`, a method of a store, until the store is not busy; returns its answer."""
    for _ in range(_ATTEMPTS):
        try:
            return await ask(*args, **options)
        except (EventStoreBusy, DocumentStoreBusy) as error:
            say(f"waiting: {error}")
            await asyncio.sleep(error.retry_after)
    return await ask(*args, **options)
