"""The tree of projects, which their names spell: "a/b/c" is in "a/b", which is in "a".

A project holds the ids of its ancestors in `path`, the topmost first, and of the nearest one in `parent`; both follow
its name. `basename` is the name's last part. Names are unique in a company.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from apiserver.rpc.errors import ApiError, invalid_id, validation_error
from apiserver.services.backend import Call, documents, visible
from apiserver.services.public import denied, require_private
from apiserver.stores.documents.base import Document, DuplicateDocument, Filter
from apiserver.times import utc_now

PROJECTS = "projects"
MAX_DEPTH = 10
MAX_NAME = 1024


def checked_name(name: str, *, field: str = "name") -> str:
    """`name` without blanks around its parts; 400/407 when all are empty, 400/12 when some are, 409 for too many."""
    parts = [part.strip() for part in name.strip().split("/")]
    if len(parts) > 1 and not any(parts):
        raise ApiError(400, 407, f"Invalid project name: there is nothing between '/': name={name[:100]}")
    if not all(parts) or len(name) > MAX_NAME:
        raise validation_error(f"expected 1 to {MAX_NAME} characters, and no empty part between '/'", field=field)
    if len(parts) > MAX_DEPTH:
        raise too_deep(len(parts))
    return "/".join(parts)


async def get_project(call: Call, project_id: str) -> Document:
    """The document of a project that the caller may change; 400/401, or 403/21 for a public one."""
    project = await documents(call).find_one(PROJECTS, {"id": project_id})
    if project is None:
        raise await denied(call, PROJECTS, project_id)
    return project


async def read_project(call: Call, project_id: str) -> Document:
    """The document of a project that the caller may read, or 400/401."""
    project = await visible(call).find_one(PROJECTS, {"id": project_id})
    if project is None:
        raise invalid_id("project", project_id)
    return project


async def find_by_name(call: Call, name: str) -> Document | None:
    """The project of this full name that the caller may change; 400/414 when there is none but a public one."""
    if (project := await documents(call).find_one(PROJECTS, {"name": name})) is not None:
        return project
    # One of the caller's own, made since by another call, is visible as well.
    found = await visible(call).find_one(PROJECTS, {"name": name})
    if found is not None and found["company"] != call.identity.company:
        raise ApiError(400, 414, f"There is a public project of that name, and nothing is put into it: name={name}")
    return found


async def create_project(call: Call, name: str, fields: dict[str, Any]) -> Document:
    """A new project and the parents that it lacks; 400/801 when there is one of that name."""
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
    """The project of this name, made with its parents when there is none."""
    name = checked_name(name)
    project = await find_by_name(call, name)
    if project is not None:
        return project
    try:
        return await create_project(call, name, fields or {})
    except ApiError as error:
        # Another call has made it since we looked.
        project = await find_by_name(call, name)
        if project is None:
            raise error
        return project


async def place_of(call: Call, name: str) -> Document:
    """The fields that say where in the tree a project of this name is; makes the parents that are missing.

    Parents of hidden places (parts that start with ".") are hidden, as what is in them.
    """
    head, _, basename = name.rpartition("/")
    place: Document = {"name": name, "basename": basename, "path": []}
    if not head:
        return place
    hidden = {"system_tags": ["hidden"]} if any(part.startswith(".") for part in head.split("/")) else {}
    parent = await find_or_create(call, head, hidden)
    return {**place, "parent": parent["id"], "path": [*parent.get("path", []), parent["id"]]}


async def with_descendants(call: Call, project_ids: Any) -> list[str]:
    """The ids given and those of all projects below them that the caller may read; 400/12 unless these are ids."""
    if not isinstance(project_ids, list) or not all(id is None or isinstance(id, str) for id in project_ids):
        raise validation_error("expected ids of projects", field="project")
    ids: list[str] = project_ids
    below = await visible(call).find(PROJECTS, {"path": {"$in": ids}}, projection=["id"])
    return list(dict.fromkeys([*ids, *(project["id"] for project in below)]))


async def changeable(call: Call, project: Document) -> list[str]:
    """The ids of a project and of all below it; 403/21 when some of these are public."""
    below: Filter = {"path": project["id"]}
    await require_private(call, PROJECTS, below)
    return [project["id"], *await documents(call).distinct(PROJECTS, "id", below)]


async def touch_projects(call: Call, *project_ids: str | None) -> None:
    """Mark that something in the projects has changed; None and unknown ids are passed over."""
    if ids := [project_id for project_id in project_ids if project_id]:
        changed = {"$set": {"last_update": utc_now()}}
        await documents(call).update(PROJECTS, {"id": {"$in": ids}}, changed, many=True)


def too_deep(depth: int) -> ApiError:
    """A project would be in too many others."""
    return ApiError(400, 409, f"Project path is too deep: at most {MAX_DEPTH} levels, got {depth}")


def name_in_use(name: str) -> ApiError:
    """Another project of the company has the name."""
    return ApiError(
        400, 801, f"Value combination already exists (unique field already contains this value): name={name}"
    )
