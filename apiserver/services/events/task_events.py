"""events.get_task_events: pages over the events of a task."""

from __future__ import annotations

from typing import Any

from apiserver.events.queries import PageQuery
from apiserver.reading import task_events
from apiserver.reading.task_events import Position
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners

#: The most events of a page, whatever the request says; the last iteration is still answered as a whole.
MAX_PAGE = 10_000


@endpoint("events.get_task_events", "2.1")
async def get_task_events(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner = await owners.one(call, request)
    type = owners.event_type(request)
    query = ("get_task_events", owner, type, request["order"])
    scrolls = call.backend.scrolls
    position = Position(*scrolls.decode(query, request["scroll_id"])) if request.get("scroll_id") else None
    asked = PageQuery(min(request["batch_size"], MAX_PAGE), position, descending=request["order"] == "desc")
    page = await task_events.page(call.backend.events, owner, type, asked)
    return {
        "events": page.events,
        "returned": len(page.events),
        "total": await call.backend.events.events_count(owner, [type] if type else None),
        "scroll_id": scrolls.encode(query, page.position),
    }
