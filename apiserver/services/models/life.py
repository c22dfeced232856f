"""The life of a model: published, archived, deleted."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.events.model import Owner
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.many import do_each, for_each, for_one
from apiserver.services.documents.stamps import changed_now
from apiserver.services.documents.unneeded_files import delete_files, event_urls
from apiserver.services.models.deletions import DELETED, DELETING
from apiserver.services.models.model_documents import MODELS, being_deleted, change_model, get_model
from apiserver.services.projects.tree import touch_projects
from apiserver.services.tasks.life import publish_task
from apiserver.services.tasks.models import models_of
from apiserver.services.tasks.statuses import LOCKED
from apiserver.services.tasks.task_documents import TASKS, revise_task
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Filter, In, NoneOf, Unequal, Update

ARCHIVED = "archived"


# --- published ---------------------------------------------------------------------------------------


@endpoint("models.set_ready", "1.0")
async def set_ready(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _publish(call, request["model"], request["publish_task"], force=request["force_publish_task"])


@endpoint("models.publish_many", "1.0")
async def publish_many(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    with_task = request["publish_task"] and request["publish_tasks"]
    return await do_each(
        call, "model", request["ids"], lambda id: _publish(call, id, with_task, force=request["force_publish_task"])
    )


async def _publish(call: Call, model_id: str, with_task: bool, *, force: bool) -> dict[str, Any]:
    """Publish a model. Its task is published first: if that fails, the model stays as it is."""
    model = await get_model(call, model_id, ["task", "ready", "project"])
    if model["ready"]:
        raise _published(model_id)
    published = await _publish_task(call, model, force=force) if with_task else {}
    draft: Filter = AllOf([{"id": model_id, "ready": Unequal(True)}, NoneOf([DELETING.condition()])])
    if not await documents(call).update(MODELS, draft, Update(set={**changed_now(call), "ready": True})):
        known = await get_model(call, model_id, ["ready"])
        raise _published(model_id) if known["ready"] else being_deleted(model_id)
    await touch_projects(call, model.get("project"))
    return {"updated": 1, **published}


def _published(model_id: str) -> Refusal:
    return Refusal(Why.MODEL_PUBLISHED, f"Model is published already: id={model_id}")


async def _publish_task(call: Call, model: Document, *, force: bool) -> dict[str, Any]:
    task = await documents(call).find_one(TASKS, {"id": model.get("task")}, projection=["status"])
    if task is None or task["status"] in LOCKED:
        return {}
    done = await publish_task(call, task["id"], {"force": force, "publish_model": False})
    return {"published_task": {"id": task["id"], "data": done}}


# --- archived ----------------------------------------------------------------------------------------


@for_each("models.archive_many")
async def archive(call: Call, model_id: str, request: dict[str, Any]) -> dict[str, Any]:
    await change_model(call, model_id, Update(add={"system_tags": [ARCHIVED]}))
    return {"archived": True}


@for_each("models.unarchive_many")
async def unarchive(call: Call, model_id: str, request: dict[str, Any]) -> dict[str, Any]:
    await change_model(call, model_id, Update(pull={"system_tags": ARCHIVED}))
    return {"unarchived": True}


# --- deleted -----------------------------------------------------------------------------------------


@for_one("models.delete")
@for_each("models.delete_many")
async def delete(call: Call, model_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a model. Its document goes last, so that a delete which was cut off can be repeated."""
    model = await get_model(call, model_id, ["task", "uri", "project"])
    if not request["force"]:
        await _check_unused(call, model)
    owner = Owner(call.identity.company, model_id, is_model=True)
    if request["delete_external_artifacts"]:
        weights = [model["uri"]] if model.get("uri") else []
        await delete_files(call, shown=await event_urls(call, [owner]), made=weights, models=[model_id])
    await unlink(call, model_id)
    await call.backend.delete_events([owner])
    deleted = await documents(call).delete(MODELS, {"id": model_id})
    await touch_projects(call, model.get("project"))
    return {"deleted": bool(deleted), "url": model.get("uri")}


async def _check_unused(call: Call, model: Document) -> None:
    """Raises Refusal(MODEL_IN_USE) if the model is the input of a task.

    Raises Refusal(MODEL_OF_PUBLISHED_TASK) if the task that made it is published.
    """
    user = await documents(call).find_one(TASKS, {"models.input.model": model["id"]}, projection=["id"])
    if user is not None:
        raise Refusal(
            Why.MODEL_IN_USE, f"Model is used by tasks, use force to delete it: id={model['id']}, task={user['id']}"
        )
    made_by = {"id": model.get("task"), "status": In(list(LOCKED))}
    if await documents(call).count(TASKS, made_by):
        raise Refusal(
            Why.MODEL_OF_PUBLISHED_TASK,
            f"The task that made the model is published, use force to delete it: id={model['id']}",
        )


async def unlink(call: Call, model_id: str) -> None:
    """Remove the model from the lists of all tasks that name it.

    In the input models of a task, and in the output models of a published one, an item stays that names a deleted model
    (see `DELETED`).
    """
    made_by: Document = {"models.output.model": model_id, "status": In(list(LOCKED))}
    told_by = AnyOf([{"models.input.model": model_id}, made_by])
    for task in await documents(call).find(TASKS, told_by, projection=["id"]):
        await revise_task(call, task["id"], lambda task: _told_as_deleted(task, model_id), fields=["models"])
    change = Update(pull={"models.output": {"model": model_id}}, set=changed_now(call))
    await documents(call).update(TASKS, {"models.output.model": model_id}, change, many=True)


def _told_as_deleted(task: Document, model_id: str) -> Update | None:
    changes: Document = {}
    for kind in ("input", "output") if task["status"] in LOCKED else ("input",):
        items = models_of(task, kind)
        told = [{**item, "model": DELETED + model_id} if item["model"] == model_id else item for item in items]
        if told != items:
            changes[f"models.{kind}"] = told
    return Update(set=changes) if changes else None
