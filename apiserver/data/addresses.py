"""All addresses of data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from fastapi import APIRouter

from apiserver.data import (
    audit,
    files,
    lists,
    live,
    log_hits,
    logs,
    project_scalars,
    retention,
    run_metrics,
    samples,
    scalars,
    sharing,
    statistics,
    task_documents,
    usage,
    views,
)
from apiserver.data.calls import TheCall
from apiserver.data.routes import DataRoute
from apiserver.rpc.errors import ApiError, method_not_allowed

#: The routers of all addresses.
ROUTERS = (
    live.routes,
    scalars.routes,
    project_scalars.routes,
    statistics.routes,
    log_hits.routes,
    logs.routes,
    samples.routes,
    task_documents.routes,
    files.routes,
    lists.routes,
    run_metrics.routes,
    sharing.routes,
    views.routes,
    audit.routes,
    usage.routes,
    retention.routes,
)
_ADDRESSES = [cast(DataRoute, route) for one in ROUTERS for route in one.routes]
_PLACE = re.compile(r"\{(\w+)(:path)?\}")


class _OtherRoute(DataRoute):
    """All other paths below `/data`, for any method."""

    checks_parameters = False

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.methods = set()  # any


_others = APIRouter(prefix="/data", route_class=_OtherRoute)


@_others.get("", include_in_schema=False)
@_others.get("/{rest:path}", include_in_schema=False)
async def no_such_address(call: TheCall) -> None:
    """405 for an address that other methods have, 404 with all addresses for others."""
    path = call.request.scope["path"]
    methods = {method for route in _ADDRESSES if route.path_regex.match(path) for method in route.methods or ()}
    if methods:
        raise method_not_allowed(call.request.method, ", ".join(sorted(methods)))
    raise ApiError(404, 0, f"There is no address {path[:200]}. /openapi.json describes {', '.join(_described())}")


def _described() -> dict[str, None]:
    """The addresses as people read them, such as `/data/tasks/TASK/log`, each once."""
    shown = [route for route in _ADDRESSES if route.include_in_schema]
    return dict.fromkeys(_PLACE.sub(lambda found: found[1].upper(), route.path) for route in shown)


#: The routes of all addresses, and last those that refuse all others.
ROUTES = [*_ADDRESSES, *_others.routes]
