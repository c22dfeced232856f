"""Tags as clients know them that ask for API versions before 2.3: the system's among the users' own.

They are split when they come in, be it to be kept or to be looked for, and joined in what goes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from apiserver.rpc.call import Answer, Call
from apiserver.rpc.registry import Registration
from apiserver.rpc.versions import Version
from apiserver.stores.documents.base import Document

_SPLIT = Version(2, 3)
#: By the service, the tags that are the system's.
_SYSTEM = {
    "models": frozenset({"active", "archived"}),
    "projects": frozenset({"archived", "public", "default"}),
    "tasks": frozenset({"active", "archived", "development"}),
    "queues": frozenset({"default"}),
}
#: So begin others of tasks, in any case.
_ANNOTATION = "annotat"


def with_older_tags(registration: Registration) -> Registration:
    """The same handler for older clients, too, if it deals with what has tags."""
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
                _join(document)
        return answer

    return replace(registration, handler=handler)


def _split(service: str, request: dict[str, Any]) -> dict[str, Any]:
    """The request with the system's tags where they belong; in filters, "-" before a tag means to be without it."""
    tags = request.get("tags")
    if not isinstance(tags, list) or request.get("system_tags"):
        return request
    system = [tag for tag in tags if isinstance(tag, str) and _is_system(service, tag.removeprefix("-"))]
    return {**request, "tags": [tag for tag in tags if tag not in system], "system_tags": system}


def _is_system(service: str, tag: str) -> bool:
    return tag in _SYSTEM[service] or (service == "tasks" and tag.lower().startswith(_ANNOTATION))


def _documents(service: str, answer: dict[str, Any]) -> Iterator[Document]:
    """What the answer has of the service's documents: one by its singular name, or a list of them."""
    found = answer.get(service.removesuffix("s")), *(answer.get(service) or ())
    return (document for document in found if isinstance(document, dict))


def _join(document: Document) -> None:
    if system := document.get("system_tags"):
        document["tags"] = sorted({*document.get("tags", ()), *system})
