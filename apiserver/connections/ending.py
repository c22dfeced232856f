"""Requests that last longer than a server that stops waits for them: their clients are told to come back."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import ASGIApp, Receive, Scope, Send

_WORDS = b"The server is stopping"
_HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(_WORDS)),
    (b"retry-after", b"2"),
    (b"connection", b"close"),
]


def answered_when_stopped(app: ASGIApp) -> ASGIApp:
    """The application; but a request that is cancelled, as by uvicorn when it stops, gets 503 unless its answer began.

    uvicorn's own answer would be 500, with a stack in the log.
    """

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            with contextlib.suppress(RuntimeError):  # the answer has begun: its connection is closed
                await send({"type": "http.response.start", "status": 503, "headers": _HEADERS})
                await send({"type": "http.response.body", "body": _WORDS})

    return answered
