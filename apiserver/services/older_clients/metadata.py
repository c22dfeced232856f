"""Metadata of models and queues for clients of API versions up to 2.16: a list of items in place of an object.

These SDKs check the shape of answers, and end the user's script if it is another. Requests of all versions may have
either shape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.rpc.call import Answer, Call
from apiserver.rpc.registry import Registration
from apiserver.rpc.versions import Version

_KEYED = Version(2, 17)
#: Services whose answers have models or queues, directly or as references.
_SERVICES = ("models", "queues", "tasks")
#: The fields through which an answer leads to models and queues. None of them leads to keys that users choose.
_LEADING = ("fields", "model", "models", "queue", "queues", "task", "tasks", "parent", "execution", "input", "output")


def with_older_metadata(registration: Registration) -> Registration:
    """The endpoint, whose answers to older clients have metadata as lists."""
    if registration.name.partition(".")[0] not in _SERVICES:
        return registration
    handle = registration.handler

    async def handler(call: Call[Any], request: dict[str, Any]) -> Answer:
        answer = await handle(call, request)
        if isinstance(answer, dict) and Version.parse(call.requested_version) < _KEYED:
            _list_items(answer)
        return answer

    return replace(registration, handler=handler)


def _list_items(value: Any) -> None:
    """Turn all metadata in an answer into lists, in place: `{"a": {"value": "1"}}` → `[{"key": "a", "value": "1"}]`."""
    if isinstance(value, list):
        for item in value:
            _list_items(item)
    elif isinstance(value, dict):
        if isinstance(items := value.get("metadata"), dict):
            value["metadata"] = [{"key": key, **item} for key, item in items.items()]
        for name in _LEADING:
            _list_items(value.get(name))
