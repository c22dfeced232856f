"""Tags for clients of API versions before 2.3, which have system tags and users' tags in one list.

The list is split in requests, both in filters and in changes, and joined in answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from apiserver.rpc.call import Answer, Call
from apiserver.rpc.registry import Registration
from apiserver.rpc.versions import Version
from apiserver.stores.documents.query import Document

_SPLIT = Version(2, 3)
#: By service, the tags that are system tags.
_SYSTEM = {
    "models": frozenset({"active", "archived"}),
    "projects": frozenset({"archived", "public", "default"}),
    "tasks": frozenset({"active", "archived", "development"}),
    "queues": frozenset({"default"}),
}
#: Tags of tasks that begin with this, in any case, are system tags too.
_ANNOTATION = "annotat"


def with_older_tags(registration: Registration) -> Registration:
    """The endpoint, which splits and joins tags for older clients if its service has tags."""
    service = registration.name.partition(".")[0]
    if service not in _SYSTEM:
        return registration
    handle = registration.handler

    async def handler(call: Call[Any], request: dict[str, Any]) -> Answer:
        if Version.parse(call.requested_version) >= _SPLIT:
            return await handle(call, request)
        answer = await handle(call, _split(service, request))
        if isinstance(answer, dict):
            for document in _documents(service, answer):
                if system := document.get("system_tags"):
                    document["tags"] = sorted({*document.get("tags", ()), *system})
        return answer

    return replace(registration, handler=handler)


def _split(service: str, request: dict[str, Any]) -> dict[str, Any]:
    """The request with system tags moved from `tags` to `system_tags`. In filters, tags may begin with "-"."""
    tags = request.get("tags")
    if not isinstance(tags, list) or request.get("system_tags"):
        return request
    system = [tag for tag in tags if isinstance(tag, str) and _is_system(service, tag.removeprefix("-"))]
    return {**request, "tags": [tag for tag in tags if tag not in system], "system_tags": system}


def _is_system(service: str, tag: str) -> bool:
    return tag in _SYSTEM[service] or (service == "tasks" and tag.lower().startswith(_ANNOTATION))


def _documents(service: str, answer: dict[str, Any]) -> Iterator[Document]:
    """The service's documents in the answer: one under its singular name, or a list under the plural."""
    found = answer.get(service.removesuffix("s")), *(answer.get(service) or ())
    return (document for document in found if isinstance(document, dict))
