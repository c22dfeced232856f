"""Finding projects by what is in them: datasets, pipelines or reports, or anything that certain users made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.services.backend import Call, visible
from apiserver.services.lists.filters import include_exclude_filter, list_filter
from apiserver.services.projects.tree import PROJECTS
from apiserver.stores.documents.query import Filter, In, Unequal, all_of

#: The tasks that are reports.
REPORTS: Filter = {"system_tags": "reports"}
#: By kind of children: their collection, and the condition that finds them there. The hidden projects that hold them
#: (`.datasets`, `.pipelines`) have the same tag, but are not children.
_KINDS: dict[str, tuple[str, Filter]] = {
    "dataset": (PROJECTS, {"system_tags": "dataset", "basename": Unequal(".datasets")}),
    "pipeline": (PROJECTS, {"system_tags": "pipeline", "basename": Unequal(".pipelines")}),
    "report": ("tasks", REPORTS),
}
#: By kind of children, the tasks that the projects' stats count. Datasets are counted as projects.
_TASKS: dict[str, Filter] = {
    "pipeline": {"system_tags": "pipeline", "type": "controller"},
    "report": {"system_tags": "reports", "type": "report"},
}
DATASETS, PIPELINES = _KINDS["dataset"][1], _KINDS["pipeline"][1]


async def holding_children(call: Call, request: dict[str, Any]) -> list[str] | None:
    """The ids of projects that have in them, or below, what `children_type` and `active_users` of a request ask for.

    None if the request has neither. A dataset or a pipeline is itself a project, and is among the answer.
    """
    users, kind = of_users(request), request.get("children_type")
    if kind:
        collection, known = _KINDS[kind]
        found = [(collection, all_of([known, users, children_tags(request)]))]
    elif users:
        found = [(collection, users) for collection in (PROJECTS, "tasks", "models")]
    else:
        return None
    holders: set[str] = set()
    for collection, wanted in found:
        field = "id" if collection == PROJECTS else "project"
        holders.update(id for id in await visible(call, request).distinct(collection, field, wanted) if id)
    return await _with_ancestors(call, sorted(holders))


def of_users(request: dict[str, Any]) -> Filter:
    """The condition for what the `active_users` of a request made; `{}` if there are none."""
    users = request.get("active_users")
    return {"user": In(users)} if users else {}


def children_tags(request: dict[str, Any]) -> Filter:
    """The condition on the tags of children, from `children_tags_filter`, or else `children_tags`."""
    if wanted := request.get("children_tags_filter"):
        return include_exclude_filter({"tags": wanted}, ("tags",))
    return list_filter("tags", request["children_tags"]) if request.get("children_tags") else {}


def counted_tasks(request: dict[str, Any]) -> Filter:
    """The condition for the tasks that stats count if a request has a `children_type`."""
    kind = request.get("children_type")
    return all_of([_TASKS.get(kind, {}), children_tags(request)]) if kind else {}


async def _with_ancestors(call: Call, ids: Sequence[str]) -> list[str]:
    found = await visible(call).find(PROJECTS, {"id": In(ids)}, projection=["path"]) if ids else []
    return sorted({id for project in found for id in [project["id"], *project["path"]]})
