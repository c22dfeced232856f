"""Sends answers: adds headers, compresses, and decides whether the connection stays open."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

import anyio.to_thread
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from apiserver.rpc.body import Body
from apiserver.rpc.encode import Json, size_of
from apiserver.rpc.encodings import accepted_encoding, compress
from apiserver.rpc.envelope import Meta, failure
from apiserver.rpc.errors import ApiError
from apiserver.rpc.sending import send_body

AnswerHeaders = list[tuple[str, str]]
JsonT = TypeVar("JsonT", bytes, Json)

JSON = "application/json"

#: Answers below `_SMALL` bytes are not compressed; those of `_LARGE` and more are compressed in a thread.
_SMALL, _LARGE = 4 * 2**10, 64 * 2**10
#: Errors after which the rest of the body may still come.
_BODY_LEFT = (408, 413)
#: The SDK's name of itself begins with one of these.
_SDK = ("clearml-", "trains-")
#: Headers of every answer: browsers must not guess another type than it says, and must not store it.
SAFE_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


@dataclass(slots=True)
class Reply:
    """A complete answer."""

    status: int
    content: Json
    headers: AnswerHeaders = field(default_factory=list)
    content_type: str = JSON

    async def send(self, request: Mapping[str, str], body: Body, send: Send) -> None:
        """Answer the request whose headers are `request`, and drain its `body`, so that the client sees the answer."""
        content, headers = await compressed(self.content, request, self.content_type)
        headers += [("content-length", str(size_of(content))), *self.headers]
        if must_close(request) or self.status in _BODY_LEFT or body.may_outlast_drain:
            headers.append(("connection", "close"))
        await send({"type": "http.response.start", "status": self.status, "headers": _encoded(headers)})
        await send_body(send, content, more_body=not body.complete)
        if not body.complete:
            await body.drain()
            await send({"type": "http.response.body", "body": b""})


@dataclass(slots=True)
class StreamReply:
    """An answer that is sent while it is made."""

    chunks: AsyncGenerator[bytes, None]
    headers: AnswerHeaders
    status: int = 200

    async def send(self, scope: Scope, receive: Receive, request: Mapping[str, str], send: Send) -> None:
        """Answer until the chunks end or the client leaves."""
        headers = [*self.headers, *([("connection", "close")] if must_close(request) else [])]
        response = StreamingResponse(self.chunks, self.status)
        response.raw_headers = _encoded(headers)
        async with aclosing(self.chunks):
            await response(scope, receive, send)


def refusal(meta: Meta, error: ApiError) -> Reply:
    """The reply to a request that is refused."""
    headers = [("retry-after", str(error.retry_after))] if error.retry_after is not None else []
    headers += [("allow", error.allow)] if error.allow is not None else []
    return Reply(error.code, failure(meta, error), headers)


def must_close(request: Mapping[str, str]) -> bool:
    """Whether the client needs a new connection for each call.

    The SDK forks processes that share its sockets. On a connection that stays open, their calls would get mixed up.
    """
    return "x-clearml-agent" in request or is_sdk(request)


def is_sdk(request: Mapping[str, str]) -> bool:
    """Whether the client says that it is the SDK."""
    return request.get("x-clearml-client", "").lower().startswith(_SDK) or (
        request.get("x-trains-client", "").lower().startswith(_SDK)
    )


async def compressed(
    content: JsonT, request: Mapping[str, str], content_type: str = JSON
) -> tuple[JsonT | bytes, AnswerHeaders]:
    """The content, compressed if it is large enough and the request allows it, and the headers that say so."""
    headers = [("content-type", content_type)] if content else []
    if (size := size_of(content)) < _SMALL:
        return content, headers
    headers.append(("vary", "accept-encoding"))
    encoding = accepted_encoding(request.get("accept-encoding", ""))
    if encoding is None:
        return content, headers
    headers.append(("content-encoding", encoding))
    if size < _LARGE:
        return compress(content, encoding), headers
    return await anyio.to_thread.run_sync(compress, content, encoding), headers


def _encoded(headers: AnswerHeaders) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers] + SAFE_HEADERS
