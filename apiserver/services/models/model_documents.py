"""Documents of models: making, finding, changing and answering them.

The lists and objects of a stored model are always there, never null, because clients drop an answer whose fields have
a wrong type. Names that users choose (in labels, design, metadata …) are escaped (`services/documents/keys.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from apiserver.common.errors import Refusal, invalid_id, unavailable
from apiserver.services.backend import Call, documents
from apiserver.services.documents.keys import escape_keys, unescape_keys
from apiserver.services.documents.metadata_items import metadata_of
from apiserver.services.documents.public import read_one
from apiserver.services.documents.stamps import changed_now, made_now
from apiserver.services.events.last_metrics import RESET, REVISION
from apiserver.services.models.deletions import DELETING, tell_if_deleted
from apiserver.services.projects.tree import get_project
from apiserver.services.tasks.task_documents import get_task
from apiserver.stores.documents.query import AllOf, Document, Filter, NoneOf, Update

MODELS = "models"
#: The fields that requests may set, without `metadata`.
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
    """The document of a new model of the caller. `fields` are checked already."""
    return {
        "id": uuid4().hex,
        **made_now(call),
        **empty_model(),
        **fields,
    }


def empty_model() -> Document:
    """The fields that every model has, without those about who made it when."""
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
    """A stored model in the form that clients get."""
    shown: Document = unescape_keys(model)
    for name in (DELETING.field, REVISION, RESET):
        shown.pop(name, None)
    return shown


async def get_model(call: Call, model_id: str, fields: Sequence[str] | None = None) -> Document:
    """The document of a model that the caller may change, or `fields` of it.

    Raises Refusal(NO_MODEL) if there is none.
    """
    model = await documents(call).find_one(MODELS, {"id": model_id}, projection=fields)
    if model is None:
        raise invalid_id("model", model_id)
    return model


async def change_model(call: Call, model_id: str, update: Update) -> Document:
    """Apply `update`; returns the further fields that were set (`changed_now`).

    Raises Refusal(NO_MODEL) if there is none, Refusal(UNAVAILABLE) if it is being deleted.
    """
    stamps = changed_now(call)
    wanted: Filter = AllOf([{"id": model_id}, NoneOf([DELETING.condition()])])
    if not await documents(call).update(MODELS, wanted, update.setting(stamps)):
        if await documents(call).count(MODELS, {"id": model_id}):
            raise being_deleted(model_id)
        raise invalid_id("model", model_id)
    return stamps


def being_deleted(model_id: str) -> Refusal:
    """The error for a model that is being deleted."""
    return unavailable(f"model {model_id} is being deleted", retry_after=1)


async def insert_model(call: Call, model: Document) -> None:
    """Keep a new model. If its task was deleted meanwhile, the model names a deleted task."""
    await documents(call).insert(MODELS, model)
    await tell_if_deleted(call, model["id"], model["task"])


async def checked_fields(call: Call, request: dict[str, Any]) -> Document:
    """The stored fields that a request to make or edit a model sets.

    Raises Refusal(NO_PROJECT), Refusal(NO_TASK) or Refusal(NO_MODEL) if its project, task or parent does not exist.
    """
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
        await read_one(call, MODELS, parent, ["id"])
    return fields
