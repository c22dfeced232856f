"""events.scalar_metrics_iter_raw: every point of a metric, page by page."""

from __future__ import annotations

from typing import Any

from apiserver.events.model import EventType
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.reading import raw_points
from apiserver.reading.histogram import Key
from apiserver.rpc.call import Encoded
from apiserver.rpc.encode import encode_many
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners

#: The least number of points in a page, unless the request or its scroll_id has another.
PAGE = 10_000


@endpoint("events.scalar_metrics_iter_raw", "2.16")
async def scalar_metrics_iter_raw(call: Call, request: dict[str, Any]) -> Encoded:
    owner = await owners.one(call, request)
    store, scrolls, key = call.backend.events, call.backend.scrolls, Key(request["key"])
    selection = owners.selection([request["metric"]])
    query = ("scalar_metrics_iter_raw", owner, selection, key)
    beyond, counted, limit = None, False, PAGE
    if request.get("scroll_id"):
        beyond, counted, limit = scrolls.decode(query, request["scroll_id"])
    counted, limit = counted or request["count_total"], request.get("batch_size", limit)
    series = SeriesQuery(owner, EventType.SCALAR, selection)
    page = await raw_points.page(store, series, key.axis, PageQuery(limit, beyond))
    answer = {
        "returned": page.returned,
        "total": await raw_points.count(store, series) if counted else None,
        "scroll_id": scrolls.encode(query, (beyond if page.last is None else page.last, counted, limit)),
        "variants": {name: {"y": values, key.value: keys} for name, (keys, values) in page.variants.items()},
    }
    return Encoded(await encode_many(answer, len(page.variants)))
