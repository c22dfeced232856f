"""Builds the apps that answer, and the ways that lead to them. The path of a request decides:

- `/events.add`, `/v2.13/events.add`: the API's dispatcher. FastAPI would double the time of a small call.
- `/files`, `/files/…`: the file server.
- `/`, `/projects/…`, `/assets/…` and the like, when a browser asks for them: the pages. Also any address without a dot
  that nothing else has, such as `/login`: its page says so.
- `/data/…`, `/v1/metrics`, `/health`, `/openapi.json` and the paths of the vendors' APIs: FastAPI.
- anything else: the dispatcher, which answers that there is no such endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fastapi import FastAPI
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Scope

from apiserver import __version__
from apiserver.common.answers import LARGEST, MUCH
from apiserver.data.links import DataLinks
from apiserver.data.parts import DataParts
from apiserver.fileserver.server import FileServer
from apiserver.operating.audit.requests import RequestAudit
from apiserver.operating.metrics.server import Metrics, livez
from apiserver.otlp import server as otlp
from apiserver.pages.addresses import FIRST_STEPS, first_step, is_browser
from apiserver.pages.server import Elsewhere, Viewer
from apiserver.rpc.admission import Admission
from apiserver.rpc.body import Limits
from apiserver.rpc.dispatch import Dispatcher
from apiserver.rpc.in_flight import InFlight
from apiserver.rpc.validate import compile_request
from apiserver.server.bounds import Bounds
from apiserver.server.endpoints import ROUTES, endpoints, openapi
from apiserver.server.health import Health
from apiserver.server.parts import Parts
from apiserver.server.routing import Routing, Way, counted
from apiserver.services.access import roles
from apiserver.services.projects.files import may_use_file
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.settings.settings import Settings

#: The path of the files on the API's port. They also have a port of their own.
FILES = "/files"


@dataclass(frozen=True, slots=True)
class Apps:
    """What listens, and what others want of it."""

    api: ASGIApp
    """The app of the API's port."""
    files: ASGIApp
    """The app of the files' own port."""
    metrics: Metrics
    """Answers `/metrics`."""
    routes: Sequence[BaseRoute]
    """What is served beside endpoints, files and pages."""


def build_apps(parts: Parts, bounds: Bounds) -> Apps:
    """The apps of both ports. Raises SchemaFileError."""
    backend = parts.backend
    settings = backend.settings
    limits = Limits(body=settings.max_body_bytes, in_flight=settings.max_bytes_in_flight)
    in_flight = InFlight(limits.in_flight)
    admission = Admission(max(LARGEST // settings.workers, MUCH), bounds.answers)
    audit = RequestAudit(parts.upkeep.audit)
    dispatcher = Dispatcher(
        endpoints().routes,
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
    metrics = Metrics(backend, parts.folder, parts.counters, parts.upkeep.gauges())
    others = _others(parts, admission, metrics, otlp.Otlp(backend, limits, in_flight))
    others.router.default = dispatcher
    count = partial(counted, counters=backend.counters, audit=audit)
    ways = [
        Way(lambda scope: dispatcher.serves(scope["path"]), dispatcher),
        Way(lambda scope: first_step(scope["path"]) == FILES[1:], count(_file_server(parts, FILES), name="files")),
    ]
    if (pages := _pages(settings)) is not None:
        ways.append(Way(_for_pages(pages, others), count(pages, name="viewer")))
    return Apps(Routing(ways, count(others)), count(_file_server(parts, ""), name="files"), metrics, others.routes)


def _others(parts: Parts, admission: Admission, metrics: Metrics, otlp_server: ASGIApp) -> FastAPI:
    """What FastAPI answers."""
    app = FastAPI(title="apiserver", version=__version__, openapi_url=None)
    health = Health(parts.backend, parts.files, parts.upkeep.reporters)
    app.router.routes += [
        *ROUTES,
        Route("/health", health),
        Route("/readyz", health),
        Route("/livez", livez),
        Route("/metrics", metrics),
        Route(otlp.PATH, otlp_server),
        Route("/openapi.json", openapi, methods=["GET"]),
    ]
    app.state.backend = parts.backend
    links = DataLinks(parts.backend.settings.token_secret)
    validate_tasks = compile_request(endpoints().table["tasks.get_all"][-1].request)
    DataParts(parts.backend, admission, parts.exports, links, validate_tasks).put_into(app)
    return app


def _file_server(parts: Parts, prefix: str) -> FileServer:
    backend = parts.backend
    return FileServer(
        parts.files,
        backend.auth,
        backend.file_deletions,
        backend.file_links,
        rules=roles,
        may_use=partial(may_use_file, backend),
        room=backend.quotas,
        prefix=prefix,
    )


def _pages(settings: Settings) -> Viewer | Elsewhere | None:
    """What answers browsers that ask for a page; None: as programs are answered."""
    if settings.web_url:
        return Elsewhere(settings.web_url)
    return Viewer() if settings.viewer else None


def _for_pages(pages: Viewer | Elsewhere, others: FastAPI) -> Callable[[Scope], bool]:
    """Whether a request is for a page, or for what pages need."""
    taken = {first_step(route.path) for route in others.routes if isinstance(route, Route)}

    def leads(scope: Scope) -> bool:
        step = first_step(scope["path"])
        if step in FIRST_STEPS:
            return pages.serves(scope)
        return step not in taken and "." not in step and is_browser(scope)

    return leads
