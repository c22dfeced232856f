"""Documents of queues: making, finding and changing them. `entries.py` changes their entries."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from apiserver.common.errors import Refusal, Why, invalid_id, validation_error
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, documents
from apiserver.stores.documents.base import DuplicateDocument
from apiserver.stores.documents.query import Document, Update

QUEUES = "queues"
FIELDS = ("name", "display_name", "tags", "system_tags")


def new_queue(name: str, *, user: str | None, **fields: Any) -> Document:
    """The document of a new queue without tasks."""
    now = utc_now()
    return {
        "id": uuid4().hex,
        "name": name,
        "display_name": name,
        "user": user,
        "created": now,
        "last_update": now,
        "tags": [],
        "system_tags": [],
        "entries": [],
        "metadata": {},
        **fields,
    }


async def get_queue(call: Call, queue_id: str) -> Document:
    """The queue's document. Raises Refusal(NO_QUEUE) if there is none."""
    queue = await documents(call).find_one(QUEUES, {"id": queue_id})
    if queue is None:
        raise invalid_id("queue", queue_id)
    return queue


async def default_queue(call: Call) -> Document:
    """The queue for tasks that are enqueued without naming one. Raises Refusal(NO_DEFAULT_QUEUE) if there is none."""
    queue = await documents(call).find_one(QUEUES, {"system_tags": "default"}, sort=[("created", 1)])
    if queue is None:
        raise Refusal(Why.NO_DEFAULT_QUEUE, "There is no default queue")
    return queue


async def create_queue(call: Call, name: str, **fields: Any) -> Document:
    """Make a queue of the caller. Raises Refusal(QUEUE_NAME_IN_USE) if the name is in use."""
    queue = new_queue(checked_name(name), user=call.identity.user, **fields)
    try:
        await documents(call).insert(QUEUES, queue)
    except DuplicateDocument:
        raise name_in_use(name) from None
    return queue


async def change_queue(call: Call, queue_id: str, update: Update) -> None:
    """Update a queue.

    Raises Refusal(NO_QUEUE) if there is none, Refusal(QUEUE_NAME_IN_USE) if its new name is in use.
    """
    try:
        updated = await documents(call).update(QUEUES, {"id": queue_id}, update.setting({"last_update": utc_now()}))
    except DuplicateDocument:
        raise name_in_use(update.set["name"]) from None
    if not updated:
        raise invalid_id("queue", queue_id)


def checked_name(name: str) -> str:
    """`name`. Raises Refusal(INVALID) if it is blank."""
    if not name.strip():
        raise validation_error("must not be blank", field="name")
    return name


def name_in_use(name: str) -> Refusal:
    """The error for a name that another queue of the company has."""
    return Refusal(Why.QUEUE_NAME_IN_USE, f"Queue name is in use: name={name}")
