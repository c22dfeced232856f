"""The calls of serving containers: they register, report, and unregister.

A container that does not call for its timeout is gone. Container ids are unique within a company only, so a document's
id has the company in front, and `name` is the container's id.
"""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import validation_error
from apiserver.common.times import from_now, now_ms, utc_now
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.history.store import Subject
from apiserver.services.serving.quantities import values_of
from apiserver.stores.documents.query import AtMost, Document, Filter, Greater, Update

CONTAINERS = "containers"
KIND = "container"
DEFAULT_TIMEOUT = 600

#: The fields of a report about the model that the container serves.
SERVED = (
    "endpoint_name",
    "endpoint_url",
    "model_name",
    "model_source",
    "model_version",
    "preprocess_artifact",
    "input_type",
    "input_size",
    "reference",
)
#: The fields of a report about the container's state.
STATE = ("uptime_sec", "requests_num", "requests_min", "latency_ms", "machine_stats")


@endpoint("serving.register_container", "2.31")
async def register_container(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await documents(call).delete(CONTAINERS, {"expires": AtMost(utc_now())})
    fields = {key: request.get(key) for key in SERVED}
    await _seen(call, request, {**fields, "register_time": utc_now(), "timeout": request["timeout"]})
    return {}


@endpoint("serving.unregister_container", "2.31")
async def unregister_container(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await documents(call).delete(CONTAINERS, {"id": _id(call, request)})
    return {}


@endpoint("serving.container_status_report", "2.31")
async def container_status_report(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if not (url := request.get("endpoint_url")):
        raise validation_error("is required", field="endpoint_url")
    await _seen(call, request, {key: request[key] for key in (*SERVED, *STATE) if key in request})
    subject = Subject(call.identity.company, KIND, request["container_id"], url)
    await call.backend.history.record(subject, now_ms(), values_of(request))
    return {}


def live() -> Filter:
    """The condition that a container has not timed out."""
    return {"expires": Greater(utc_now())}


async def _seen(call: Call, request: dict[str, Any], fields: Document) -> None:
    """Store that a container called now, and the fields it sent. An unknown container is added."""
    id, now = _id(call, request), utc_now()
    known = await documents(call).find_one(CONTAINERS, {"id": id}, projection=("timeout",)) or {}
    seconds = fields.get("timeout") or known.get("timeout") or DEFAULT_TIMEOUT
    called = {"last_activity_time": now, "expires": from_now(seconds), "ip": call.client}
    new = {
        "id": id,
        "name": request["container_id"],
        "register_time": now,
        "timeout": DEFAULT_TIMEOUT,
        **dict.fromkeys((*SERVED, *STATE)),
    }
    await documents(call).update(CONTAINERS, {"id": id}, Update(set={**fields, **called}), upsert=new)


def _id(call: Call, request: dict[str, Any]) -> str:
    return f"{call.identity.company}/{request['container_id']}"
