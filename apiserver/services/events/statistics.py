"""events.scalar_metrics_statistics: facts of each series that need no points."""

from __future__ import annotations

from typing import Any

from apiserver.events.model import EventType
from apiserver.events.queries import SeriesQuery
from apiserver.reading.statistics import statistics
from apiserver.rpc.call import Encoded
from apiserver.rpc.encode import encode_many
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners

#: Series whose statistics are encoded at once, in some 20 µs.
_AT_ONCE = 32


@endpoint("events.scalar_metrics_statistics", "2.34")
async def scalar_metrics_statistics(call: Call, request: dict[str, Any]) -> Encoded:
    owner = await owners.one(call, request)
    series = SeriesQuery(owner, EventType.SCALAR, owners.selection(request.get("metrics")))
    metrics, count = await statistics(call.backend.events, series)
    return Encoded(await encode_many({"metrics": metrics}, count, entries=_AT_ONCE))
