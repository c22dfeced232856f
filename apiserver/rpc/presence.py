"""Whether a client is still there while its request is worked on: what nobody waits for is ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive


class ClientDisconnected(Exception):
    """The client went away before its request was whole, or before its answer was made; nobody is there to answer."""


@asynccontextmanager
async def while_there(receive: Receive) -> AsyncIterator[None]:
    """End what the block waits for with ClientDisconnected as soon as the client is gone.

    `receive` is that of a request whose body has come whole: what comes then is that the client goes.
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
