"""Runtime properties of workers: values that users set while a worker runs."""

from __future__ import annotations

from typing import Any

from apiserver.common.times import from_now, utc_now
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.keys import escape
from apiserver.services.workers.worker_documents import id_of
from apiserver.stores.documents.query import Document, Update


@endpoint("workers.get_runtime_properties", "1.0")
async def get_runtime_properties(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    properties = await _properties(call, request["worker"])
    return {"runtime_properties": [{"key": item["key"], "value": item["value"]} for item in properties.values()]}


@endpoint("workers.set_runtime_properties", "1.0")
async def set_runtime_properties(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    worker, given = request["worker"], request["runtime_properties"]
    before = await _properties(call, worker)
    changes = {f"properties.{escape(item['key'])}": _property(item) for item in given}
    new = {"id": id_of(call, worker), "name": worker, "properties": {}}
    await documents(call).update("worker_properties", {"id": new["id"]}, Update(set=changes), upsert=new)
    keys = list(dict.fromkeys(item["key"] for item in given))
    return {
        "added": [key for key in keys if escape(key) not in before],
        "updated": [key for key in keys if escape(key) in before],
        "errors": [],
    }


async def _properties(call: Call, worker: str) -> dict[str, Document]:
    """By escaped key, the properties of a worker that have not expired."""
    found = await documents(call).find_one("worker_properties", {"name": worker})
    now = utc_now()
    stored = found["properties"] if found else {}
    return {key: item for key, item in stored.items() if item["expires"] is None or item["expires"] > now}


def _property(item: dict[str, Any]) -> Document:
    seconds = item.get("expiry")
    expires = None if seconds is None else from_now(seconds)
    return {"key": item["key"], "value": item.get("value", ""), "expires": expires}
