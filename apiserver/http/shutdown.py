"""Answers requests that are still running when the server stops: their clients get 503 and try again."""

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
    """`app`, but a cancelled request gets 503 if its answer has not begun. uvicorn cancels requests when it stops.

    Its own answer would be 500, with a traceback in the log.
    """

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            with contextlib.suppress(RuntimeError):  # if the answer has begun, the connection is closed
                await send({"type": "http.response.start", "status": 503, "headers": _HEADERS})
                await send({"type": "http.response.body", "body": _WORDS})

    return answered
