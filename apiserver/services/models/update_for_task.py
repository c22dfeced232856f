"""models.update_for_task: registers a model as the output of a task."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import validation_error
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.unneeded_files import delete_replaced
from apiserver.services.models.edit import reach_iteration
from apiserver.services.models.model_documents import MODELS, answered, change_model, get_model, insert_model, new_model
from apiserver.services.tasks.models import models_of, put
from apiserver.services.tasks.task_documents import editable, get_task, revise_task, wrong_status
from apiserver.stores.documents.query import Document, Update

_FIELDS = ("name", "comment", "tags", "system_tags")


@endpoint("models.update_for_task", "1.0")
async def update_for_task(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if bool(request.get("uri")) == bool(request.get("override_model_id")):
        raise validation_error("exactly one of uri and override_model_id is required", field="uri")
    task = await get_task(call, request["task"], ["name", "project", "models", "status", "execution.framework"])
    if task["status"] not in editable(force=True):
        raise wrong_status(task, editable(force=True))
    answer, model = await _model_of(call, request, task)
    await _link(call, task["id"], model)
    if "iteration" in request:
        await reach_iteration(call, task["id"], request["iteration"])
    return answer


async def _model_of(call: Call, request: dict[str, Any], task: Document) -> tuple[dict[str, Any], Document]:
    """The answer, and the model: the one that the request names, or the task's last output, or a new one."""
    if chosen := request.get("override_model_id"):
        model = await get_model(call, chosen, ["name"])
        return {"id": model["id"], "created": False, "updated": 1, "fields": {}}, model
    fields = {name: request[name] for name in ("uri", *_FIELDS) if name in request}
    output = models_of(task, "output")
    wanted = ["name", "task", "uri", "ready"]
    known = await documents(call).find_one(MODELS, {"id": output[-1]["model"]}, projection=wanted) if output else None
    if known is None:
        framework = task.get("execution", {}).get("framework")
        inherited = {"name": task["name"], "project": task.get("project"), "framework": framework or None}
        made = new_model(call, {**inherited, "task": task["id"], **fields})
        await insert_model(call, made)
        return {"id": made["id"], "created": True}, made
    await delete_replaced(call, known, fields["uri"])
    stamps = await change_model(call, known["id"], Update(set=fields))
    return {"id": known["id"], "created": False, "updated": 1, "fields": answered(fields | stamps)}, known | fields


async def _link(call: Call, task: str, model: Document) -> None:
    """Put the model at the end of the task's output models, in place of an item of the same name."""
    item = {"name": model["name"], "model": model["id"], "updated": utc_now()}

    def linked(task: Document) -> Update:
        others = [other for other in models_of(task, "output") if other["model"] != model["id"]]
        return Update(set={"models.output": put(others, item)})

    await revise_task(call, task, linked, fields=["models"], statuses=editable(force=True))
