"""The application: `create_app` puts the stores, the API, the file server and the health page together.

Calls of the API go straight to its dispatcher, a plain ASGI app: FastAPI's machinery would take as long as a small call
does. Whatever else is no path of FastAPI's own falls through to it, too.
"""

from __future__ import annotations

import dataclasses
import importlib
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from apiserver import __version__, resources
from apiserver.aggregation.scroll import Scrolls
from apiserver.answers import LARGEST, MUCH
from apiserver.data_folder import DataFolder
from apiserver.files.deletions import FileDeletions
from apiserver.files.links import FileLinks
from apiserver.files.server import FileServer
from apiserver.health import Health
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.body import Limits
from apiserver.rpc.dispatch import METHODS, Dispatcher
from apiserver.rpc.in_turns import LargeResponse
from apiserver.rpc.openapi import openapi, with_routes
from apiserver.rpc.reply import SAFE_HEADERS
from apiserver.rpc.schema import Table, load_schemas
from apiserver.services.access import defaults, fixed_users, identities, roles
from apiserver.services.access.attempts import Attempts
from apiserver.services.backend import Backend, registry
from apiserver.services.history.store import History
from apiserver.services.last_metrics import LastMetrics
from apiserver.services.older_metadata import with_older_metadata
from apiserver.services.older_tags import with_older_tags
from apiserver.services.remembered import Remembered
from apiserver.services.series_bound import SeriesBound
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.settings import Settings
from apiserver.stores.engines import document_store, event_store, owned
from apiserver.stores.files.disk import FileStore
from apiserver.vendors import baseten, modelarts, pai

#: Beside the API of its own, the server answers those of these.
VENDORS = (modelarts.router, baseten.router, pai.router)

_CORS_HEADERS = (
    *("content-type", "authorization", "x-clearml-impersonate-as", "access-control-allow-credentials"),
    "x-auth-token",  # of ModelArts' clients
)


class _App(FastAPI):
    """FastAPI, but for calls that go to `direct`; with `cors`, not those of pages, which want more headers."""

    direct: Dispatcher | None = None
    cors = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.direct is not None and scope["type"] == "http" and self.direct.serves(scope["path"]):
            of_a_page = self.cors and any(name == b"origin" for name, _ in scope["headers"])
            if not of_a_page:
                return await self.direct(scope, receive, send)
        return await super().__call__(scope, receive, send)


def create_app(settings: Settings) -> FastAPI:
    """The server as an ASGI app; its stores open and close with its lifespan.

    Makes the data folder and its secrets. `app.state` has `backend`, `files` (the ASGI app of the files' own port) and,
    once started, `new_credential` (the admin's access key, if this start made it). Raises DataFolderError, SchemaError,
    and when it starts EventStoreError, DocumentStoreError or FileStoreError.
    """
    folder = DataFolder(settings.data)
    folder.make()
    settings = dataclasses.replace(settings, token_secret=settings.token_secret or folder.token_secret())
    store = FileStore(folder.files, max_bytes=settings.max_upload_bytes, fsync=settings.durability == "fsync")
    backend = _backend(settings, folder, store)
    schemas = resources.path("schemas")
    table = load_schemas(schemas, schemas / resources.PARSED)
    files = FileServer(store, backend.auth, backend.file_deletions, backend.file_links, rules=roles)
    files_below_api = FileServer(
        store, backend.auth, backend.file_deletions, backend.file_links, prefix="/files", rules=roles
    )

    dispatcher = _dispatcher(settings, table, backend)
    app = _App(title="apiserver", version=__version__, lifespan=_lifespan(backend, store, folder), openapi_url=None)
    for vendor in VENDORS:
        app.include_router(vendor)
    app.router.routes += [
        Route("/health", Health(backend, store)),
        Route("/openapi.json", _openapi(table), methods=["GET"]),
        Route("/files", files_below_api),
        Mount("/files", files_below_api),
        Mount("/", dispatcher),
    ]
    app.router.default = dispatcher  # for what no pattern matches, such as a line feed
    app.direct = dispatcher
    if settings.allowed_origins:
        app.cors = True
        app.add_middleware(CORSMiddleware, **_cors(settings))
    app.state.backend = backend
    app.state.files = CORSMiddleware(files, **_cors(settings)) if settings.allowed_origins else files
    app.state.new_credential = None
    return app


def _backend(settings: Settings, folder: DataFolder, files: FileStore) -> Backend:
    documents = document_store(settings, folder)
    events = event_store(settings, folder)
    return Backend(
        settings=settings,
        documents=documents,
        events=events,
        last_metrics=LastMetrics(events, documents),
        series_bound=SeriesBound(events, settings.max_series_per_task),
        history=History(events, documents, days=settings.history_days),
        auth=Authenticator(
            settings.token_secret,
            identities.lookup(documents),
            current=identities.current(documents),
            become=identities.become(documents),
            allowed_origins=settings.allowed_origins,
        ),
        attempts=Attempts(),
        scrolls=Scrolls(settings.token_secret),
        remembered=Remembered(documents),
        file_deletions=FileDeletions(files, documents),
        file_links=FileLinks(settings.token_secret),
    )


def _dispatcher(settings: Settings, table: Table, backend: Backend) -> Dispatcher:
    for service in {name.partition(".")[0] for name in table}:
        importlib.import_module(f"apiserver.services.{service}")
    limits = Limits(
        body=settings.max_body_bytes,
        in_flight=settings.max_bytes_in_flight,
        answers=max(LARGEST // settings.workers, MUCH),
    )
    handlers = [with_older_metadata(with_older_tags(registration)) for registration in registry]
    return Dispatcher(table, handlers, backend.auth, backend, rules=roles, limits=limits, errors=STORE_ERRORS)


def _openapi(table: Table) -> Callable[[Request], Response]:
    making = threading.Lock()

    @cache
    def content() -> bytes:
        """Made when it is first asked for, and once: it takes long, and anybody may ask."""
        return orjson.dumps(with_routes(openapi(table), [route for vendor in VENDORS for route in vendor.routes]))

    def answer(request: Request) -> Response:
        with making:
            made = content()
        response = LargeResponse(made, media_type="application/json")
        response.raw_headers += SAFE_HEADERS
        return response

    return answer


def _lifespan(
    backend: Backend, files: FileStore, folder: DataFolder
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as opened:
            # Events first, and closed last: they lock the data folder, and a server that is refused must touch no file.
            opened.enter_context(owned(backend.settings, folder))
            for store in (backend.events, backend.documents):
                opened.push_async_callback(store.close)
                await store.open()
            opened.push_async_callback(files.close)
            await files.open()
            await defaults.ensure_defaults(backend.documents, backend.settings)
            await fixed_users.ensure_fixed_users(backend.documents, backend.settings)
            app.state.new_credential = await defaults.ensure_admin(backend.documents, backend.settings)
            opened.push_async_callback(backend.last_metrics.close)
            await backend.last_metrics.restate()
            backend.last_metrics.watch()
            opened.push_async_callback(backend.history.close)
            backend.history.watch()
            opened.push_async_callback(backend.file_deletions.close)
            backend.file_deletions.watch()
            yield

    return lifespan


def _cors(settings: Settings) -> dict[str, Any]:
    return {
        "allow_origins": settings.allowed_origins,
        "allow_credentials": True,
        "allow_methods": [*METHODS, "HEAD", "DELETE"],
        "allow_headers": _CORS_HEADERS,
    }
