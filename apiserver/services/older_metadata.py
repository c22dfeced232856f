"""The metadata of models and queues as clients know it that ask for API versions up to 2.16: a list of items.

Their SDKs check what they get, and end the user's script at anything else. They may send either shape, as all may.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.rpc.call import Answer, Call
from apiserver.rpc.registry import Registration
from apiserver.rpc.versions import Version

_KEYED = Version(2, 17)
#: Services whose answers have models or queues, be it as what others refer to.
_SERVICES = ("models", "queues", "tasks")
#: Fields that lead from an answer to them. What users name (parameters, labels …) lies below none of these.
_LEADING = ("fields", "model", "models", "queue", "queues", "task", "tasks", "parent", "execution", "input", "output")


def with_older_metadata(registration: Registration) -> Registration:
    """The same handler for older clients, too, if its answer may have metadata."""
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
    """Make lists of all metadata in an answer, in place: of `{"a": {"value": "1"}}` `[{"key": "a", "value": "1"}]`."""
    if isinstance(value, list):
        for item in value:
            _list_items(item)
    elif isinstance(value, dict):
        if isinstance(items := value.get("metadata"), dict):
            value["metadata"] = [{"key": key, **item} for key, item in items.items()]
        for name in _LEADING:
            _list_items(value.get(name))
