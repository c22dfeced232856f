"""The status of a task, as readers are told it, from its document."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from apiserver.live.telling import Event
from apiserver.stores.documents.query import Document

#: The fields that readers are told.
_TOLD = (
    *("name", "project", "status", "status_changed", "status_reason", "status_message"),
    *("started", "completed", "published"),
)
#: A reader is told when one of these fields changes. Comments and tags may be long: who shows them asks for them.
FIELDS = (*_TOLD, "comment", "tags", "system_tags")
#: Fields that are told, too. They change with every batch of events, of which readers are told anyway.
_BESIDE = ("last_change", "last_iteration")
#: The fields of a document that have to be read; `company` comes with them.
READ = ("id", *FIELDS, *_BESIDE)

#: The most characters of a text that are told.
_LONGEST = 1000


class Status(NamedTuple):
    """What is known of a task."""

    company: str
    """The company that the task belongs to."""
    mark: int
    """A number that differs when the fields differ."""
    event: Event


def status_of(document: Document) -> Status:
    """The status that a document shows."""
    id = document["id"]
    mark = blake2b(orjson.dumps([id, [document.get(name) for name in FIELDS]]), digest_size=8).digest()
    told = {name: _short(document.get(name)) for name in _TOLD}
    beside = {name: document.get(name) for name in _BESIDE}
    return Status(document["company"], int.from_bytes(mark), Event.of("status", {"task": id, **told, **beside}))


def _short(value: Any) -> Any:
    return value[:_LONGEST] if isinstance(value, str) else value
