"""Requests made from the schema: each endpoint version with the least that it takes, and with ids wherever it has some.

A new endpoint is in the tests that use these as soon as its schema is there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlencode

import httpx

from apiserver.common import resources
from apiserver.rpc.schema import EndpointVersion, load_schemas
from apiserver.rpc.schema_bounds import Schema
from tests.harness import Api

_SCHEMAS = resources.path("schemas")
ENDPOINTS: list[EndpointVersion] = [
    version for versions in load_schemas(_SCHEMAS, _SCHEMAS / resources.PARSED).values() for version in versions
]

#: What a field of a request names, by the field's name; `""` are fields that name things of their service.
_FIELDS = {
    "task": ("task", "tasks", "new_task_parent"),
    "project": ("project", "projects", "destination_project", "new_task_project", "active_in_projects"),
    "model": ("model", "models", "override_model_id"),
    "queue": ("queue", "queues", "queue_ids"),
    "worker": ("worker", "workers", "worker_ids"),
    "user": ("user", "users", "active_users"),
    "company": ("company",),
    "container": ("container_id",),
    "access_key": ("access_key",),
    "": ("id", "ids", "parent", "prepare_id"),
}
_OF_SERVICE = {
    "models": "model",
    "organization": "task",
    "pipelines": "task",
    "projects": "project",
    "queues": "queue",
    "reports": "report",
    "serving": "container",
    "tasks": "task",
    "users": "user",
    "workers": "worker",
}
#: Fields of another kind than their name says, in some services.
_OTHERWISE = {("reports", "task"): "report", ("models", "parent"): "model", ("queues", "task"): "waiting task"}

#: What endpoints want beside what their schema says is required.
_EVENT = {"type": "training_stats_scalar", "metric": "m", "variant": "v", "value": 1, "iter": 1, "timestamp": 1}
_PARAMETER = {"section": "Args", "name": "n", "value": "v"}
_LATER = {"to_date": 100}
_MORE: dict[str, dict[str, Any]] = {
    "events.add": _EVENT,
    "events.add_batch": _EVENT,
    "models.update_for_task": {"uri": "file:///m"},
    "organization.get_project_usages": {"from_date": "2026-01-01", "to_date": "2026-01-02"},
    "organization.get_project_workloads": {"from_date": "2026-01-01", "to_date": "2026-01-02"},
    "projects.move": {"new_location": "elsewhere"},
    "queues.get_queue_metrics": _LATER,
    "serving.container_status_report": {"endpoint_url": "http://x"},
    "serving.get_endpoint_metrics_history": _LATER,
    "storage.set_settings": {"aws": {"key": "k", "secret": "s"}},
    "tasks.delete_hyper_params": {"hyperparams": [_PARAMETER]},
    "tasks.edit_configuration": {"configuration": [{"name": "n", "value": "v"}]},
    "tasks.edit_hyper_params": {"hyperparams": [_PARAMETER]},
    "workers.get_activity_report": _LATER,
    "workers.get_stats": _LATER,
}


class Requests:
    """Requests in which fields that name things name those of `ids`, by kind; text fields hold `text`."""

    def __init__(self, ids: Mapping[str, str], text: str = "x") -> None:
        self._ids = ids
        self._text = text

    def least(self, endpoint: EndpointVersion) -> dict[str, Any]:
        """What the endpoint wants, by force if it can be forced."""
        force = {"force": True} if "force" in _fields(endpoint).get("properties", {}) else {}
        required = self._object(endpoint, _fields(endpoint), only_required=True)
        return {**required, **force, **_MORE.get(endpoint.name, {})}

    def naming(self, endpoint: EndpointVersion) -> Iterator[dict[str, Any]]:
        """The least request, and one for each other field that names anything."""
        least = self.least(endpoint)
        yield least
        for name, field in _fields(endpoint).get("properties", {}).items():
            if name not in least:
                value = self._value(endpoint, name, field)
                if any(id in json.dumps(value) for id in self._ids.values()):
                    yield {**least, name: value}

    def _object(self, endpoint: EndpointVersion, schema: Schema, *, only_required: bool) -> dict[str, Any]:
        properties = schema.get("properties", {})
        wanted = list(schema.get("required", ()))
        if not only_required:
            wanted += [name for name in properties if name not in wanted and _kind(endpoint, name)]
        return {name: self._value(endpoint, name, properties[name]) for name in wanted}

    def _value(self, endpoint: EndpointVersion, name: str, field: Schema) -> Any:
        id = self._ids.get(_kind(endpoint, name) or "")
        if "enum" in field:
            return field["enum"][0]
        if "anyOf" in field:
            return self._value(endpoint, name, field["anyOf"][0])
        match field.get("type"):
            case "integer" | "number":
                return max(1, field.get("minimum", 1))
            case "boolean":
                return True
            case "array":
                return [self._value(endpoint, name, field.get("items", {"type": "string"}))]
            case "object":
                return self._object(endpoint, field, only_required=False)
            case "string":
                return id or self._text
        return [id] if id else self._text


def _fields(endpoint: EndpointVersion) -> Schema:
    """What a call is, or each line of a batch."""
    return endpoint.item or endpoint.request


def _kind(endpoint: EndpointVersion, field: str) -> str | None:
    service = endpoint.name.partition(".")[0]
    if (service, field) in _OTHERWISE:
        return _OTHERWISE[service, field]
    kind = next((kind for kind, names in _FIELDS.items() if field in names), None)
    return _OF_SERVICE.get(service) if kind == "" else kind


async def send(api: Api, endpoint: EndpointVersion, request: Mapping[str, Any], **options: Any) -> httpx.Response:
    """Call an endpoint at its version; a batch of one line where it takes batches."""
    path = f"/v{endpoint.version}/{endpoint.name}"
    return await api.raw("POST", path, content=json.dumps(request).encode(), **options)


async def ask(
    api: Api,
    endpoint: EndpointVersion,
    request: Mapping[str, Any],
    authorization: str | None,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> tuple[int, str]:
    """The same without an HTTP client, which takes most of the time of many small calls: the status, and the answer.

    The request is the body of a POST, if it has no other, and the query of a GET.
    """
    query = urlencode(request, doseq=True) if method == "GET" else ""
    if body is None:
        body = b"" if method == "GET" else json.dumps(request).encode()
    sent: list[MutableMapping[str, Any]] = []

    unread = [body]

    async def receive() -> dict[str, Any]:
        if not unread:
            await asyncio.Event().wait()  # the client stays
        return {"type": "http.request", "body": unread.pop()}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    path = f"/v{endpoint.version}/{endpoint.name}"
    said = {**(headers or {}), **({} if authorization is None else {"authorization": authorization})}
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
    await api.app({**scope, "headers": [(k.encode(), v.encode()) for k, v in said.items()]}, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()
