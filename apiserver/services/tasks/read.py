"""Reading tasks: one, many, and with what they refer to. Readers see every acknowledged event."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apiserver.common.errors import invalid_id
from apiserver.common.times import utc_now
from apiserver.events.last_metrics import run_time
from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.documents.public import read_one
from apiserver.services.events.last_metrics import WRITTEN
from apiserver.services.lists.filters import only_values
from apiserver.services.lists.queries import PageBounds, QuerySpec, all_of, build_filter, hide_hidden, projection_of
from apiserver.services.lists.references import expand, projection_with
from apiserver.services.lists.scrolls import find_page, scroll_answer, scrolled_page
from apiserver.services.projects.tree import with_descendants, with_subprojects
from apiserver.services.tasks.legacy import with_legacy
from apiserver.services.tasks.task_documents import TASKS, answered
from apiserver.stores.documents.query import Document, Filter, In

SPEC = QuerySpec(
    patterns=("name", "comment", "report"),
    lists=(
        "id",
        "user",
        "tags",
        "system_tags",
        "type",
        "status",
        "project",
        "parent",
        "hyperparams.*",
        "execution.queue",
        "models.input.model",
    ),
    values=("runtime.*",),
    times=("created", "started", "completed", "published", "status_changed", "last_update", "last_change"),
    ranges=("active_duration", "last_metrics.*", "last_iteration"),
    text=("id", "name", "comment"),
)
REFERENCES = {
    "company": "companies",
    "user": "users",
    "project": "projects",
    "parent": "tasks",
    "execution.queue": "queues",
    "models.input.model": "models",
    "models.output.model": "models",
}
#: Parts of a request that concern no field that is written after events.
_WITHOUT_EVENTS = {"id", "only_fields", "include_subprojects", "search_hidden", "allow_public", "page", "page_size"}
#: For a running task, this field is answered as of now. Lists sort by the stored value, from the task's last report.
_RUNNING_FOR = "active_duration"


@endpoint("tasks.get_by_id", "1.0")
async def get_by_id(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await call.backend.last_metrics.settle(call.identity.company, ids=[request["task"]])
    return {"task": _shown(call, await read_one(call, TASKS, request["task"]), None)}


@endpoint("tasks.get_all", "1.0")
async def get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    page = await scrolled_page(call, request)
    fields = projection_of(request)
    tasks = await _find(call, request, page, fields)
    return {"tasks": [_shown(call, task, fields) for task in tasks], **scroll_answer(call, page, len(tasks))}


@endpoint("tasks.get_by_id_ex", "1.0")
async def get_by_id_ex(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    ids = [request["id"]] if isinstance(request["id"], str) else request["id"]
    tasks = await _find_expanded(call, {**request, "id": ids}, PageBounds(0, len(ids))) if ids else []
    if not tasks:
        raise invalid_id("task", *ids)
    return {"tasks": tasks}


@endpoint("tasks.get_all_ex", "1.0")
async def get_all_ex(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    page = await scrolled_page(call, request)
    tasks = await _find_expanded(call, request, page)
    return {"tasks": tasks, **scroll_answer(call, page, len(tasks))}


@endpoint("tasks.get_types", "1.0")
async def get_types(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    projects = request.get("projects")
    inside: Filter = {"project": In(await with_descendants(call, projects))} if projects else {}
    return {"types": await visible(call).distinct(TASKS, "type", inside)}


async def _find(call: Call, request: dict[str, Any], page: PageBounds, projection: list[str] | None) -> list[Document]:
    if _depends_on_events(request, projection):
        await call.backend.last_metrics.settle(call.identity.company, ids=only_values(request.get("id")))
    wanted = all_of([build_filter(await with_subprojects(call, request), SPEC), hide_hidden(request)])
    return await find_page(visible(call, request), TASKS, request, page, wanted, projection)


def _depends_on_events(request: dict[str, Any], projection: list[str] | None) -> bool:
    """Whether events may change what is found, or what is answered of it.

    They do not when the SDK asks whether its task is to stop. As it asks every other second, most documents would be
    written for that alone.
    """
    given = {name for name, value in request.items() if value}
    return (
        projection is None
        or not given <= _WITHOUT_EVENTS
        or not WRITTEN.isdisjoint(path.partition(".")[0] for path in projection)
    )


async def _find_expanded(call: Call, request: dict[str, Any], page: PageBounds) -> list[Document]:
    found = await _find(call, request, page, projection_with(REFERENCES, request))
    fields = projection_of(request)
    tasks = [_shown(call, task, fields) for task in found]
    await expand(visible(call), tasks, REFERENCES, fields or ())
    return tasks


def _shown(call: Call, task: Document, fields: Collection[str] | None) -> Document:
    shown = with_legacy(answered(task), call.requested_version)
    if fields is None or _RUNNING_FOR in fields:
        shown |= run_time(shown, utc_now())
    return shown
