"""Reading the bodies of vendors' requests, within limits, as JSON.

Their Content-Type is ignored: the curl example in Baseten's document sends the type of a form.
"""

from __future__ import annotations

from fastapi import Request

from apiserver.rpc.body import Body, Limits
from apiserver.rpc.in_flight import InFlight

_LIMITS = Limits(body=64 * 2**10)
_in_flight = InFlight(_LIMITS.in_flight)


class _WholeRequest(Request):
    """A request whose body has been read, with the Content-Type of JSON."""

    def __init__(self, request: Request, content: bytes) -> None:
        headers = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
        super().__init__({**request.scope, "headers": [*headers, (b"content-type", b"application/json")]})
        self._content = content

    async def body(self) -> bytes:
        return self._content


async def with_body(request: Request) -> Request:
    """The request with its body read. Call it for authenticated callers only. Raises what `Body.read` raises."""
    body = Body(request.receive, request.headers, _LIMITS, _in_flight)
    body.known()
    try:
        return _WholeRequest(request, await body.read())
    finally:
        body.release()
