"""Who answers a request: its path decides. And what goes around every answer: counting, the audit log, CORS."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apiserver.common.counters import Counters
from apiserver.data import live
from apiserver.fileserver.server import FileServer
from apiserver.operating.audit.requests import RequestAudit
from apiserver.operating.metrics.server import Metrics
from apiserver.pages.addresses import FIRST_STEPS, first_step, is_browser
from apiserver.pages.server import Elsewhere, Viewer
from apiserver.rpc.dispatch import ANSWERED_AS, METHODS, Dispatcher
from apiserver.server.opening import Opening
from apiserver.services.backend import Backend

#: The path of the files on the API's port. They also have a port of their own.
FILES = "/files"

_CORS_HEADERS = (
    *("content-type", "authorization", "x-clearml-impersonate-as", "access-control-allow-credentials"),
    "x-auth-token",  # ModelArts' clients send it
)


class App:
    """The server as one ASGI app. The path of a request decides who answers:

    - `/events.add`, `/v2.13/events.add`: the API's dispatcher. FastAPI would double the time of a small call.
    - `/files`, `/files/…`: the file server.
    - `/`, `/projects/…`, `/assets/…` and the like, when a browser asks for them: the viewer.
    - `/data/…`, `/v1/metrics`, `/health`, `/openapi.json` and the paths of the vendors' APIs: FastAPI.
    - anything else: the dispatcher, which answers that there is no such endpoint; a browser that asks for an address
      without a dot, such as `/login`, gets the viewer's page that says so.
    """

    def __init__(
        self,
        backend: Backend,
        opening: Opening,
        *,
        api: Dispatcher,
        files: FileServer,
        viewer: Viewer | Elsewhere | None,
        others: FastAPI,
        files_port: ASGIApp,
        metrics: Metrics,
        audit: RequestAudit,
        allowed_origins: Sequence[str] = (),
        around: Callable[[ASGIApp], ASGIApp] | None = None,
    ) -> None:
        """`allowed_origins`: pages of these origins may call the server. `around`: goes around each request.

        Both are for both ports.
        """
        self.backend = backend
        self.lifespan = opening.opened
        self.metrics = metrics
        """Answers `/metrics`."""
        counted = partial(_counted, counters=backend.counters, audit=audit)
        around = around or (lambda app: app)
        self.files_port = around(_with_cors(counted(files_port, name="files"), allowed_origins))
        """The app for the files' own port."""
        self._api = api
        self._files = counted(files, name="files")
        self._viewer = viewer
        self._others = counted(others)
        self.routes = others.routes
        """What is served beside endpoints, files and pages."""
        self._first_steps = {first_step(route.path) for route in others.routes if isinstance(route, Route)}
        self._pages = counted(viewer, name="viewer") if viewer else self._others
        self._entry = around(_with_cors(self._answer, allowed_origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._entry(scope, receive, send)

    def end_streams(self) -> None:
        """End all live streams, because the server stops."""
        self.backend.live.close()

    def held(self, seconds: float) -> None:
        """Count a hold of the event loop."""
        self.backend.counters.count("loop_holds")
        self.backend.counters.count("loop_held_seconds", seconds)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app_for(scope)(scope, receive, send)
        await live.go_on(scope, receive, send)

    def _app_for(self, scope: Scope) -> ASGIApp:
        if scope["type"] != "http":
            return self._others
        path: str = scope["path"]
        if self._api.serves(path):
            return self._api
        step = first_step(path)
        if step == FILES[1:]:
            return self._files
        if step in FIRST_STEPS:
            is_viewers = self._viewer is not None and self._viewer.serves(scope)
        else:
            is_viewers = step not in self._first_steps and "." not in step and is_browser(scope)
        return self._pages if is_viewers else self._others


def _counted(app: ASGIApp, counters: Counters, audit: RequestAudit, name: str | None = None) -> ASGIApp:
    """The app, whose answers are counted under `name`, or else under the patterns of their paths, and audited."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        status, started, content_type = 499, time.perf_counter(), b""

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


def _with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    if not origins:
        return app
    methods = [*METHODS, "HEAD", "DELETE"]
    return CORSMiddleware(
        app, allow_origins=origins, allow_credentials=True, allow_methods=methods, allow_headers=_CORS_HEADERS
    )
