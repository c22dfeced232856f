"""The tree of projects. Their names are paths: "a/b/c" is in "a/b", which is in "a".

A project's document has the ids of its ancestors in `path`, the topmost first, and the id of the nearest in `parent`;
both are made from its name. `basename` is the name's last part. Names are unique in a company.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from apiserver.common.errors import Refusal, Why, validation_error
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, documents, visible
from apiserver.services.documents.public import denied, require_private
from apiserver.services.projects.names import MAX_DEPTH, MAX_NAME, cleaned_name
from apiserver.stores.documents.base import DuplicateDocument
from apiserver.stores.documents.query import Document, Filter, In, Update

PROJECTS = "projects"


def checked_name(name: str, *, field: str = "name") -> str:
    """The name of a project in the form that is stored: `team/x` for `/team//x /`.

    Raises Refusal(PROJECT_NAME_INVALID) if it is nothing but slashes, Refusal(INVALID) if it is empty or too long, and
    Refusal(PROJECT_TOO_DEEP) if it has too many parts.
    """
    cleaned = cleaned_name(name)
    if not cleaned and "/" in name:
        raise Refusal(
            Why.PROJECT_NAME_INVALID, f"Invalid project name: there is nothing between '/': name={name[:100]}"
        )
    if not 1 <= len(cleaned) <= MAX_NAME:
        raise validation_error(f"expected 1 to {MAX_NAME} characters", field=field)
    if (depth := cleaned.count("/") + 1) > MAX_DEPTH:
        raise too_deep(depth)
    return cleaned


async def get_project(call: Call, project_id: str) -> Document:
    """The document of a project that the caller may change.

    Raises Refusal(NO_PROJECT) if there is none, Refusal(FORBIDDEN) if it is public.
    """
    project = await documents(call).find_one(PROJECTS, {"id": project_id})
    if project is None:
        raise await denied(call, PROJECTS, project_id)
    return project


async def find_by_name(call: Call, name: str) -> Document | None:
    """The project of this full name that the caller may change, or None.

    Raises Refusal(PROJECT_NAME_PUBLIC) if only a public project has the name.
    """
    if (project := await documents(call).find_one(PROJECTS, {"name": name})) is not None:
        return project
    # This also finds a project of the caller's company that another call has just made.
    found = await visible(call).find_one(PROJECTS, {"name": name})
    if found is not None and found["company"] != call.identity.company:
        raise Refusal(
            Why.PROJECT_NAME_PUBLIC,
            f"A public project has this name, and public projects cannot be changed: name={name}",
        )
    return found


async def create_project(call: Call, name: str, fields: dict[str, Any]) -> Document:
    """Make a project, and its parents if they do not exist. Raises Refusal(NAME_IN_USE) if the name is in use."""
    name = checked_name(name)
    if await find_by_name(call, name) is not None:
        raise name_in_use(name)
    place = await place_of(call, name)
    now = utc_now()
    project = {
        "id": uuid4().hex,
        "description": "",
        "user": call.identity.user,
        "company": call.identity.company,
        "created": now,
        "last_update": now,
        "tags": [],
        "system_tags": [],
        **fields,
        **place,
    }
    try:
        await documents(call).insert(PROJECTS, project)
    except DuplicateDocument:
        raise name_in_use(name) from None
    await touch_projects(call, project.get("parent"))
    return project


async def find_or_create(call: Call, name: str, fields: dict[str, Any] | None = None) -> Document:
    """The project of this name. If there is none, it is made, with its parents."""
    name = checked_name(name)
    project = await find_by_name(call, name)
    if project is not None:
        return project
    try:
        return await create_project(call, name, fields or {})
    except Refusal as error:
        # Another call may have made it meanwhile.
        project = await find_by_name(call, name)
        if project is None:
            raise error
        return project


async def place_of(call: Call, name: str) -> Document:
    """The fields that say where in the tree a project of this name is. Missing parents are made.

    New parents are hidden if a part of their path begins with ".", such as `.datasets`.
    """
    head, _, basename = name.rpartition("/")
    place: Document = {"name": name, "basename": basename, "path": []}
    if not head:
        return place
    hidden = {"system_tags": ["hidden"]} if any(part.startswith(".") for part in head.split("/")) else {}
    parent = await find_or_create(call, head, hidden)
    return {**place, "parent": parent["id"], "path": [*parent.get("path", []), parent["id"]]}


async def with_descendants(call: Call, project_ids: Any) -> list[str]:
    """The given ids, and those of all projects below them that the caller may read.

    Raises Refusal(INVALID) if they are not ids.
    """
    if not isinstance(project_ids, list) or not all(id is None or isinstance(id, str) for id in project_ids):
        raise validation_error("expected ids of projects", field="project")
    ids: list[str] = project_ids
    below = await visible(call).find(PROJECTS, {"path": In(ids)}, projection=["id"])
    return list(dict.fromkeys([*ids, *(project["id"] for project in below)]))


async def with_subprojects(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """The request with all projects below its `project`, if it says `include_subprojects`."""
    projects = request.get("project")
    if not projects or not request.get("include_subprojects"):
        return request
    ids = [projects] if isinstance(projects, str) else projects
    return {**request, "project": await with_descendants(call, ids)}


async def changeable(call: Call, project: Document) -> list[str]:
    """The ids of a project and of all projects below it. Raises Refusal(FORBIDDEN) if some below are public."""
    below: Filter = {"path": project["id"]}
    await require_private(call, PROJECTS, below)
    return [project["id"], *await documents(call).distinct(PROJECTS, "id", below)]


async def touch_projects(call: Call, *project_ids: str | None) -> None:
    """Update when something in the projects last changed. None and unknown ids are ignored."""
    if ids := [project_id for project_id in project_ids if project_id]:
        changed = Update(set={"last_update": utc_now()})
        await documents(call).update(PROJECTS, {"id": In(ids)}, changed, many=True)


def too_deep(depth: int) -> Refusal:
    """The error for a project that would be more than `MAX_DEPTH` levels deep."""
    return Refusal(Why.PROJECT_TOO_DEEP, f"Project path is too deep: at most {MAX_DEPTH} levels, got {depth}")


def name_in_use(name: str) -> Refusal:
    """The error for a name that another project of the company has."""
    return Refusal(
        Why.NAME_IN_USE, f"Value combination already exists (unique field already contains this value): name={name}"
    )
