"""The application: `create_app` puts the stores, the API, the file server, the vendors' APIs and the pages together."""

from __future__ import annotations

import dataclasses
import threading
from functools import cache, partial

import orjson
from fastapi import FastAPI, Request, Response
from starlette.routing import Route

from apiserver import __version__
from apiserver.common import resources
from apiserver.common.answers import LARGEST, MUCH
from apiserver.common.counters import Counters
from apiserver.common.seldom import Seldom
from apiserver.data import addresses
from apiserver.data.exports import Exports
from apiserver.data.links import DataLinks
from apiserver.fileserver.deletions import FileDeletions
from apiserver.fileserver.links import FileLinks
from apiserver.fileserver.server import FileServer
from apiserver.http import descriptors
from apiserver.live.hub import Hub
from apiserver.operating.audit.log import AuditLog
from apiserver.operating.audit.requests import RequestAudit
from apiserver.operating.backup.check_schedule import ScheduledChecks
from apiserver.operating.backup.schedule import ScheduledBackups
from apiserver.operating.doctor.scrub import Scrub
from apiserver.operating.metrics.server import Metrics, livez
from apiserver.operating.metrics.sharing import SharedCounters
from apiserver.operating.retention.schedule import ScheduledRetention
from apiserver.otlp import server as otlp
from apiserver.pages.server import Elsewhere, Viewer
from apiserver.reading.scroll import Scrolls
from apiserver.rpc.admission import Admission
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.body import Limits
from apiserver.rpc.dispatch import Dispatcher
from apiserver.rpc.in_flight import InFlight
from apiserver.rpc.openapi import openapi, with_routes
from apiserver.rpc.reply import SAFE_HEADERS
from apiserver.rpc.routes import Routes, build_routes
from apiserver.rpc.schema import EndpointTable, load_schemas
from apiserver.rpc.sending import LargeResponse
from apiserver.rpc.validate import compile_request
from apiserver.server.bounds import Bounds
from apiserver.server.described import other_paths
from apiserver.server.health import Health
from apiserver.server.opening import Opening
from apiserver.server.routing import FILES, App
from apiserver.server.traces import Traces
from apiserver.services import loading
from apiserver.services.access import identities, proxy_users, roles
from apiserver.services.access.attempts import Attempts
from apiserver.services.access.key_uses import KeyUses
from apiserver.services.access.oidc.provider import Provider
from apiserver.services.backend import Backend, registry
from apiserver.services.documents.cache import DocumentCache
from apiserver.services.events.last_metrics import LastMetrics
from apiserver.services.history.store import History
from apiserver.services.older_clients.metadata import with_older_metadata
from apiserver.services.older_clients.tags import with_older_tags
from apiserver.services.projects.files import may_use_file
from apiserver.services.quotas.quotas import Quotas
from apiserver.services.quotas.series_limit import SeriesLimit
from apiserver.services.quotas.usage import Usages
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.settings.settings import Settings
from apiserver.stores import formats
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.engines import document_engine, event_engine
from apiserver.stores.events.base import EventStore
from apiserver.stores.files.disk import FileStore
from apiserver.vendors import baseten, modelarts, pai

#: The vendors whose APIs the server answers, beside ClearML's.
VENDORS = (modelarts.router, baseten.router, pai.router)
#: The routes that FastAPI answers. They are put into the app as they are: to include a router would make each anew.
ROUTES = [*(route for vendor in VENDORS for route in vendor.routes), *addresses.ROUTES]


def create_app(settings: Settings, bounds: Bounds | None = None) -> App:
    """The server as an app; its stores open and close with its lifespan. `bounds`: the limits that nobody sets.

    Creates the data folder and its secrets. Raises DataFolderError and SchemaFileError.
    """
    bounds = bounds or Bounds()
    folder = DataFolder(settings.data)
    folder.make()
    formats.require(settings)
    settings = dataclasses.replace(settings, token_secret=settings.token_secret or folder.token_secret())
    store = FileStore(folder.files, max_bytes=settings.max_upload_bytes, fsync=settings.durability == "fsync")
    backend = _backend(settings, bounds, folder, store)
    traces = Traces(settings) if settings.traces_to else None
    if traces is not None:
        traces.trace_calls(backend.events, EventStore, "events")
        traces.trace_calls(backend.documents, DocumentStore, "documents")
    table, routes = _endpoints()
    admission = Admission(max(LARGEST // settings.workers, MUCH), bounds.answers)
    limits = Limits(body=settings.max_body_bytes, in_flight=settings.max_bytes_in_flight)
    in_flight = InFlight(limits.in_flight)
    audit_log = AuditLog(settings, folder.audit, bounds.audit)
    audit = RequestAudit(audit_log)
    dispatcher = _dispatcher(routes, backend, limits, in_flight, admission, audit)
    file_server = partial(
        FileServer,
        store,
        backend.auth,
        backend.file_deletions,
        backend.file_links,
        rules=roles,
        may_use=partial(may_use_file, backend),
        room=backend.quotas,
    )

    others = FastAPI(title="apiserver", version=__version__, openapi_url=None)
    counters = SharedCounters(backend.counters, folder.metrics, settings.workers)
    metrics = Metrics(backend, folder, counters)
    backups = ScheduledBackups(settings, bounds.backup) if settings.backup_to else None
    checks = ScheduledChecks(settings, bounds.backup) if settings.backup_to and settings.backup_check_every else None
    retention = _retention(backend, audit_log, bounds)
    scrub = _scrub(settings, folder, backend.counters, bounds)
    for part in (audit_log, scrub, backups, checks, retention, backend.quotas):
        if part is not None:
            metrics.gauges |= part.gauges()
    reporting = {
        "scrub": scrub,
        "quotas": backend.quotas,
        "backup": backups,
        "backup_check": checks,
        "retention": retention,
    }
    health = Health(backend, store, {name: part.report for name, part in reporting.items() if part is not None})
    others.router.routes += [
        *ROUTES,
        Route("/health", health),
        Route("/readyz", health),
        Route("/livez", livez),
        Route("/metrics", metrics),
        Route(otlp.PATH, otlp.Otlp(backend, limits, in_flight)),
        Route("/openapi.json", _openapi, methods=["GET"]),
    ]
    others.router.default = dispatcher
    others.state.backend = backend
    others.state.admission = admission
    others.state.exports = exports = Exports(folder.exports)
    others.state.validate_tasks = compile_request(table["tasks.get_all"][-1].request)
    others.state.data_links = DataLinks(settings.token_secret)
    return App(
        backend,
        Opening(
            backend,
            folder,
            store,
            exports,
            counters,
            audit_log,
            [
                *(part.job for part in (backups, checks, retention) if part is not None),
                *([scrub] if scrub is not None else []),
            ],
            traces,
        ),
        api=dispatcher,
        files=file_server(prefix=FILES),
        viewer=_viewer(settings),
        others=others,
        files_port=file_server(),
        metrics=metrics,
        audit=audit,
        allowed_origins=settings.allowed_origins,
        around=traces.around if traces is not None else None,
    )


def _scrub(settings: Settings, folder: DataFolder, counters: Counters, bounds: Bounds) -> Scrub | None:
    """What reads the events again and again to find damage; None if nobody wants that, or the engine does it itself."""
    step = event_engine(settings).scrub(folder) if settings.scrub_days else None
    if step is None:
        return None
    path = folder.root / "scrub.json"
    return Scrub(step, path, days=settings.scrub_days, requests=lambda: counters.answered, bounds=bounds.scrub)


def _retention(backend: Backend, audit: AuditLog, bounds: Bounds) -> ScheduledRetention | None:
    """What deletes events by itself that the settings do not keep; None if they do not say so."""
    settings = backend.settings
    if not settings.retention or not settings.retention_every:
        return None
    return ScheduledRetention(
        settings, backend.events, backend.documents, backend.file_deletions, audit.add, bounds.retention
    )


def _viewer(settings: Settings) -> Viewer | Elsewhere | None:
    """What answers browsers that ask for a page; None: as programs are answered."""
    if settings.web_url:
        return Elsewhere(settings.web_url)
    return Viewer() if settings.viewer else None


def _backend(settings: Settings, bounds: Bounds, folder: DataFolder, files: FileStore) -> Backend:
    documents = document_engine(settings).store(folder)
    events = event_engine(settings).store(folder)
    scrolls = Scrolls(settings.token_secret)
    key_uses = KeyUses(documents)
    identities.bound_cache(documents, clock=bounds.clock)
    streams = min(bounds.live.streams, descriptors.connection_limit(settings.max_connections) // 2)
    counters, usages = Counters(), Usages(events, documents, folder.files, bounds.clock)
    series_limit = SeriesLimit(events, settings.max_series_per_task)
    last_metrics = LastMetrics(events, documents, series_limit.forget, bounds.last_metrics)
    return Backend(
        settings=settings,
        documents=documents,
        events=events,
        last_metrics=last_metrics,
        series_limit=series_limit,
        history=History(events, documents, days=settings.history_days),
        auth=Authenticator(
            settings.token_secret,
            identities.lookup(documents, key_uses, Attempts(bounds.clock)),
            current=identities.current(documents, key_uses),
            become=identities.become(documents),
            proxy_header=settings.proxy_user_header.lower(),
            of_proxy=proxy_users.of_proxy(documents, settings) if settings.proxy_user_header else None,
            allowed_origins=settings.allowed_origins,
        ),
        key_uses=key_uses,
        attempts=Attempts(bounds.clock),
        provider=Provider(settings, bounds=bounds.provider) if settings.oidc_issuer else None,
        scrolls=scrolls,
        document_cache=DocumentCache(documents),
        file_deletions=FileDeletions(files, documents, replaced_days=settings.replaced_files_days),
        file_links=FileLinks(settings.token_secret),
        counters=counters,
        usages=usages,
        bounds=bounds.calls,
        told=Seldom(bounds.clock),
        quotas=(
            Quotas(settings.quotas, events, documents, last_metrics, usages, counters, bounds.clock)
            if settings.quotas
            else None
        ),
        live=Hub(events, documents, scrolls, dataclasses.replace(bounds.live, streams=streams)),
    )


@cache
def _endpoints() -> tuple[EndpointTable, Routes]:
    """The endpoints as `schemas` describe them, and how each is served: the same for all servers of a process.

    Raises SchemaFileError.
    """
    schemas = resources.path("schemas")
    table = load_schemas(schemas, schemas / resources.PARSED)
    loading.load({name.partition(".")[0] for name in table})
    return table, build_routes(table, [with_older_metadata(with_older_tags(registration)) for registration in registry])


def _dispatcher(
    routes: Routes,
    backend: Backend,
    limits: Limits,
    in_flight: InFlight,
    admission: Admission,
    audit: RequestAudit,
) -> Dispatcher:
    return Dispatcher(
        routes,
        backend.auth,
        backend,
        rules=roles,
        limits=limits,
        in_flight=in_flight,
        errors=STORE_ERRORS,
        admission=admission,
        answered=backend.counters.request,
        told=audit,
    )


_describing = threading.Lock()


def _openapi(request: Request) -> Response:
    with _describing:
        content = _description()
    response = LargeResponse(content, media_type="application/json")
    response.raw_headers += SAFE_HEADERS
    return response


@cache
def _description() -> bytes:
    """The description of all addresses as JSON. It is made once, when it is asked for: that takes long."""
    table, _ = _endpoints()
    described = with_routes(openapi(table), ROUTES)
    return orjson.dumps({**described, "paths": {**described["paths"], **other_paths()}})
