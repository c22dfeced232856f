"""Which app answers a request, and what goes around every answer: counting, the audit log, CORS."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apiserver.common.counters import Counters
from apiserver.operating.audit.requests import RequestAudit
from apiserver.rpc.dispatch import ANSWERED_AS, METHODS

_CORS_HEADERS = (
    *("content-type", "authorization", "x-clearml-impersonate-as", "access-control-allow-credentials"),
    "x-auth-token",  # ModelArts' clients send it
)


class Way(NamedTuple):
    """A way in: `app` answers the HTTP requests for which `leads` is true."""

    leads: Callable[[Scope], bool]
    app: ASGIApp


class Routing:
    """An app that hands each HTTP request to the first way that leads, and all else to the app of `others`."""

    def __init__(self, ways: Sequence[Way], others: ASGIApp) -> None:
        self._ways = ways
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app_for(scope)(scope, receive, send)

    def _app_for(self, scope: Scope) -> ASGIApp:
        if scope["type"] == "http":
            for way in self._ways:
                if way.leads(scope):
                    return way.app
        return self._others


def counted(app: ASGIApp, counters: Counters, audit: RequestAudit, name: str | None = None) -> ASGIApp:
    """The app, whose answers are counted under `name`, or else under the patterns of their paths, and audited."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        status = 499  # the client leaves before an answer begins
        started, content_type = time.perf_counter(), b""

        async def sent(message: Message) -> None:
            nonlocal status, content_type
            if message["type"] == "http.response.start":
                status = message["status"]
                content_type = next((value for header, value in message["headers"] if header == b"content-type"), b"")
            await send(message)

        try:
            await app(scope, receive, sent)
        finally:
            pattern = name or getattr(scope.get("route"), "path", None)
            if pattern is not None:  # otherwise it is the dispatcher, which counts its answers itself
                scope[ANSWERED_AS] = pattern
                counters.request(pattern, status, time.perf_counter() - started)
                audit.other(scope, status, content_type.decode("latin-1"))

    return answer


def with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The app, which pages of these origins may call, too."""
    if not origins:
        return app
    methods = [*METHODS, "HEAD", "DELETE"]
    return CORSMiddleware(
        app, allow_origins=origins, allow_credentials=True, allow_methods=methods, allow_headers=_CORS_HEADERS
    )
