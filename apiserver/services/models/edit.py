"""Making models and changing them."""

from __future__ import annotations

from typing import Any

from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.metadata_items import metadata_removal, metadata_update
from apiserver.services.documents.stamps import changed_now
from apiserver.services.documents.unneeded_files import delete_replaced
from apiserver.services.lists.conditions import parse_time
from apiserver.services.models.deletions import tell_if_deleted
from apiserver.services.models.model_documents import (
    MODELS,
    answered,
    change_model,
    checked_fields,
    get_model,
    insert_model,
    new_model,
)
from apiserver.services.projects.tree import touch_projects
from apiserver.services.tasks.edit import change_tags, destination
from apiserver.stores.documents.query import Document, In, Update

_UPDATE_FIELDS = ("name", "comment", "tags", "system_tags", "ready", "ui_cache", "project", "task", "metadata")


@endpoint("models.create", "1.0")
async def create(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    fields = await checked_fields(call, request)
    if "created" in request:
        fields["created"] = parse_time(request["created"], "created")
    model = new_model(call, fields)
    await insert_model(call, model)
    await touch_projects(call, model["project"])
    return {"id": model["id"], "created": True}


@endpoint("models.edit", "1.0")
async def edit(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _edit(call, request, request)


@endpoint("models.update", "1.0")
async def update(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _edit(call, request, {name: request[name] for name in _UPDATE_FIELDS if name in request})


@endpoint("models.update_tags", "1.0")
async def update_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"updated": await change_tags(call, MODELS, request)}


@endpoint("models.move", "1.0")
async def move(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    models = [await get_model(call, id, ["project"]) for id in dict.fromkeys(request["ids"])]
    project = await destination(call, request) or {"id": None, "name": None}
    moved = Update(set={**changed_now(call), "project": project["id"]})
    chosen = {"id": In([model["id"] for model in models])}
    updated = await documents(call).update(MODELS, chosen, moved, many=True)
    await touch_projects(call, project["id"], *(model.get("project") for model in models))
    return {"updated": updated, "project_id": project["id"], "project_name": project["name"]}


@endpoint("models.add_or_update_metadata", "1.0")
async def add_or_update_metadata(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await change_model(call, request["model"], metadata_update(request["metadata"], request["replace_metadata"]))
    return {"updated": 1}


@endpoint("models.delete_metadata", "1.0")
async def delete_metadata(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await change_model(call, request["model"], metadata_removal(request["keys"]))
    return {"updated": 1}


async def _edit(call: Call, request: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Set the fields in `changes`, and the iteration of the task if `request` has one."""
    model = await get_model(call, request["model"], ["task", "project", "uri", "ready"])
    fields = await checked_fields(call, changes)
    if "iteration" in request:
        await reach_iteration(call, fields.get("task") or model.get("task"), request["iteration"])
    if not fields:
        return {"updated": 0, "fields": {}}
    if uri := fields.get("uri"):
        await delete_replaced(call, model, uri)
    stamps = await change_model(call, model["id"], Update(set=fields))
    await tell_if_deleted(call, model["id"], fields.get("task"))
    await touch_projects(call, model.get("project"), fields.get("project"))
    shown: Document = answered(fields | stamps)
    return {"updated": 1, "fields": shown}


async def reach_iteration(call: Call, task: str | None, iteration: int) -> None:
    """Raise the task's last iteration to `iteration`, if it is lower."""
    if task:
        reached = Update(max={"last_iteration": iteration}, set=changed_now(call))
        await documents(call).update("tasks", {"id": task}, reached)
