"""organization.*: the caller's company as a whole."""

from __future__ import annotations

from typing import Any

from apiserver.rpc.call import Streamed
from apiserver.rpc.errors import ApiError
from apiserver.services import downloads
from apiserver.services.access.roles import GIVEN
from apiserver.services.backend import Call, documents, endpoint, visible
from apiserver.services.models import read as models
from apiserver.services.models.documents import MODELS
from apiserver.services.project_tree import PROJECTS, with_descendants
from apiserver.services.projects import read as projects
from apiserver.services.projects.children import holding_children
from apiserver.services.queries import QuerySpec, all_of, build_filter, hide_hidden
from apiserver.services.tasks import read as tasks
from apiserver.services.tasks.documents import TASKS
from apiserver.services.usages import project_usages
from apiserver.stores.documents.base import Filter

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
#: The types of those tasks that are a kind of their own.
_TYPES = {"reports": "report", "pipeline_runs": "controller", "dataset_versions": "data_processing"}
_TAGS = QuerySpec(patterns=(), lists=("tags", "system_tags"), times=())


@endpoint("organization.get_tags", "1.0")
async def get_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    chosen = build_filter(request.get("filter") or {}, _TAGS)
    kinds = ("tags", "system_tags") if request["include_system"] else ("tags",)
    answer: dict[str, list[str]] = {}
    for kind in kinds:
        found = {tag for entity in ("tasks", "models") for tag in await visible(call).distinct(entity, kind, chosen)}
        answer[kind] = sorted(found)
    return answer


@endpoint("organization.get_entities_count", "1.0")
async def get_entities_count(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """`{kind: count}` of the kinds that the request has criteria for; `errors` has what is wrong with any of these."""
    counts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for kind in _KINDS:
        if kind in request:
            try:
                counts[kind] = await _count(call, kind, request)
            except ApiError as error:
                if error.code != 400:
                    raise
                errors[kind] = error.message
    return {**counts, "errors": errors} if errors else counts


async def _count(call: Call, kind: str, request: dict[str, Any]) -> int:
    collection, spec = _KINDS[kind]
    criteria = dict(request[kind])
    conditions: list[Filter] = []
    if kind in _TYPES:
        conditions.append({"type": _TYPES[kind]})
    elif kind in ("projects", "tasks") and not request["search_hidden"]:
        conditions.append(hide_hidden(criteria))
    users = request.get("active_users")
    if users and collection == PROJECTS:
        conditions.append({"id": {"$in": await holding_children(call, {"active_users": users}) or []}})
    elif users and not criteria.get("user"):
        criteria["user"] = users
    if criteria.get("project") and (criteria.get("include_subprojects") or kind in _TYPES):
        projects = criteria["project"]
        criteria["project"] = await with_descendants(call, [projects] if isinstance(projects, str) else projects)
    conditions.append(build_filter(criteria, spec))
    found = await visible(call, request).count(collection, all_of(conditions))
    return found if "limit" not in request else min(found, int(request["limit"]))


@endpoint("organization.prepare_download_for_get_all", "2.26")
async def prepare_download_for_get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"prepare_id": await downloads.prepare(call, request)}


@endpoint("organization.download_for_get_all", "2.26")
async def download_for_get_all(call: Call, request: dict[str, Any]) -> Streamed:
    return await downloads.download(call, request["prepare_id"])


@endpoint("organization.get_project_usages", "2.34")
@endpoint("organization.get_project_workloads", "2.34")
async def get_project_usages(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await project_usages(call, request)


@endpoint("organization.get_user_companies", "1.0")
async def get_user_companies(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """The one company, whose users all own it."""
    company = await documents(call).find_one("companies", {"id": call.identity.company}, projection=["name"])
    given: Filter = {"role": {"$in": list(GIVEN)}}
    users = await documents(call).find("users", given, projection=["name", "avatar"], sort=[("name", 1)])
    owners = [{"id": user["id"], "name": user["name"], "avatar": user.get("avatar") or None} for user in users]
    name = company["name"] if company else ""
    return {"companies": [{"id": call.identity.company, "name": name, "allocated": len(owners), "owners": owners}]}
