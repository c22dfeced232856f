"""Reading tasks: one, many, and with what they refer to. Readers see every acknowledged event."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from apiserver.common.errors import invalid_id
from apiserver.common.times import utc_now
from apiserver.events.last_metrics import run_time
from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.documents.public import read_one
from apiserver.services.events.last_metrics import WRITTEN
from apiserver.services.lists.conditions import QuerySpec, hide_hidden
from apiserver.services.lists.fields import Fields, fields_of
from apiserver.services.lists.filters import only_values
from apiserver.services.lists.paging import PageBounds
from apiserver.services.lists.queries import list_query
from apiserver.services.lists.references import expand
from apiserver.services.lists.scrolls import scroll_answer, scrolled_page
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
    [task] = _shown(call, [await read_one(call, TASKS, request["task"])], None)
    return {"task": task}


@endpoint("tasks.get_all", "1.0")
async def get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    page = await scrolled_page(call, request)
    tasks = await _find(call, request, fields_of(request), page)
    return {"tasks": tasks, **scroll_answer(call, page, len(tasks))}


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


async def _find(call: Call, request: dict[str, Any], fields: Fields, page: PageBounds) -> list[Document]:
    if _depends_on_events(request, fields.read):
        await call.backend.last_metrics.settle(call.identity.company, ids=only_values(request.get("id")))
    request = await with_subprojects(call, request)
    query = list_query(request, SPEC, fields, page, hide_hidden(request))
    tasks = await visible(call, request).search(TASKS, query)
    fields.leave_out(tasks)
    return _shown(call, tasks, fields.answered)


def _depends_on_events(request: dict[str, Any], projection: list[str] | None) -> bool:
    """Whether events may change which tasks are found, or what is answered of them.

    They do not when the SDK asks whether its task is to stop. The SDK asks every other second, so most documents would
    be written for that alone.
    """
    given = {name for name, value in request.items() if value}
    return (
        projection is None
        or not given <= _WITHOUT_EVENTS
        or not WRITTEN.isdisjoint(path.partition(".")[0] for path in projection)
    )


async def _find_expanded(call: Call, request: dict[str, Any], page: PageBounds) -> list[Document]:
    fields = fields_of(request, REFERENCES)
    tasks = await _find(call, request, fields, page)
    await expand(visible(call), tasks, REFERENCES, fields.answered or ())
    return tasks


def _shown(call: Call, tasks: Sequence[Document], fields: Collection[str] | None) -> list[Document]:
    """Stored tasks in the form that the client gets, with these fields of theirs."""
    shown = [with_legacy(task, call.requested_version) for task in list(map(answered, tasks))]
    if fields is None or _RUNNING_FOR in fields:
        now = utc_now()
        return [task | run_time(task, now) for task in shown]
    return shown
