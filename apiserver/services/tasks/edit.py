"""Making tasks and changing them: name, project, script, sections, tags."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import validation_error
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.keys import escape, escape_keys
from apiserver.services.documents.public import read_one
from apiserver.services.documents.stamps import changed_now
from apiserver.services.lists.conditions import parse_time
from apiserver.services.models.deletions import DELETED
from apiserver.services.projects.tree import find_or_create, get_project, touch_projects
from apiserver.services.tasks.artifacts import in_order
from apiserver.services.tasks.configurations import named_configuration
from apiserver.services.tasks.hyperparams import named_param
from apiserver.services.tasks.legacy import modernise, replacing
from apiserver.services.tasks.statuses import STATUSES
from apiserver.services.tasks.task_documents import (
    TASKS,
    answered,
    change_task,
    editable,
    get_task,
    get_tasks,
    insert_task,
    new_task,
    set_fields,
)
from apiserver.stores.documents.query import Document, In, Update

#: The fields that `tasks.create` and `tasks.edit` may set.
_FIELDS = (
    "name",
    "type",
    "comment",
    "parent",
    "project",
    "script",
    "execution",
    "hyperparams",
    "configuration",
    "models",
    "container",
    "runtime",
    "tags",
    "system_tags",
)
_UPDATE_FIELDS = ("name", "comment", "project", "tags", "system_tags", "created")


@endpoint("tasks.create", "1.0")
async def create(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    task = new_task(call, await checked_fields(call, request))
    await insert_task(call, task)
    return {"id": task["id"]}


@endpoint("tasks.validate", "1.0")
async def validate(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await checked_fields(call, request)
    return {}


@endpoint("tasks.edit", "1.0")
async def edit(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    fields = await checked_fields(call, request)
    if "status" in request:
        fields |= {"status": request["status"], "status_changed": utc_now()}
    if not fields:
        await get_task(call, request["task"], ["id"])
        return {"updated": 0, "fields": {}}
    statuses = STATUSES if request["force"] else ("created",)
    stamps = await change_task(call, request["task"], await _edit(call, request, fields), statuses=statuses)
    await touch_projects(call, fields.get("project"))
    return {"updated": 1, "fields": answered(fields | stamps)}


@endpoint("tasks.update", "1.0")
async def update(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    fields = _update_fields(request)
    await check_references(call, fields)
    if not fields:
        await get_task(call, request["task"], ["id"])
        return {"updated": 0, "fields": {}}
    stamps = await change_task(call, request["task"], Update(set=fields))
    await touch_projects(call, fields.get("project"))
    return {"updated": 1, "fields": fields | stamps}


@endpoint("tasks.update_batch", "2.1")
async def update_batch(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Nothing is changed if one item is refused. If several items name a task, the last one counts."""
    changes = {item["task"]: _update_fields(item) for item in request["items"]}
    await get_tasks(call, list(changes), ["id"])
    for fields in changes.values():
        await check_references(call, fields)
    for task, fields in changes.items():
        if fields:
            await change_task(call, task, Update(set=fields))
    await touch_projects(call, *(fields.get("project") for fields in changes.values()))
    return {"updated": sum(map(bool, changes.values()))}


@endpoint("tasks.set_requirements", "1.0")
async def set_requirements(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    fields = {"script.requirements": escape_keys(request["requirements"])}
    stamps = await change_task(call, request["task"], Update(set=fields))
    return {"updated": 1, "fields": {"script.requirements": request["requirements"], **stamps}}


@endpoint("tasks.edit_runtime", "2.34")
async def edit_runtime(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    removed = [f"runtime.{escape(name)}" for name in request.get("remove", [])]
    added = {f"runtime.{key}": value for key, value in escape_keys(request.get("add_or_update", {})).items()}
    # A name in both lists is set, not removed: one update may not do both.
    removed = [path for path in removed if path not in added]
    await change_task(call, request["task"], Update(set=added, unset=removed), statuses=editable(force=True))
    return {"updated": 1}


@endpoint("tasks.update_tags", "1.0")
async def update_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"updated": await change_tags(call, TASKS, request)}


@endpoint("tasks.move", "1.0")
async def move(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    tasks = await get_tasks(call, request["ids"], ["project"])
    project = await destination(call, request)
    moved = Update(set=changed_now(call), unset=["project"])
    if project is not None:
        moved = Update(set={**changed_now(call), "project": project["id"]})
    await documents(call).update(TASKS, {"id": In(request["ids"])}, moved, many=True)
    project_id = project["id"] if project is not None else None
    await touch_projects(call, project_id, *(task.get("project") for task in tasks))
    return {"project_id": project_id}


async def _edit(call: Call, request: dict[str, Any], fields: Document) -> Update:
    """The update that sets `fields`. A section given in its older form only replaces entries of that older form."""
    legacy = [name for name in ("hyperparams", "configuration") if name in fields and name not in request]
    if not legacy:
        return Update(set=set_fields(fields))
    update = replacing(await get_task(call, request["task"], legacy), fields, legacy)
    others = {name: value for name, value in fields.items() if name not in legacy}
    return update.setting(set_fields(others))


async def change_tags(call: Call, collection: str, request: dict[str, Any]) -> int:
    """Add `add_tags` to the documents with these `ids`, and remove `remove_tags`; returns how many there are."""
    chosen = {"id": In(request["ids"])}
    changed = changed_now(call)
    updated = 0
    # One update may not both add to a field and remove from it.
    if tags := request.get("remove_tags"):
        removal = Update(set=changed, pull={"tags": In(tags)})
        updated = await documents(call).update(collection, chosen, removal, many=True)
    if tags := request.get("add_tags"):
        addition = Update(set=changed, add={"tags": tags})
        updated = await documents(call).update(collection, chosen, addition, many=True)
    return updated


async def destination(call: Call, request: dict[str, Any]) -> Document | None:
    """The project to move to, or None (out of all projects) if `project` is given as null."""
    if "project" in request and request["project"] is None and not request.get("project_name"):
        return None
    if request.get("project"):
        return await get_project(call, request["project"])
    if request.get("project_name"):
        return await find_or_create(call, request["project_name"])
    raise validation_error("either project or project_name is required", field="project")


async def checked_fields(call: Call, request: dict[str, Any]) -> Document:
    """The stored fields that a request to make or edit a task sets, if its project and its parent exist."""
    fields: Document = escape_keys({name: request[name] for name in _FIELDS if name in request})
    if "output_dest" in request:
        fields["output"] = {"destination": request["output_dest"]}
    if "artifacts" in fields.get("execution", {}):
        fields["execution"]["artifacts"] = in_order(fields["execution"]["artifacts"])
    modernise(fields)
    _name_items(fields)
    await check_references(call, fields)
    return fields


def _name_items(fields: Document) -> None:
    """Set `name` and `section` in parameters and configurations: clients read them, but may not send them."""
    for section, params in fields.get("hyperparams", {}).items():
        for name, item in params.items():
            params[name] = named_param(section, name, item)
    for name, item in fields.get("configuration", {}).items():
        fields["configuration"][name] = named_configuration(name, item)


async def check_references(call: Call, fields: Document) -> None:
    """Remove an empty project and parent from `fields`.

    Raises Refusal(NO_PROJECT) or Refusal(NO_TASK) if the project or the parent does not exist.
    """
    project, parent = fields.get("project"), fields.get("parent")
    if project == "" or project is None:
        fields.pop("project", None)
    else:
        await get_project(call, project)
    if parent == "":
        fields.pop("parent")
    elif parent is not None and not parent.startswith(DELETED):
        await read_one(call, TASKS, parent, ["id"])


def _update_fields(request: dict[str, Any]) -> Document:
    fields = {name: request[name] for name in _UPDATE_FIELDS if name in request}
    if "created" in fields:
        fields["created"] = parse_time(fields["created"], "created")
    if "output__error" in request:
        fields["output.error"] = request["output__error"]
    return fields
