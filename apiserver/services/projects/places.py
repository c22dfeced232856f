"""Moving projects in the tree. What is below a project goes with it: its names and paths follow."""

from __future__ import annotations

from typing import Any

from apiserver.rpc.errors import ApiError
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.project_tree import (
    PROJECTS,
    changeable,
    find_or_create,
    get_project,
    name_in_use,
    place_of,
    touch_projects,
)
from apiserver.services.public import require_private
from apiserver.stores.documents.base import Document, DuplicateDocument, Update
from apiserver.times import utc_now


@endpoint("projects.move", "1.0")
async def move(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    project = await get_project(call, request["project"])
    location = request.get("new_location", "").strip("/ ")
    if location == project["name"].rpartition("/")[0]:
        raise ApiError(400, 410, f"The project is there already: project={project['id']}, location={location!r}")
    if location == project["name"] or location.startswith(f"{project['name']}/"):
        raise ApiError(400, 411, f"A project cannot be moved under itself: project={project['id']}")
    await changeable(call, project)
    name = f"{location}/{project['basename']}" if location else project["basename"]
    return {"moved": await put_at(call, project, name)}


@endpoint("projects.merge", "1.0")
async def merge(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Tasks, models and projects below go to the destination (none: the parent); the emptied project is deleted."""
    project = await get_project(call, request["project"])
    target = await _destination(call, project, request.get("destination_project"))
    await changeable(call, project)
    for kind in ("tasks", "models"):
        await require_private(call, kind, {"project": project["id"]})
    moved_projects = 0
    for child in await documents(call).find(PROJECTS, {"parent": project["id"]}):
        moved_projects += await put_at(call, child, f"{target['name']}/{child['basename']}")
    inside, there = {"project": project["id"]}, {"$set": {"project": target["id"], "last_change": utc_now()}}
    moved = [await documents(call).update(kind, inside, there, many=True) for kind in ("tasks", "models")]
    await documents(call).delete(PROJECTS, {"id": project["id"]})
    await touch_projects(call, target["id"])
    return {"moved_entities": sum(moved), "moved_projects": moved_projects}


async def put_at(call: Call, project: Document, name: str) -> int:
    """Give a project this full name, and so another parent, made if it is missing; returns how many projects moved."""
    place = await place_of(call, name)
    update: Update = {"$set": place} if "parent" in place else {"$set": place, "$unset": {"parent": 1}}
    return await relocate(call, project, update)


async def relocate(call: Call, project: Document, update: Update) -> int:
    """Update a project's own place, and let all below follow; returns how many have changed. 400/801: name in use."""
    try:
        moved = await documents(call).find_and_update(PROJECTS, {"id": project["id"]}, update)
    except DuplicateDocument:
        raise name_in_use(update["$set"]["name"]) from None
    # Each is placed by its parent as it is now, so that a call which was cut off can be made again.
    places = {project["id"]: moved or project}
    below = await documents(call).find(PROJECTS, {"path": project["id"]})
    for child in sorted(below, key=lambda child: len(child["path"])):
        parent = places[child["parent"]]
        place = {
            "name": f"{parent['name']}/{child['basename']}",
            "path": [*parent["path"], parent["id"]],
            "last_update": utc_now(),
        }
        await documents(call).update(PROJECTS, {"id": child["id"]}, {"$set": place})
        places[child["id"]] = child | place
    return len(places)


async def _destination(call: Call, project: Document, destination: str | None) -> Document:
    if destination is None:
        head = project["name"].rpartition("/")[0]
        if not head:
            raise ApiError(400, 410, f"A project at the top has no parent to merge with: project={project['id']}")
        return await find_or_create(call, head)
    target = await get_project(call, destination)
    if target["id"] == project["id"]:
        raise ApiError(400, 410, f"A project cannot be merged with itself: project={project['id']}")
    if project["id"] in target["path"]:
        raise ApiError(400, 412, f"A project cannot be merged into one below it: project={project['id']}")
    return target
