"""How many tasks and models are in projects and in those below them.

All counts come from a few grouped queries, whatever the number of projects, and are added up along the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from apiserver.services.backend import Call, visible
from apiserver.services.project_tree import PROJECTS
from apiserver.services.queries import all_of, build_filter
from apiserver.services.tasks.documents import STATUSES, TASKS
from apiserver.services.tasks.read import SPEC
from apiserver.stores.documents.base import Document, Filter

#: What tasks and models are counted as; what is not archived is active.
STATES: dict[str, Filter] = {
    "active": {"system_tags": {"$ne": "archived"}},
    "archived": {"system_tags": "archived"},
}
#: From each project that is counted to those that it is counted for: itself, and those above it.
Holders = Mapping[str, list[str]]


async def stats_of(call: Call, projects: list[Document], request: dict[str, Any]) -> dict[str, Document]:
    """By project id: `{stats: {active | archived: {total_tasks, status_count, …}}}`, of the state asked for or both."""
    state = request.get("stats_for_state")
    holders = await _holders(call, projects, with_children=request["stats_with_children"])
    narrowed = build_filter(request.get("include_stats_filter", {}), SPEC)
    counted = {
        name: await _state_stats(call, holders, all_of([STATES[name], narrowed]))
        for name in ([state] if state else STATES)
    }
    return {
        project["id"]: {"stats": {name: stats[project["id"]] for name, stats in counted.items()}}
        for project in projects
    }


async def sub_projects(call: Call, projects: list[Document], request: dict[str, Any]) -> dict[str, Document]:
    """By project id: `{sub_projects: [{id, name}]}`, all that are below it, sorted by name."""
    below: dict[str, list[Document]] = {project["id"]: [] for project in projects}
    shown: Filter = {} if request["search_hidden"] else {"system_tags": {"$ne": "hidden"}}
    wanted = all_of([{"path": {"$in": list(below)}}, shown])
    for project in await visible(call).find(PROJECTS, wanted, projection=["name", "path"], sort=[("name", 1)]):
        for id in below.keys() & set(project["path"]):
            below[id].append({"id": project["id"], "name": project["name"]})
    return {id: {"sub_projects": inside} for id, inside in below.items()}


async def own_counts(call: Call, projects: list[Document]) -> dict[str, Document]:
    """By project id: `{own_tasks, own_models}`, those right in it that are not archived."""
    inside = all_of([{"project": {"$in": [project["id"] for project in projects]}}, STATES["active"]])
    tasks = await visible(call).count_by(TASKS, inside, ["project"])
    models = await visible(call).count_by("models", inside, ["project"])
    return {
        project["id"]: {"own_tasks": tasks.get((project["id"],), 0), "own_models": models.get((project["id"],), 0)}
        for project in projects
    }


async def dataset_stats(call: Call, projects: list[Document]) -> dict[str, Document]:
    """By project id: `{dataset_stats: {file_count, total_size}}` of its newest version; null where there is none."""
    inside: Filter = {
        "project": {"$in": [project["id"] for project in projects]},
        "runtime.ds_file_count": {"$ne": None},
    }
    fields = ["project", "runtime.ds_file_count", "runtime.ds_total_size"]
    versions = await visible(call).find(TASKS, inside, projection=fields, sort=[("created", 1), ("id", 1)])
    newest = {version["project"]: version["runtime"] for version in versions}
    return {project["id"]: {"dataset_stats": _dataset_size(newest.get(project["id"]))} for project in projects}


def _dataset_size(runtime: Document | None) -> Document | None:
    if runtime is None:
        return None
    return {"file_count": runtime["ds_file_count"], "total_size": runtime.get("ds_total_size")}


async def _holders(call: Call, projects: list[Document], *, with_children: bool) -> Holders:
    ids = {project["id"] for project in projects}
    holders = {id: [id] for id in ids}
    if with_children:
        for project in await visible(call).find(PROJECTS, {"path": {"$in": sorted(ids)}}, projection=["path"]):
            holders.setdefault(project["id"], []).extend(id for id in project["path"] if id in ids)
    return holders


async def _state_stats(call: Call, holders: Holders, condition: Filter) -> dict[str, Document]:
    """By holder: the stats of the tasks that meet the condition."""
    inside = all_of([{"project": {"$in": sorted(holders)}}, condition])
    day_ago = (datetime.now(UTC) - timedelta(days=1)).isoformat(timespec="microseconds")
    lately = all_of([inside, {"completed": {"$gte": day_ago}}])
    statuses = _added_up(await visible(call).count_by(TASKS, inside, ["project", "status"]), holders)
    completed = _added_up(await visible(call).count_by(TASKS, lately, ["project"]), holders)
    seconds: Counter[str] = Counter()
    durations = _added_up(await visible(call).count_by(TASKS, inside, ["project", "active_duration"]), holders)
    for (holder, duration), count in durations.items():
        seconds[holder] += (duration or 0) * count
    return {
        holder: {
            "total_tasks": sum(statuses[holder, status] for status in STATUSES),
            "status_count": {status: statuses[holder, status] for status in STATUSES},
            "completed_tasks_24h": completed[holder,],
            "total_runtime": seconds[holder],
        }
        for holder in holders
    }


def _added_up(counts: Mapping[tuple[Any, ...], int], holders: Holders) -> Counter[tuple[Any, ...]]:
    """Counts by (project, …) as counts by (holder, …)."""
    total: Counter[tuple[Any, ...]] = Counter()
    for (project, *rest), count in counts.items():
        for holder in holders[project]:
            total[(holder, *rest)] += count
    return total
