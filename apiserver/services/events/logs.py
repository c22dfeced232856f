"""events.get_task_log in its three versions: pages by scroll id (1.5, 1.7), and by timestamp with search (2.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.common.errors import validation_error
from apiserver.events.log_filter import LineFilter
from apiserver.events.model import EventType, LogPosition, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.reading import log_search, logs
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners
from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.patterns import compile_pattern

#: The most lines of a page, whatever the request says.
MAX_PAGE = 10_000

_FILTERS = ("search", "levels", "workers")


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
    answer = await (_search if any(request.get(name) for name in _FILTERS) else _page)(call, owner, request)
    if request.get("order") == ("asc" if earlier else "desc"):
        answer["events"].reverse()
    return answer


async def _page(call: Call, owner: Owner, request: dict[str, Any]) -> dict[str, Any]:
    series = SeriesQuery(owner, EventType.LOG, owners.selection(request.get("metrics")))
    beyond, earlier = request.get("from_timestamp"), request["navigate_earlier"]
    after = None if beyond is None else logs.beyond(int(beyond), earlier=earlier)
    asked = PageQuery(min(request["batch_size"], MAX_PAGE), after, earlier, whole=True)
    page = await logs.page(call.backend.events, series, asked)
    return {"events": page.events, "returned": len(page.events), "total": page.total}


async def _search(call: Call, owner: Owner, request: dict[str, Any]) -> dict[str, Any]:
    selection, earlier = owners.selection(request.get("metrics")), request["navigate_earlier"]
    filters = [request.get(name) for name in _FILTERS]
    query, scrolls = ("search in get_task_log", owner, selection, earlier, filters), call.backend.scrolls
    after: LogPosition | None = None
    if request.get("scroll_id"):
        after = LogPosition(*scrolls.decode(query, request["scroll_id"]))
    elif "from_timestamp" in request:
        after = logs.beyond(int(request["from_timestamp"]), earlier=earlier)
    line_filter = LineFilter(
        frozenset(request.get("levels", ())), frozenset(request.get("workers", ())), _message(request.get("search"))
    )
    asked = PageQuery(min(request["batch_size"], MAX_PAGE), after, earlier)
    series = SeriesQuery(owner, EventType.LOG, selection)
    page = await log_search.search(call.backend.events, series, line_filter, asked, call.backend.bounds.search)
    return {
        "events": page.events,
        "returned": len(page.events),
        "total": None,
        "scroll_id": scrolls.encode(query, page.last) if page.last else None,
        "searched_all": page.ended,
    }


def _message(search: dict[str, Any] | None) -> Callable[[str], bool] | None:
    """The function that tells whether a message matches the search; None if all messages do."""
    if search is None:
        return None
    if ("text" in search) == ("regex" in search):
        raise validation_error("give either 'text' or 'regex'", field="search")
    if "text" in search:
        return log_search.text(search["text"], any_case=search["any_case"])
    try:
        return compile_pattern("search.regex", search["regex"], any_case=search["any_case"])
    except InvalidFilter as error:
        raise validation_error(str(error).partition(": ")[2], field="search.regex") from None


async def _walk(call: Call, owner: Owner, request: dict[str, Any], *, descending: bool) -> dict[str, Any]:
    query = ("get_task_log", owner, descending)
    scrolls = call.backend.scrolls
    after = LogPosition(*scrolls.decode(query, request["scroll_id"])) if request.get("scroll_id") else None
    asked = PageQuery(min(request["batch_size"], MAX_PAGE), after, descending)
    page = await logs.page(call.backend.events, SeriesQuery(owner, EventType.LOG), asked)
    position = page.last or after
    return {
        "events": page.events,
        "returned": len(page.events),
        "total": page.total,
        "scroll_id": scrolls.encode(query, position) if position else None,
    }
