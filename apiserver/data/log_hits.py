"""Searches in a task's log: which lines match, and which line was written when, by their numbers."""

from __future__ import annotations

import re
from typing import Annotated, Any

import orjson
from fastapi import Query, Response

from apiserver.data.calls import TheCall, bad_parameter
from apiserver.data.logs import Wanted, position_text
from apiserver.data.parameters import Time, time_of
from apiserver.data.places import find_owner
from apiserver.data.routes import router
from apiserver.events.model import EventType, LogPosition
from apiserver.events.queries import SeriesQuery
from apiserver.reading import log_search

routes = router()

_POSITION = r"^-?[0-9]{1,19}\.[0-9]{1,19}$"

After = Annotated[
    str | None,
    Query(pattern=_POSITION, description="Search behind this line: `last` of the answer before."),
]
Position = Annotated[
    str | None, Query(pattern=_POSITION, description="The line with this position, as windows of the log have it.")
]


def _responses(description: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {}}, "description": description}}


@routes.get(
    "/tasks/{task:path}/log/hits",
    operation_id="data.log.hits",
    response_class=Response,
    responses=_responses("The numbers of matching lines, and how far the search got"),
)
async def hits(
    call: TheCall,
    task: str,
    filter: Wanted,
    after: After = None,
) -> Response:
    """Searches in the log for about half a second: `{"lines": [17, 905], "end": 240000, "last": "…", "ended": false}`.

    `lines` are the numbers of the lines that match, the oldest first. Lines before number `end` were searched. Ask for
    the rest with `after=` and the answer's `last`, until `ended` is true.
    """
    owner = await find_owner(call, task)
    series = SeriesQuery(owner, EventType.LOG)
    async with call.while_connected():
        bounds, position = call.backend.bounds, _position("after", after)
        found = await log_search.hits(call.backend.events, series, filter, position, bounds.hits, bounds.search)
    last = found.last and position_text(found.last)
    return _json({"lines": found.numbers, "end": found.end, "last": last, "ended": found.ended})


@routes.get(
    "/tasks/{task:path}/log/line",
    operation_id="data.log.line",
    response_class=Response,
    responses=_responses("The number of the line, and how many lines the log has"),
)
async def line(call: TheCall, task: str, time: Time = None, position: Position = None) -> Response:
    """The number of the line of a time or with a position: `{"line": 905, "total": 240000}`.

    Of a time, it is the first line of that time, or after it.
    It is `total` if there is no line at that time or later. Of a line that was deleted, it is the number of the next.
    """
    owner = await find_owner(call, task)
    at = _position("position", position)
    if (time is None) == (at is None):
        raise bad_parameter("time", "give either 'time' or 'position'")
    store = call.backend.events
    number = await store.log_number(owner, at or LogPosition(time_of("time", time or ""), -1))
    return _json({"line": number, "total": await store.log_count(SeriesQuery(owner, EventType.LOG))})


@routes.get(
    "/tasks/{task:path}/log/workers",
    operation_id="data.log.workers",
    response_class=Response,
    responses=_responses("The names of the workers"),
)
async def workers(call: TheCall, task: str) -> Response:
    """Which workers wrote the log: `["gpu-1:0", "gpu-1:1"]`, sorted."""
    owner = await find_owner(call, task)
    return _json(sorted(await call.backend.events.log_sizes(owner)))


def _position(name: str, text: str | None) -> LogPosition | None:
    if text is None:
        return None
    position = LogPosition(*map(int, re.split(r"\.", text)))
    if not -(2**63) <= position.timestamp < 2**63 or position.sequence >= 2**63 - 1:
        raise bad_parameter(name, "there is no such position")
    return position


def _json(content: Any) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")
