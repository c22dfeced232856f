"""Model documents: what a new one holds, how they are found, changed and answered.

A stored model always has its lists and objects, never null, because clients drop an answer whose fields have a wrong
type. Keys that users name (labels, design, metadata …) are escaped (`names.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from apiserver import answers
from apiserver.rpc.errors import invalid_id
from apiserver.services.backend import Call, documents, visible
from apiserver.services.document_keys import escape_keys, unescape_keys
from apiserver.services.last_metrics import REVISION
from apiserver.services.metadata_items import metadata_of
from apiserver.services.project_tree import get_project
from apiserver.services.tasks.task_documents import changed_now, get_task
from apiserver.stores.documents.base import Document, Update
from apiserver.times import utc_now

MODELS = "models"
#: Fields that say what a model is, as requests name them.
FIELDS = (
    "name",
    "uri",
    "comment",
    "tags",
    "system_tags",
    "framework",
    "design",
    "labels",
    "ready",
    "parent",
    "project",
    "task",
    "ui_cache",
)


def new_model(call: Call, fields: Document) -> Document:
    """A model of the caller with the (already checked) `fields`."""
    now = utc_now()
    return {
        "id": uuid4().hex,
        "user": call.identity.user,
        "created": now,
        "last_update": now,
        "last_change": now,
        "last_changed_by": call.identity.user,
        **empty_model(),
        **fields,
    }


def empty_model() -> Document:
    """What every model has, but who made it when."""
    return {
        "comment": "",
        "tags": [],
        "system_tags": [],
        "framework": None,
        "design": {},
        "labels": {},
        "ready": False,
        "parent": None,
        "project": None,
        "task": None,
        "metadata": {},
        "last_iteration": 0,
        "last_metrics": {},
        "metric_stats": {},
        "ui_cache": {},
    }


def answered(model: Document) -> Document:
    """A stored model as clients get it."""
    shown: Document = unescape_keys(model)
    shown.pop(REVISION, None)
    return shown


async def get_model(call: Call, model_id: str, fields: Sequence[str] | None = None) -> Document:
    """The document (`fields` of it) of a model that the caller may change, or 400/201."""
    model = await documents(call).find_one(MODELS, {"id": model_id}, projection=fields)
    if model is None:
        raise invalid_id("model", model_id)
    return model


async def read_model(call: Call, model_id: str, fields: Sequence[str] | None = None) -> Document:
    """The document (`fields` of it) of a model that the caller may read, or 400/201."""
    model = await visible(call).find_one(MODELS, {"id": model_id}, projection=fields, counted=answers.counter())
    if model is None:
        raise invalid_id("model", model_id)
    return model


async def change_model(call: Call, model_id: str, update: Update) -> Document:
    """Apply `update`; return what is now set of it besides. 400/201 for an unknown model."""
    stamps = changed_now(call)
    update = {**update, "$set": {**stamps, **update.get("$set", {})}}
    if not await documents(call).update(MODELS, {"id": model_id}, update):
        raise invalid_id("model", model_id)
    return stamps


async def checked_fields(call: Call, request: dict[str, Any]) -> Document:
    """What a request to make or edit a model sets, as it is stored; 400 when it refers to what is not there."""
    fields: Document = escape_keys({name: request[name] for name in FIELDS if name in request})
    if "metadata" in request:
        fields["metadata"] = metadata_of(request["metadata"])
    for reference in ("project", "task", "parent"):
        if fields.get(reference) == "":
            fields[reference] = None
    if project := fields.get("project"):
        await get_project(call, project)
    if task := fields.get("task"):
        await get_task(call, task, ["id"])
    if parent := fields.get("parent"):
        await read_model(call, parent, ["id"])
    return fields
