"""Counting tasks, models and datasets in projects and in those below them.

A few grouped queries count for all projects of a page, and the counts are then added up along the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.common.times import from_now
from apiserver.services.backend import Call, visible
from apiserver.services.lists.conditions import build_filter, hide_hidden
from apiserver.services.projects.children import DATASETS, children_tags, counted_tasks, of_users
from apiserver.services.projects.tree import PROJECTS
from apiserver.services.tasks.read import SPEC
from apiserver.services.tasks.statuses import STATUSES
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.documents.query import Document, Filter, In, Unequal, all_of

#: The states of tasks and models that are counted separately, and the condition for each.
STATES: dict[str, Filter] = {"active": {"system_tags": Unequal("archived")}, "archived": {"system_tags": "archived"}}
_DATASET = "dataset"
_DAY = 86400


@dataclass(frozen=True, slots=True)
class Scope:
    """The projects whose contents are counted for a page: the page's projects, and those below them."""

    ids: list[str]
    below: list[Document]
    """`{id, name, path}`, by name."""

    def holders(self, *, with_children: bool) -> dict[str, list[str]]:
        """By project, the projects of the page that it counts for: itself, and with children those above it.

        For the page a, a/b and a project a/b/c below: `{a: [a], a/b: [a/b, a], a/b/c: [a, a/b]}`.
        """
        holders = {id: [id] for id in self.ids}
        page = set(self.ids)
        for project in self.below if with_children else ():
            holders.setdefault(project["id"], []).extend(id for id in project["path"] if id in page)
        return holders


async def scope_of(
    call: Call, projects: list[Document], request: dict[str, Any], selected: Iterable[str] | None
) -> Scope:
    """The scope of a page of projects. Only those below count that the request finds, and that are in `selected`."""
    ids = sorted(project["id"] for project in projects)
    conditions: list[Filter] = [{"path": In(ids)}]
    if not request.get("children_type"):  # reports and pipelines are in hidden projects
        conditions.append(hide_hidden({"search_hidden": request["search_hidden"]}))
    if selected is not None:
        conditions.append({"id": In(list(selected))})
    below = await visible(call).find(PROJECTS, all_of(conditions), projection=["name", "path"], sort=[("name", 1)])
    return Scope(ids, below)


def sub_projects(scope: Scope) -> dict[str, Document]:
    """By project id: `{sub_projects: [{id, name}]}`, all projects below it, sorted by name."""
    inside: dict[str, list[Document]] = {id: [] for id in scope.ids}
    for project in scope.below:
        for id in inside.keys() & set(project["path"]):
            inside[id].append({"id": project["id"], "name": project["name"]})
    return {id: {"sub_projects": found} for id, found in inside.items()}


async def stats_of(call: Call, scope: Scope, request: dict[str, Any]) -> dict[str, Document]:
    """By project id: `{stats: {active | archived: {total_tasks, status_count, …}}}`, for the requested state or both.

    If the request is for projects with datasets: `{stats: {datasets: {count, tags}}}`.
    """
    holders = scope.holders(with_children=request["stats_with_children"])
    if request.get("children_type") == _DATASET:
        return await _datasets(call, holders, scope.ids, request)
    state = request.get("stats_for_state")
    narrowed = _narrowed(request)
    counted = {
        name: await _state_stats(call, holders, scope.ids, all_of([STATES[name], narrowed]))
        for name in ([state] if state else STATES)
    }
    return {id: {"stats": {name: stats[id] for name, stats in counted.items()}} for id in scope.ids}


async def own_counts(call: Call, ids: list[str], request: dict[str, Any]) -> dict[str, Document]:
    """By project id: `{own_tasks, own_models}`, how many are directly in it and not archived.

    If the request is for projects with datasets: `{own_datasets}`, how many are directly below it.
    """
    if request.get("children_type") == _DATASET:
        found = await visible(call).count_by(PROJECTS, _datasets_below(ids, request), ["parent"])
        return {id: {"own_datasets": found.get((id,), 0)} for id in ids}
    inside = all_of([{"project": In(ids)}, STATES["active"], _narrowed(request)])
    tasks = await visible(call).count_by(TASKS, inside, ["project"])
    models = await visible(call).count_by("models", inside, ["project"])
    return {id: {"own_tasks": tasks.get((id,), 0), "own_models": models.get((id,), 0)} for id in ids}


async def dataset_stats(call: Call, ids: list[str], request: dict[str, Any]) -> dict[str, Document]:
    """By project id: `{dataset_stats: {file_count, total_size}}` of its newest version, or null if it has none."""
    inside: Filter = {"project": In(ids), "runtime.ds_file_count": Unequal(None)}
    fields = ["project", "runtime.ds_file_count", "runtime.ds_total_size"]
    wanted = all_of([inside, STATES["active"], of_users(request)])
    versions = await visible(call).find(TASKS, wanted, projection=fields, sort=[("created", 1), ("id", 1)])
    newest = {version["project"]: version["runtime"] for version in versions}
    sizes = {
        id: {"file_count": runtime["ds_file_count"], "total_size": runtime.get("ds_total_size")}
        for id, runtime in newest.items()
    }
    return {id: {"dataset_stats": sizes.get(id)} for id in ids}


def _narrowed(request: dict[str, Any]) -> Filter:
    """The condition for the tasks that count: from `include_stats_filter`, or else from `children_type`."""
    if given := request.get("include_stats_filter"):
        filters = {name: given[name] for name in SPEC.lists if isinstance(given.get(name), dict)}
        filters |= given.get("filters") or {}
        wanted = build_filter({**given, **dict.fromkeys(filters), "filters": filters}, SPEC)
    else:
        wanted = counted_tasks(request)
    return all_of([wanted, of_users(request)])


def _datasets_below(parents: Iterable[str], request: dict[str, Any]) -> Filter:
    return all_of([{"parent": In(list(parents))}, DATASETS, children_tags(request), of_users(request)])


async def _datasets(
    call: Call, holders: Mapping[str, list[str]], ids: list[str], request: dict[str, Any]
) -> dict[str, Document]:
    counts: Counter[str] = Counter()
    tags: dict[str, set[str]] = {id: set() for id in ids}
    wanted = _datasets_below(holders, request)
    for dataset in await visible(call).find(PROJECTS, wanted, projection=["parent", "tags"]):
        for holder in holders[dataset["parent"]]:
            counts[holder] += 1
            tags[holder].update(dataset["tags"])
    return {id: {"stats": {"datasets": {"count": counts[id], "tags": sorted(tags[id])}}} for id in ids}


async def _state_stats(
    call: Call, holders: Mapping[str, list[str]], ids: list[str], condition: Filter
) -> dict[str, Document]:
    """By project of the page, the stats of the tasks that meet the condition."""
    inside = all_of([{"project": In(sorted(holders))}, condition])
    day_ago = from_now(-_DAY)
    tasks: Counter[tuple[str, str]] = Counter()
    seconds: Counter[str] = Counter()
    completed: Counter[str] = Counter()
    started: dict[str, str] = {}
    # An index has all of these fields, so one walk through it is enough.
    fields = ["project", "status", "active_duration", "started", "completed"]
    for found, count in (await visible(call).count_by(TASKS, inside, fields)).items():
        project, status, duration, start, end = found
        for holder in holders[project]:
            tasks[holder, status] += count
            seconds[holder] += (duration or 0) * count
            completed[holder] += count if end and end >= day_ago else 0
            started[holder] = max(start or "", started.get(holder, ""))
    return {
        id: {
            "total_tasks": sum(tasks[id, status] for status in STATUSES),
            "status_count": {status: tasks[id, status] for status in STATUSES},
            "completed_tasks_24h": completed[id],
            "total_runtime": seconds[id],
            "last_task_run": started.get(id) or None,
        }
        for id in ids
    }
