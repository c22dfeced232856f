"""Cloning tasks: a new task has the inputs of the original, not its outputs."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import invalid_id
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.documents.public import read_one
from apiserver.services.models.deletions import DELETED
from apiserver.services.projects.tree import find_or_create
from apiserver.services.tasks.edit import check_references, checked_fields
from apiserver.services.tasks.task_documents import TASKS, insert_task, new_task
from apiserver.stores.documents.query import Document, In

#: The fields that a clone takes from its original unless the request gives others.
_INHERITED = (
    "name",
    "type",
    "comment",
    "parent",
    "project",
    "script",
    "execution",
    "hyperparams",
    "configuration",
    "container",
    "tags",
)
#: Request fields, and the field of the new task that each sets.
_REQUESTED = {
    "new_task_name": "name",
    "new_task_comment": "comment",
    "new_task_parent": "parent",
    "new_task_project": "project",
    "new_task_hyperparams": "hyperparams",
    "new_task_configuration": "configuration",
    "new_task_container": "container",
    "new_task_tags": "tags",
    "new_task_system_tags": "system_tags",
}
#: System tags that a clone does not take from its original.
_NOT_INHERITED_TAGS = ("development", "archived")


@endpoint("tasks.clone", "1.0")
async def clone(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    original = await read_one(call, TASKS, request["task"])
    task, answer = await cloned(call, original, request)
    await insert_task(call, task)
    return {"id": task["id"], **answer}


async def cloned(call: Call, original: Document, request: dict[str, Any]) -> tuple[Document, dict[str, Any]]:
    """The new task for a request of `tasks.clone`, not yet stored, and the further fields of the answer."""
    given = await checked_fields(call, {_REQUESTED[name]: request[name] for name in _REQUESTED if request.get(name)})
    overrides = await checked_fields(call, {"execution": request.get("execution_overrides", {})})
    answer: dict[str, Any] = {}
    if request.get("new_project_name") and "project" not in given:
        project = await find_or_create(call, request["new_project_name"])
        given["project"] = project["id"]
        answer["new_project"] = {"id": project["id"], "name": project["name"]}
    task = new_task(call, _inherited(original) | given)
    task["execution"] = _inputs(task["execution"] | overrides["execution"])
    task["models"]["input"] = _input_models(original, request, overrides)
    for name in ("hyperparams", "configuration", "container"):
        if name not in given:
            task[name] = task[name] | overrides.get(name, {})
    await _check(call, task, request, own_models="models" in overrides or bool(request.get("new_task_input_models")))
    task["output"] = {key: value for key, value in original.get("output", {}).items() if key == "destination"}
    return task, answer


def _inherited(original: Document) -> Document:
    fields = {name: original[name] for name in _INHERITED if name in original}
    if (fields.get("parent") or DELETED).startswith(DELETED):
        fields["parent"] = original["id"]
    if not original["company"]:  # a public task may be in a project that the caller cannot see
        fields.pop("project", None)
    fields["system_tags"] = [tag for tag in original.get("system_tags", []) if tag not in _NOT_INHERITED_TAGS]
    return fields


def _inputs(execution: Document) -> Document:
    """The execution section without its queue and its output artifacts."""
    artifacts = [artifact for artifact in execution.get("artifacts", []) if artifact.get("mode") == "input"]
    return {key: value for key, value in execution.items() if key != "queue"} | {"artifacts": artifacts}


def _input_models(original: Document, request: dict[str, Any], overrides: Document) -> list[Document]:
    models = request.get("new_task_input_models")
    if models:
        return [{"name": model["name"], "model": model["model"], "updated": utc_now()} for model in models]
    source = overrides if "models" in overrides else original
    inherited: list[Document] = source.get("models", {}).get("input", [])
    return inherited


async def _check(call: Call, task: Document, request: dict[str, Any], *, own_models: bool) -> None:
    """Raises Refusal(NO_…) if the clone refers to something that does not exist.

    Input models that the request gives are always checked, everything else if it has `validate_references`.
    """
    if request.get("validate_references"):
        await check_references(call, task)
    if own_models or request.get("validate_references"):
        wanted = {item["model"] for item in task["models"]["input"]}
        found = await visible(call).find("models", {"id": In(list(wanted))}, projection=["id"])
        if missing := wanted - {model["id"] for model in found}:
            raise invalid_id("model", *sorted(missing))
