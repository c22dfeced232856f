"""Reading vectors."""

from __future__ import annotations

from typing import Any

from apiserver.reading.vectors import vectors
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners


@endpoint("events.vector_metrics_iter_histogram", "2.1")
async def vector_metrics_iter_histogram(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner = await owners.one(call, request)
    return await vectors(call.backend.events, owner, request["metric"], request["variant"])
