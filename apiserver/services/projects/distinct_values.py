"""The values to choose from in a project: metrics, hyperparameters, metadata, parents, users."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.documents.keys import escape, unescape
from apiserver.services.lists.conditions import pattern_filter
from apiserver.services.lists.references import expand
from apiserver.services.projects.stats import STATES
from apiserver.services.projects.tree import with_descendants
from apiserver.stores.documents.query import Document, Filter, In, all_of


@endpoint("projects.get_unique_metric_variants", "1.0")
async def get_unique_metric_variants(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await call.backend.last_metrics.settle(
        call.identity.company, models=request["model_metrics"], ids=request.get("ids") or None
    )
    chosen = await _inside(call, request, "project")
    if ids := request.get("ids"):
        chosen = all_of([chosen, {"id": In(ids)}])
    found: dict[tuple[str, str], Document] = {}
    for owner in await visible(call).varieties(
        "models" if request["model_metrics"] else "tasks", "last_metrics", chosen
    ):
        for metric_hash, variants in owner.get("last_metrics", {}).items():
            for variant_hash, last in variants.items():
                if "metric" not in last or "variant" not in last:  # imported from a ClearML server that stored no names
                    continue
                name = {"metric": last["metric"], "variant": last["variant"]}
                digest = {"metric_hash": metric_hash, "variant_hash": variant_hash}
                found[last["metric"], last["variant"]] = name | digest
    return {"metrics": [found[key] for key in sorted(found)]}


@endpoint("projects.get_hyper_parameters", "1.0")
async def get_hyper_parameters(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    found: set[tuple[str, str]] = set()
    for task in await visible(call).varieties("tasks", "hyperparams", await _inside(call, request, "project")):
        found |= {(section, name) for section, params in task.get("hyperparams", {}).items() for name in params}
    names = sorted((unescape(section), unescape(name)) for section, name in found)
    return _paged(request, "parameters", [{"section": section, "name": name} for section, name in names])


@endpoint("projects.get_hyperparam_values", "1.0")
async def get_hyperparam_values(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    field = f"hyperparams.{escape(request['section'])}.{escape(request['name'])}.value"
    chosen = await _inside(call, request, "projects")
    if request.get("pattern"):
        chosen = all_of([chosen, pattern_filter(field, request["pattern"], ignore_case=True, source="pattern")])
    return await _values(call, request, "tasks", field, chosen)


@endpoint("projects.get_model_metadata_keys", "1.0")
async def get_model_metadata_keys(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    found: set[str] = set()
    for model in await visible(call).varieties("models", "metadata", await _inside(call, request, "project")):
        found |= model.get("metadata", {}).keys()
    return _paged(request, "keys", sorted(unescape(key) for key in found))


@endpoint("projects.get_model_metadata_values", "1.0")
async def get_model_metadata_values(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    field = f"metadata.{escape(request['key'])}.value"
    return await _values(call, request, "models", field, await _inside(call, request, "projects"))


@endpoint("projects.get_task_parents", "1.0")
async def get_task_parents(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    children = all_of([await _inside(call, request, "projects"), STATES.get(request.get("tasks_state", ""), {})])
    ids = [id for id in await visible(call).distinct("tasks", "parent", children) if id]
    wanted: Filter = {"id": In(ids)}
    if request.get("task_name"):
        name = pattern_filter("name", request["task_name"], ignore_case=True, source="task_name")
        wanted = all_of([wanted, name])
    parents = await visible(call).find("tasks", wanted, projection=["name", "project"], sort=[("name", 1)])
    await expand(visible(call), parents, {"project": "projects"})
    return {"parents": parents}


@endpoint("projects.get_user_names", "1.0")
async def get_user_names(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    collection = "models" if request["entity"] == "model" else "tasks"
    ids = await visible(call).distinct(collection, "user", await _inside(call, request, "projects"))
    users = await visible(call).find("users", {"id": In(ids)}, projection=["name"], sort=[("name", 1)])
    return {"users": users}


async def _inside(call: Call, request: dict[str, Any], field: str) -> Filter:
    """The condition for what is in the projects that `field` of the request names.

    If it names none, that is everything with `include_subprojects`, else what is in no project.
    """
    projects = request.get(field)
    if not projects:
        return {} if request["include_subprojects"] else {"project": None}
    ids = [projects] if isinstance(projects, str) else projects
    return {"project": In(await with_descendants(call, ids) if request["include_subprojects"] else ids)}


async def _values(call: Call, request: dict[str, Any], collection: str, field: str, chosen: Filter) -> dict[str, Any]:
    found = await visible(call, request).distinct(collection, field, chosen)
    values = sorted((value for value in found if value is not None), key=_natural)
    return {"total": len(values), "values": _page(request, values)}


def _natural(value: Any) -> list[tuple[int, str]]:
    """A sort key that compares numbers inside texts by their size: `run 9` comes before `run 10`."""
    parts = re.split("([0-9]+)", str(value))  # every second part is a number
    numbers = [part.lstrip("0") if place % 2 else part for place, part in enumerate(parts)]
    return [(len(part) if place % 2 else 0, part) for place, part in enumerate(numbers)]


def _paged(request: dict[str, Any], name: str, found: Sequence[Any]) -> dict[str, Any]:
    page = _page(request, found)
    behind = request["page"] * request["page_size"] + len(page)
    return {name: page, "total": len(found), "remaining": max(0, len(found) - behind)}


def _page(request: dict[str, Any], found: Sequence[Any]) -> Sequence[Any]:
    start = request["page"] * request["page_size"]
    return found[start : start + request["page_size"]]
