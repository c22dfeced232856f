"""events.get_task_log, in its three forms: by scroll id (1.5, 1.7) and by timestamp (2.9)."""

from __future__ import annotations

from typing import Any

from apiserver.aggregation import logs
from apiserver.events.model import LogPosition, Owner
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners

#: Larger pages are cut to this many lines.
MAX_PAGE = 10_000


@endpoint("events.get_task_log", "1.5")
async def get_task_log_1_5(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner = await owners.one(call, request)
    return await _walk(call, owner, request, descending=request["order"] == "desc")


@endpoint("events.get_task_log", "1.7")
async def get_task_log_1_7(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner = await owners.one(call, request)
    descending = request["from"] == "tail" if "from" in request else request.get("order") == "desc"
    answer = await _walk(call, owner, request, descending=descending)
    if request.get("order", "desc" if descending else "asc") != ("desc" if descending else "asc"):
        answer["events"].reverse()
    return answer


@endpoint("events.get_task_log", "2.9")
async def get_task_log(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner = await owners.one(call, request)
    earlier = request["navigate_earlier"]
    beyond = request.get("from_timestamp")
    page = await logs.page(
        call.backend.events,
        owner,
        owners.selection(request.get("metrics")),
        limit=min(request["batch_size"], MAX_PAGE),
        earlier=earlier,
        beyond_timestamp=None if beyond is None else int(beyond),
    )
    if request.get("order") == ("asc" if earlier else "desc"):
        page.events.reverse()
    return {"events": page.events, "returned": len(page.events), "total": page.total}


async def _walk(call: Call, owner: Owner, request: dict[str, Any], *, descending: bool) -> dict[str, Any]:
    query = ("get_task_log", owner, descending)
    scrolls = call.backend.scrolls
    after = LogPosition(*scrolls.decode(query, request["scroll_id"])) if request.get("scroll_id") else None
    limit = min(request["batch_size"], MAX_PAGE)
    page = await logs.walk(call.backend.events, owner, limit=limit, descending=descending, after=after)
    position = page.last or after
    return {
        "events": page.events,
        "returned": len(page.events),
        "total": page.total,
        "scroll_id": scrolls.encode(query, position) if position else None,
    }
