"""The endpoints that serve models. Containers with the same URL are one endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.validate import INT64_MAX
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.serving.containers import CONTAINERS, live
from apiserver.services.serving.quantities import count
from apiserver.stores.documents.query import Document, Filter, In, NotIn, all_of

#: Fields of answers about what is served, and the container's field for each.
_SERVED = {
    "endpoint": "endpoint_name",
    "model": "model_name",
    "url": "endpoint_url",
    "model_source": "model_source",
    "model_version": "model_version",
    "preprocess_artifact": "preprocess_artifact",
    "input_type": "input_type",
    "input_size": "input_size",
}
#: Fields of answers about a container's state, and the container's field for each.
_STATE = {
    "uptime_sec": "uptime_sec",
    "requests": "requests_num",
    "requests_min": "requests_min",
    "latency_ms": "latency_ms",
    "last_update": "last_activity_time",
}


@endpoint("serving.get_endpoints", "2.31")
async def get_endpoints(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    by_url: dict[str, list[Document]] = {}
    for container in await _containers(call, {"endpoint_url": NotIn([None, ""])}):
        by_url.setdefault(container["endpoint_url"], []).append(container)
    return {"endpoints": [_summary(containers) for _, containers in sorted(by_url.items())]}


@endpoint("serving.get_loading_instances", "2.31")
async def get_loading_instances(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    now = datetime.now(UTC)
    loading = await _containers(call, {"endpoint_url": In([None, ""])})
    return {
        "instances": [
            {
                "id": container["name"],
                **_fields(container, _SERVED),
                "uptime_sec": container["uptime_sec"],
                "age_sec": max(0, int((now - datetime.fromisoformat(container["register_time"])).total_seconds())),
                "last_update": container["last_activity_time"],
            }
            for container in loading
        ]
    }


@endpoint("serving.get_endpoint_details", "2.31")
async def get_endpoint_details(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    url = request["endpoint_url"]
    containers = await _containers(call, {"endpoint_url": url})
    if not containers:
        raise Refusal(Why.NO_CONTAINERS, f"No container instances found for service url: url={url}")
    return {
        **_fields(containers[0], _SERVED),
        "uptime_sec": max(_known(containers, "uptime_sec"), default=None),
        "last_update": max(_known(containers, "last_activity_time")),
        "instances": [_instance(container) for container in containers],
    }


async def _containers(call: Call, filter: Filter) -> list[Document]:
    """The matching containers that have not timed out, by id."""
    return await documents(call).find(CONTAINERS, all_of([live(), filter]), sort=[("name", 1)])


def _summary(containers: Sequence[Document]) -> dict[str, Any]:
    """One endpoint in a list, from its containers (at least one)."""
    latencies, rates = _known(containers, "latency_ms"), _known(containers, "requests_min")
    return {
        **{name: containers[0][field] for name, field in _SERVED.items() if name in ("endpoint", "model", "url")},
        "instances": len(containers),
        "uptime_sec": max(_known(containers, "uptime_sec"), default=None),
        "requests": min(sum(_known(containers, "requests_num")), INT64_MAX),
        "requests_min": round(sum(rates) / len(rates), 2) if rates else None,
        "latency_ms": round(sum(latencies) / len(latencies)) if latencies else None,
        "last_update": max(_known(containers, "last_activity_time")),
    }


def _instance(container: Document) -> dict[str, Any]:
    machine = container["machine_stats"]
    return {
        "id": container["name"],
        **_fields(container, _STATE),
        "cpu_count": count(machine, "cpu"),
        "gpu_count": count(machine, "gpu"),
        "reference": container["reference"] or [],
    }


def _fields(container: Document, names: dict[str, str]) -> dict[str, Any]:
    return {name: container[field] for name, field in names.items()}


def _known(containers: Sequence[Document], field: str) -> list[Any]:
    return [container[field] for container in containers if container[field] is not None]
