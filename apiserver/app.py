"""The application: `create_app` puts the stores, the API, the file server, the vendors' APIs and the pages together."""

from __future__ import annotations

import dataclasses
import importlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cache, partial

import orjson
from fastapi import FastAPI, Request, Response
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from apiserver import __version__, resources
from apiserver.aggregation.scroll import Scrolls
from apiserver.answers import LARGEST, MUCH
from apiserver.data_folder import DataFolder
from apiserver.engines import document_engine, event_engine, owned
from apiserver.files.deletions import FileDeletions
from apiserver.files.links import FileLinks
from apiserver.files.server import FileServer
from apiserver.health import Health
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.body import Limits
from apiserver.rpc.dispatch import METHODS, Dispatcher
from apiserver.rpc.openapi import openapi, with_routes
from apiserver.rpc.reply import SAFE_HEADERS
from apiserver.rpc.schema import EndpointTable, load_schemas
from apiserver.rpc.sending import LargeResponse
from apiserver.services.access import defaults, fixed_users, identities, roles
from apiserver.services.access.attempts import Attempts
from apiserver.services.access.credentials import Credential
from apiserver.services.backend import Backend, registry
from apiserver.services.document_cache import DocumentCache
from apiserver.services.history.store import History
from apiserver.services.last_metrics import LastMetrics
from apiserver.services.older_metadata import with_older_metadata
from apiserver.services.older_tags import with_older_tags
from apiserver.services.series_limit import SeriesLimit
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.settings import Settings
from apiserver.stores.files.disk import FileStore
from apiserver.vendors import baseten, modelarts, pai

#: The vendors whose APIs the server answers, beside ClearML's.
VENDORS = (modelarts.router, baseten.router, pai.router)

#: The path of the files on the API's port. They also have a port of their own.
FILES = "/files"

_CORS_HEADERS = (
    *("content-type", "authorization", "x-clearml-impersonate-as", "access-control-allow-credentials"),
    "x-auth-token",  # ModelArts' clients send it
)

#: Opens the stores; gives the admin's access key if this start made it.
Lifespan = Callable[[], AbstractAsyncContextManager[Credential | None]]


class App:
    """The server as one ASGI app. The path of a request decides who answers:

    - `/events.add`, `/v2.13/events.add`: the API's dispatcher. FastAPI would double the time of a small call.
    - `/files`, `/files/…`: the file server.
    - `/health`, `/openapi.json` and the paths of the vendors' APIs: FastAPI.
    - anything else: the dispatcher, which answers that there is no such endpoint.
    """

    def __init__(
        self,
        backend: Backend,
        lifespan: Lifespan,
        *,
        api: Dispatcher,
        files: FileServer,
        others: FastAPI,
        files_port: ASGIApp,
        allowed_origins: Sequence[str] = (),
    ) -> None:
        """`allowed_origins`: pages of these origins may call the server, on both ports."""
        self.backend = backend
        self.lifespan = lifespan
        """A context in which the stores are open. Raises EventStoreError, DocumentStoreError or FileStoreError."""
        self.files_port = _with_cors(files_port, allowed_origins)
        """The app for the files' own port."""
        self._api = api
        self._files = files
        self._others = others
        self._entry = _with_cors(self._answer, allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._entry(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app_for(scope)(scope, receive, send)

    def _app_for(self, scope: Scope) -> ASGIApp:
        if scope["type"] != "http":
            return self._others
        path: str = scope["path"]
        if self._api.serves(path):
            return self._api
        return self._files if path == FILES or path.startswith(f"{FILES}/") else self._others


def create_app(settings: Settings) -> App:
    """The server as an app; its stores open and close with its lifespan.

    Creates the data folder and its secrets. Raises DataFolderError and SchemaFileError.
    """
    folder = DataFolder(settings.data)
    folder.make()
    settings = dataclasses.replace(settings, token_secret=settings.token_secret or folder.token_secret())
    store = FileStore(folder.files, max_bytes=settings.max_upload_bytes, fsync=settings.durability == "fsync")
    backend = _backend(settings, folder, store)
    schemas = resources.path("schemas")
    table = load_schemas(schemas, schemas / resources.PARSED)
    dispatcher = _dispatcher(settings, table, backend)
    file_server = partial(FileServer, store, backend.auth, backend.file_deletions, backend.file_links, rules=roles)

    others = FastAPI(title="apiserver", version=__version__, openapi_url=None)
    for vendor in VENDORS:
        others.include_router(vendor)
    others.router.routes += [
        Route("/health", Health(backend, store)),
        Route("/openapi.json", _openapi(table), methods=["GET"]),
    ]
    others.router.default = dispatcher
    others.state.backend = backend
    return App(
        backend,
        _lifespan(backend, store, folder),
        api=dispatcher,
        files=file_server(prefix=FILES),
        others=others,
        files_port=file_server(),
        allowed_origins=settings.allowed_origins,
    )


def _backend(settings: Settings, folder: DataFolder, files: FileStore) -> Backend:
    documents = document_engine(settings).store(folder)
    events = event_engine(settings).store(folder)
    return Backend(
        settings=settings,
        documents=documents,
        events=events,
        last_metrics=LastMetrics(events, documents),
        series_limit=SeriesLimit(events, settings.max_series_per_task),
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
        document_cache=DocumentCache(documents),
        file_deletions=FileDeletions(files, documents),
        file_links=FileLinks(settings.token_secret),
    )


def _dispatcher(settings: Settings, table: EndpointTable, backend: Backend) -> Dispatcher:
    for service in {name.partition(".")[0] for name in table}:
        importlib.import_module(f"apiserver.services.{service}")
    limits = Limits(
        body=settings.max_body_bytes,
        in_flight=settings.max_bytes_in_flight,
        answers=max(LARGEST // settings.workers, MUCH),
    )
    handlers = [with_older_metadata(with_older_tags(registration)) for registration in registry]
    return Dispatcher(table, handlers, backend.auth, backend, rules=roles, limits=limits, errors=STORE_ERRORS)


def _openapi(table: EndpointTable) -> Callable[[Request], Response]:
    making = threading.Lock()

    @cache
    def content() -> bytes:
        """The document as JSON. It is made only once, on the first request: that takes long, and anybody may ask."""
        return orjson.dumps(with_routes(openapi(table), [route for vendor in VENDORS for route in vendor.routes]))

    def answer(request: Request) -> Response:
        with making:
            made = content()
        response = LargeResponse(made, media_type="application/json")
        response.raw_headers += SAFE_HEADERS
        return response

    return answer


def _lifespan(backend: Backend, files: FileStore, folder: DataFolder) -> Lifespan:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[Credential | None]:
        async with AsyncExitStack() as opened:
            # Open the event store first and close it last: it locks the data folder, and a server that does not get the
            # lock must not touch any file.
            opened.enter_context(owned(backend.settings, folder))
            for store in (backend.events, backend.documents):
                opened.push_async_callback(store.close)
                await store.open()
            opened.push_async_callback(files.close)
            await files.open()
            await defaults.ensure_defaults(backend.documents, backend.settings)
            await fixed_users.ensure_fixed_users(backend.documents, backend.settings)
            new_credential = await defaults.ensure_admin(backend.documents, backend.settings)
            opened.push_async_callback(backend.last_metrics.close)
            await backend.last_metrics.restate()
            for job in (backend.history.sweeping, backend.file_deletions.deleting):
                opened.push_async_callback(job.close)
                job.start()
            if backend.documents.shared:  # other servers may use them, too
                opened.push_async_callback(backend.last_metrics.restating.close)
                backend.last_metrics.restating.start(at_once=False)
            yield new_credential

    return lifespan


def _with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    if not origins:
        return app
    methods = [*METHODS, "HEAD", "DELETE"]
    return CORSMiddleware(
        app, allow_origins=origins, allow_credentials=True, allow_methods=methods, allow_headers=_CORS_HEADERS
    )
