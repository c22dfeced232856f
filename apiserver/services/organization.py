"""organization.*: the caller's company as a whole."""

from __future__ import annotations

from typing import Any

from apiserver.services.backend import Call, documents, endpoint, visible
from apiserver.services.models import read as models
from apiserver.services.models.documents import MODELS
from apiserver.services.project_tree import PROJECTS
from apiserver.services.projects import read as projects
from apiserver.services.projects.children import holding_children
from apiserver.services.queries import QuerySpec, all_of, build_filter, hide_hidden
from apiserver.services.tasks import read as tasks
from apiserver.services.tasks.documents import TASKS
from apiserver.services.usages import project_usages

#: What is counted: where it is, and how it is found there.
_KINDS = {
    "projects": (PROJECTS, projects.SPEC),
    "datasets": (PROJECTS, projects.SPEC),
    "pipelines": (PROJECTS, projects.SPEC),
    "tasks": (TASKS, tasks.SPEC),
    "dataset_versions": (TASKS, tasks.SPEC),
    "pipeline_runs": (TASKS, tasks.SPEC),
    "reports": (TASKS, tasks.SPEC),
    "models": (MODELS, models.SPEC),
}
_TAGS = QuerySpec(patterns=(), lists=("tags", "system_tags"), times=())


@endpoint("organization.get_tags", "1.0")
async def get_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    chosen = build_filter(request.get("filter") or {}, _TAGS)
    kinds = ("tags", "system_tags") if request["include_system"] else ("tags",)
    answer: dict[str, list[str]] = {}
    for kind in kinds:
        found = {tag for entity in ("tasks", "models") for tag in await documents(call).distinct(entity, kind, chosen)}
        answer[kind] = sorted(found)
    return answer


@endpoint("organization.get_entities_count", "1.0")
async def get_entities_count(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """`{kind: count}` of the kinds that the request has criteria for."""
    return {kind: await _count(call, kind, request) for kind in _KINDS if kind in request}


async def _count(call: Call, kind: str, request: dict[str, Any]) -> int:
    collection, spec = _KINDS[kind]
    criteria = {"search_hidden": request["search_hidden"], **request[kind]}
    conditions = [build_filter(criteria, spec)]
    if kind == "reports":
        conditions.append({"type": "report"})
    else:
        conditions.append(hide_hidden(criteria))
    if collection == PROJECTS:
        selected = await holding_children(call, {"active_users": request.get("active_users")})
        conditions.append({} if selected is None else {"id": {"$in": selected}})
    found = await visible(call, request).count(collection, all_of(conditions))
    return found if "limit" not in request else min(found, int(request["limit"]))


@endpoint("organization.get_project_usages", "2.34")
async def get_project_usages(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await project_usages(call, request)


@endpoint("organization.get_user_companies", "1.0")
async def get_user_companies(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """The one company, whose users all own it. They have no pictures."""
    company = await documents(call).find_one("companies", {"id": call.identity.company}, projection=["name"])
    users = await documents(call).find("users", {}, projection=["name"], sort=[("name", 1)])
    owners = [{"id": user["id"], "name": user["name"], "avatar": None} for user in users]
    name = company["name"] if company else ""
    return {"companies": [{"id": call.identity.company, "name": name, "allocated": len(owners), "owners": owners}]}
