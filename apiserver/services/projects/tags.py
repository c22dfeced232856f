"""The tags in use on tasks, models and projects."""

from __future__ import annotations

from typing import Any

from apiserver.common import answers
from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.lists.filters import list_filter
from apiserver.services.projects.tree import PROJECTS, with_descendants
from apiserver.stores.documents.query import Filter, In, all_of

#: By endpoint: the collection, and the field that says in which project a document is.
_COLLECTIONS = {
    "projects.get_task_tags": ("tasks", "project"),
    "projects.get_model_tags": ("models", "project"),
    "projects.get_project_tags": (PROJECTS, "id"),
}


@endpoint("projects.get_task_tags", "1.0")
@endpoint("projects.get_model_tags", "1.0")
@endpoint("projects.get_project_tags", "1.0")
async def get_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """`{tags, system_tags}`, sorted, of the documents in `projects` and below that match the tags of `filter`."""
    collection, place = _COLLECTIONS[call.endpoint]
    conditions: list[Filter] = [
        list_filter(field, value) for field, value in request.get("filter", {}).items() if value
    ]
    if projects := request.get("projects"):
        conditions.append({place: In(await with_descendants(call, projects))})
    chosen, counter = all_of(conditions), answers.counter()
    tags = {"tags": await visible(call).distinct(collection, "tags", chosen, counted=counter)}
    if request["include_system"]:
        tags["system_tags"] = await visible(call).distinct(collection, "system_tags", chosen, counted=counter)
    return tags
