"""All addresses of data."""

from __future__ import annotations

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
from apiserver.data.routes import router
from apiserver.rpc.errors import ApiError

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
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

_others = router()


@_others.api_route("/{rest:path}", methods=_METHODS, include_in_schema=False)
async def no_such_address(rest: str) -> None:
    """Refuse other paths below `/data` in the same form."""
    raise ApiError(404, 0, f"There is no address /data/{rest[:200]} for this method")


#: The routes of all addresses, and last the one that refuses all others.
ROUTES = [route for one in (*ROUTERS, _others) for route in one.routes]
