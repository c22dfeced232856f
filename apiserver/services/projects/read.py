"""Finding projects, and counting what is in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.documents.public import read_one
from apiserver.services.lists.conditions import QuerySpec, exact_literal, hide_hidden
from apiserver.services.lists.fields import Fields, fields_of
from apiserver.services.lists.filters import list_filter
from apiserver.services.lists.queries import list_query
from apiserver.services.lists.references import expand
from apiserver.services.lists.scrolls import scroll_answer, scrolled_page
from apiserver.services.projects.children import holding_children
from apiserver.services.projects.names import cleaned_name
from apiserver.services.projects.stats import dataset_stats, own_counts, scope_of, stats_of, sub_projects
from apiserver.services.projects.tree import PROJECTS
from apiserver.stores.documents.query import Document, Filter, In

SPEC = QuerySpec(
    patterns=("name", "basename", "description"),
    lists=("id", "user", "tags", "system_tags"),
    text=("id", "name", "description"),
)
REFERENCES = {"user": "users", "company": "companies", "parent": PROJECTS}
#: Fields that are not stored, but computed if they are asked for.
_DERIVED = ("stats", "sub_projects", "own_tasks", "own_models", "own_datasets", "dataset_stats", "hidden")


@endpoint("projects.get_by_id", "1.0")
async def get_by_id(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"project": await read_one(call, PROJECTS, request["project"])}


@endpoint("projects.get_all", "1.0")
async def get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _find(call, request, fields_of(request), {})


@endpoint("projects.get_all_ex", "1.0")
async def get_all_ex(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if request["non_public"]:
        request = {**request, "allow_public": False}
    selected = await holding_children(call, request)
    fields = _without_derived(fields_of(request, REFERENCES))
    answer = await _find(call, request, fields, {} if selected is None else {"id": In(selected)})
    projects: list[Document] = answer["projects"]
    ids = [project["id"] for project in projects]
    await expand(visible(call), projects, REFERENCES, fields.answered or ())
    if request["include_stats"]:
        scope = await scope_of(call, projects, request, selected)
        _join(projects, await stats_of(call, scope, request))
        _join(projects, sub_projects(scope))
    if request["include_dataset_stats"]:
        _join(projects, await dataset_stats(call, ids, request))
    if request["check_own_contents"]:
        _join(projects, await own_counts(call, ids, request))
    if request["search_hidden"]:
        hidden = await visible(call).distinct(PROJECTS, "id", {"id": In(ids), "system_tags": "hidden"})
        _join(projects, {id: {"hidden": True} for id in hidden})
    return answer


async def _find(call: Call, request: dict[str, Any], fields: Fields, selected: Filter) -> dict[str, Any]:
    named = _name_filter(request)
    conditions = [hide_hidden(request), named, _place_filter(request), selected]
    page = await scrolled_page(call, request)
    query = list_query({**request, "name": None} if named else request, SPEC, fields, page, *conditions)
    projects = await visible(call, request).search(PROJECTS, query)
    fields.leave_out(projects)
    return {"projects": projects, **scroll_answer(call, page, len(projects))}


def _name_filter(request: dict[str, Any]) -> Filter:
    """The condition of a pattern that spells a name otherwise than it is kept (`^/team/x$`); `{}` for other patterns.

    So clients find the project that they made under this name.
    """
    name = exact_literal(request.get("name") or "")
    return {} if name is None or name == cleaned_name(name) else {"name": In([name, cleaned_name(name)])}


def _place_filter(request: dict[str, Any]) -> Filter:
    """The condition for projects below `parent`; with `shallow_search` for its children, or those at the top."""
    parent = request.get("parent")
    if parent and not request["shallow_search"]:
        return list_filter("path", parent)
    if parent:
        return list_filter("parent", parent)
    # A request with ids finds these projects wherever they are.
    return {"parent": None} if request["shallow_search"] and not request.get("id") else {}


def _without_derived(fields: Fields) -> Fields:
    """The fields, of which only stored ones are read. There is always one, as none would mean all fields."""
    if fields.read is None:
        return fields
    return replace(fields, read=[field for field in fields.read if field.split(".")[0] not in _DERIVED] or ["id"])


def _join(projects: list[Document], parts: dict[str, Document]) -> None:
    for project in projects:
        project.update(parts.get(project["id"], {}))
