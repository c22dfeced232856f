"""Ends the work on a request when its client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive


class ClientDisconnected(Exception):
    """The client disconnected before its request was complete, or before its answer was made."""


@asynccontextmanager
async def while_connected(receive: Receive) -> AsyncIterator[None]:
    """Run the block; if the client disconnects, cancel what the block waits for and raise ClientDisconnected.

    `receive` is that of a request whose body is complete: the only further message is that the client disconnects.
    """
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not gone or task.uncancel():
            raise
        raise ClientDisconnected from None
    finally:
        watching.cancel()
