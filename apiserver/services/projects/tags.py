"""The tags in use on tasks, models and projects."""

from __future__ import annotations

from typing import Any

from apiserver import answers
from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.list_filters import list_filter
from apiserver.services.project_tree import PROJECTS, with_descendants
from apiserver.services.queries import all_of
from apiserver.stores.documents.base import Filter


@endpoint("projects.get_task_tags", "1.0")
async def get_task_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _tags(call, "tasks", request, "project")


@endpoint("projects.get_model_tags", "1.0")
async def get_model_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _tags(call, "models", request, "project")


@endpoint("projects.get_project_tags", "1.0")
async def get_project_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _tags(call, PROJECTS, request, "id")


async def _tags(call: Call, collection: str, request: dict[str, Any], place: str) -> dict[str, Any]:
    """`{tags, system_tags}`, sorted, of the documents in `projects` and below that match the tags of `filter`."""
    conditions: list[Filter] = [
        list_filter(field, value) for field, value in request.get("filter", {}).items() if value
    ]
    if projects := request.get("projects"):
        conditions.append({place: {"$in": await with_descendants(call, projects)}})
    chosen, counter = all_of(conditions), answers.counter()
    tags = {"tags": await visible(call).distinct(collection, "tags", chosen, counted=counter)}
    if request["include_system"]:
        tags["system_tags"] = await visible(call).distinct(collection, "system_tags", chosen, counted=counter)
    return tags
