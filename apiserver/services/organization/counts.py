"""How many projects, tasks, models … of each kind there are."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.lists.conditions import build_filter, hide_hidden
from apiserver.services.models import read as models
from apiserver.services.models.model_documents import MODELS
from apiserver.services.projects import read as projects
from apiserver.services.projects.children import holding_children
from apiserver.services.projects.tree import PROJECTS, with_subprojects
from apiserver.services.tasks import read as tasks
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.documents.query import Filter, In, all_of

#: By kind of thing that is counted: its collection, and the filters that requests may have.
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
#: The kinds that are tasks of one type, and this type.
_TYPES = {"reports": "report", "pipeline_runs": "controller", "dataset_versions": "data_processing"}


@endpoint("organization.get_entities_count", "1.0")
async def get_entities_count(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """`{kind: count}` for the kinds in the request. `errors` has the messages for kinds with wrong criteria."""
    counts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for kind in _KINDS:
        if kind in request:
            try:
                counts[kind] = await _count(call, kind, request)
            except Refusal as error:
                if error.why is not Why.INVALID:
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
        conditions.append({"id": In(await holding_children(call, {"active_users": users}) or [])})
    elif users and not criteria.get("user"):
        criteria["user"] = users
    if kind in _TYPES:
        criteria["include_subprojects"] = True
    conditions.append(build_filter(await with_subprojects(call, criteria), spec))
    number = await visible(call, request).count(collection, all_of(conditions))
    return number if "limit" not in request else min(number, int(request["limit"]))
