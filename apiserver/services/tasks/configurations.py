"""The configurations of a task: `{name: {name, value, type, description}}`, names escaped."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import validation_error
from apiserver.services.backend import Call, endpoint
from apiserver.services.documents.keys import escape, unescape
from apiserver.services.tasks.task_documents import change_task, editable, read_tasks
from apiserver.stores.documents.query import Document, Update


@endpoint("tasks.get_configurations", "1.0")
async def get_configurations(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    wanted = {escape(name) for name in request.get("names") or []}
    tasks = await read_tasks(call, request["tasks"], ["configuration"])
    return {
        "configurations": [
            {"task": task["id"], "configuration": [item for key, item in _sorted(task) if not wanted or key in wanted]}
            for task in tasks
        ]
    }


@endpoint("tasks.get_configuration_names", "1.0")
async def get_configuration_names(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    tasks = await read_tasks(call, request["tasks"], ["configuration"])
    return {
        "configurations": [
            {
                "task": task["id"],
                "names": [item["name"] for _, item in _sorted(task) if item.get("value") or not request["skip_empty"]],
            }
            for task in tasks
        ]
    }


@endpoint("tasks.edit_configuration", "1.0")
async def edit_configuration(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    items: dict[str, Document] = {}
    for number, item in enumerate(request["configuration"]):
        if not item.get("name"):
            raise validation_error("is required", field=f"configuration[{number}].name")
        items[escape(item["name"])] = item
    if request["replace_configuration"]:
        change: Document = {"configuration": items}
    else:
        change = {f"configuration.{key}": item for key, item in items.items()}
    await change_task(call, request["task"], Update(set=change), statuses=editable(request["force"]))
    return {"updated": 1}


@endpoint("tasks.delete_configuration", "1.0")
async def delete_configuration(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    doomed = {f"configuration.{escape(name)}": 1 for name in request["configuration"]}
    await change_task(call, request["task"], Update(unset=doomed), statuses=editable(request["force"]))
    return {"deleted": 1}


def named_configuration(key: str, item: Document) -> Document:
    """A configuration with its name, taken from the escaped key that it is stored under."""
    return {**item, "name": unescape(key)}


def _sorted(task: Document) -> list[tuple[str, Document]]:
    """The keys and configurations of a task, sorted by name."""
    stored: dict[str, Document] = task.get("configuration") or {}
    return [(key, named_configuration(key, stored[key])) for key in sorted(stored, key=unescape)]
