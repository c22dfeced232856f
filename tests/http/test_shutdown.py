"""Requests that are cancelled when the server stops."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from apiserver.http.shutdown import answered_when_stopped

pytestmark = pytest.mark.anyio

START: Message = {"type": "http.response.start", "status": 200, "headers": []}


async def cancelled(*, begun: bool) -> list[Message]:
    """What is sent for a request that is cancelled: before its answer has begun, or after."""
    sent: list[Message] = []
    waiting = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if begun:
            await send(START)
        waiting.set()
        await asyncio.Event().wait()

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        if sent and message["type"] == "http.response.start":
            raise RuntimeError("as uvicorn says")
        sent.append(message)

    task = asyncio.ensure_future(answered_when_stopped(app)({"type": "http"}, receive, send))
    await waiting.wait()
    task.cancel()
    await task
    return sent


async def test_a_request_that_lasts_too_long_is_told_to_come_back() -> None:
    start, body = await cancelled(begun=False)
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (503, b"2")
    assert body["body"] == b"The server is stopping"


async def test_an_answer_that_has_begun_is_broken_off() -> None:
    assert await cancelled(begun=True) == [START]
