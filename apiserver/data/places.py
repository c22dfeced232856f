"""Finds what an address is about: a task or a project, by its id or by its name.

A task's name follows that of its project: `examples/mnist/first try` is the task "first try" of the project
"examples/mnist". Several tasks may have the same name. Then the address means the one that was made last.
"""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.data.calls import DataCall, not_found
from apiserver.events.model import Owner
from apiserver.services.documents.keys import unescape_keys
from apiserver.services.projects.names import cleaned_name
from apiserver.services.projects.tree import PROJECTS
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.documents.query import Document, In
from apiserver.stores.documents.scoped import VisibleDocuments

#: Stands for all projects together.
ALL = "*"
#: An address has at most so many names: each way of cutting it in two costs a search.
_MOST_NAMES = 20
_FIELDS = ("id", "project")


async def find_task(call: DataCall, address: str, fields: Sequence[str]) -> Document:
    """These fields of the task, its id and its `company`, as of now; 404 if there is none that the caller may read."""
    owner = await find_owner(call, address)
    await call.backend.last_metrics.settle(owner.company, ids=[owner.id])
    found = await call.backend.visible_to(call.caller).find_kept(TASKS, [owner.id], [*fields, "id"])
    if not found:
        raise not_found("task", address)
    known: Document = unescape_keys(found[0])
    return known


async def find_owner(call: DataCall, address: str) -> Owner:
    """The owner of the events of the task; 404 if there is none that the caller may read."""
    documents = call.backend.visible_to(call.caller)
    task = await call.backend.document_cache.find_one(documents, TASKS, address, _FIELDS)
    if task is None and "/" in address:
        task = await _by_name(documents, address)
    if task is None or not (_covers(call, "tasks", task["id"]) or _covers(call, "projects", task.get("project"))):
        raise not_found("task", address)
    return Owner(task["company"], task["id"])


async def _by_name(documents: VisibleDocuments, address: str) -> Document | None:
    names = address.split("/")
    if len(names) > _MOST_NAMES:
        return None
    cut = {"/".join(names[:n]): "/".join(names[n:]) for n in range(1, len(names))}
    projects = await documents.find(PROJECTS, {"name": In(list(cut))}, projection=["id", "name"])
    for project in sorted(projects, key=lambda one: -len(one["name"])):
        named = {"project": project["id"], "name": cut[project["name"]]}
        newest = await documents.find(TASKS, named, projection=["id"], sort=[("created", -1)], limit=1)
        if newest:
            return next(iter(await documents.find_kept(TASKS, [newest[0]["id"]], _FIELDS)), None)
    return None


async def find_project(call: DataCall, address: str) -> Document:
    """The project's id and name, which both are `*` for all projects; 404 if there is none that the caller may read."""
    if address == ALL and call.link is None:
        return {"id": ALL, "name": ALL}
    documents = call.backend.visible_to(call.caller)
    projects = await documents.find(PROJECTS, {"id": address}, projection=["id", "name"]) or await documents.find(
        PROJECTS, {"name": cleaned_name(address)}, projection=["id", "name"], limit=1
    )
    if not projects or not _covers(call, "projects", projects[0]["id"]):
        raise not_found("project", address)
    return projects[0]


def _covers(call: DataCall, kind: str, id: str | None) -> bool:
    """Whether the link that the request came with, if any, is for this task or project."""
    return call.link is None or call.link == f"{kind}/{id}"
