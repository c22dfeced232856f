"""The server as an app: `create_app` has its parts built, then the apps that answer."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp, Receive, Scope, Send

from apiserver.data import live
from apiserver.data.exports import Exports
from apiserver.operating.metrics.sharing import SharedCounters
from apiserver.server.backend import build_backend
from apiserver.server.bounds import Bounds
from apiserver.server.opening import Opening
from apiserver.server.parts import Parts
from apiserver.server.routing import with_cors
from apiserver.server.traces import Traces
from apiserver.server.upkeep import build_upkeep
from apiserver.server.ways import Apps, build_apps
from apiserver.services.access.credentials import Credential
from apiserver.settings.settings import Settings
from apiserver.stores import formats
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.events.base import EventStore
from apiserver.stores.files.disk import FileStore


class App:
    """The server as one ASGI app, and the files' own port as another one."""

    def __init__(self, parts: Parts, apps: Apps) -> None:
        self.backend = parts.backend
        self.metrics = apps.metrics
        self.routes = apps.routes
        self._opening = Opening(parts)
        self._traces = parts.traces
        self._api = apps.api
        self._entry = self._around(self._answer)
        self.files_port = self._around(apps.files)
        """The app of the files' own port."""

    def lifespan(self) -> AbstractAsyncContextManager[Credential | None]:
        """A context in which the server can answer; gives the admin's access key if this start made it."""
        return self._opening.opened()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._entry(scope, receive, send)

    def end_streams(self) -> None:
        """End all live streams, because the server stops."""
        self.backend.live.close()

    def held(self, seconds: float) -> None:
        """Count a hold of the event loop."""
        self.backend.counters.count("loop_holds")
        self.backend.counters.count("loop_held_seconds", seconds)

    def _around(self, app: ASGIApp) -> ASGIApp:
        """The app with what goes around all requests of a port."""
        app = with_cors(app, self.backend.settings.allowed_origins)
        return app if self._traces is None else self._traces.around(app)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._api(scope, receive, send)
        await live.go_on(scope, receive, send)  # the stream that the answer has opened, if any


def create_app(settings: Settings, bounds: Bounds | None = None) -> App:
    """The server as an app; its stores open and close with its lifespan. `bounds`: the limits that nobody sets.

    Creates the data folder and its secrets. Raises DataFolderError and SchemaFileError.
    """
    bounds = bounds or Bounds()
    folder = DataFolder(settings.data)
    folder.make()
    formats.require(settings)
    settings = dataclasses.replace(settings, token_secret=settings.token_secret or folder.token_secret())
    parts = _parts(settings, bounds, folder)
    return App(parts, build_apps(parts, bounds))


def _parts(settings: Settings, bounds: Bounds, folder: DataFolder) -> Parts:
    files = FileStore(folder.files, max_bytes=settings.max_upload_bytes, fsync=settings.durability == "fsync")
    backend = build_backend(settings, bounds, folder, files)
    traces = Traces(settings) if settings.traces_to else None
    if traces is not None:
        traces.trace_calls(backend.events, EventStore, "events")
        traces.trace_calls(backend.documents, DocumentStore, "documents")
    return Parts(
        folder,
        files,
        backend,
        build_upkeep(backend, folder, bounds),
        Exports(folder.exports),
        SharedCounters(backend.counters, folder.metrics, settings.workers),
        traces,
    )
