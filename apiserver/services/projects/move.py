"""Moving and merging projects. The names and paths of all projects below are changed, too."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.public import require_private
from apiserver.services.documents.stamps import changed_now
from apiserver.services.projects.names import MAX_DEPTH, cleaned_name
from apiserver.services.projects.tree import (
    PROJECTS,
    changeable,
    checked_name,
    get_project,
    name_in_use,
    place_of,
    too_deep,
    touch_projects,
)
from apiserver.stores.documents.base import DuplicateDocument
from apiserver.stores.documents.query import Document, Filter, Update


@endpoint("projects.move", "1.0")
async def move(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    project = await get_project(call, request["project"])
    location = cleaned_name(request.get("new_location", ""))
    location = checked_name(location, field="new_location") if location else ""
    if location == project["name"].rpartition("/")[0]:
        raise Refusal(
            Why.PROJECT_THERE_ALREADY, f"The project is there already: project={project['id']}, location={location!r}"
        )
    if location == project["name"] or location.startswith(f"{project['name']}/"):
        raise Refusal(Why.PROJECT_UNDER_ITSELF, f"A project cannot be moved under itself: project={project['id']}")
    await changeable(call, project)
    name = _inside(location, project)
    await _check_depth(call, project, name.count("/") + 1)
    moved = await put_at(call, project, name)
    await touch_projects(call, project.get("parent"), (await get_project(call, project["id"])).get("parent"))
    return {"moved": moved}


@endpoint("projects.merge", "1.0")
async def merge(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Move tasks, models and projects below to the destination (or to the top), and delete the emptied project."""
    project = await get_project(call, request["project"])
    target = await _destination(call, project, request.get("destination_project"))
    await changeable(call, project)
    for kind in ("tasks", "models"):
        await require_private(call, kind, {"project": project["id"]})
    await _check_depth(call, project, target["name"].count("/") + 1 if target else 0)
    moved_projects = 0
    for child in await documents(call).find(PROJECTS, {"parent": project["id"]}):
        moved_projects += await put_at(call, child, _inside(target["name"] if target else "", child))
    inside, stamps = {"project": project["id"]}, changed_now(call)
    there = Update(set={**stamps, "project": target["id"]}) if target else Update(set=stamps, unset=["project"])
    moved = [await documents(call).update(kind, inside, there, many=True) for kind in ("tasks", "models")]
    await documents(call).delete(PROJECTS, {"id": project["id"]})
    # Once more, for tasks and models that other calls have put there meanwhile.
    moved += [await documents(call).update(kind, inside, there, many=True) for kind in ("tasks", "models")]
    await touch_projects(call, project.get("parent"), target["id"] if target else None)
    return {"moved_entities": sum(moved), "moved_projects": moved_projects}


async def put_at(call: Call, project: Document, name: str) -> int:
    """Move a project to this full name; a missing parent is made. Returns how many projects moved."""
    place = await place_of(call, name)
    return await relocate(call, project, Update(set=place, unset=() if "parent" in place else ["parent"]))


async def relocate(call: Call, project: Document, update: Update) -> int:
    """Update a project's place, and then those of all projects below it; returns how many changed.

    Raises Refusal(NAME_IN_USE) if the name is in use.
    """
    moved = await _place(call, {"id": project["id"]}, update)
    # Each project is placed by its parent's present place, so that a call which was cut off can be repeated.
    places = {project["id"]: moved or project}
    below = await documents(call).find(PROJECTS, {"path": project["id"]})
    for child in sorted(below, key=lambda child: len(child["path"])):
        parent = places.get(child["parent"])
        if parent is None:
            continue  # another call is moving this project, and places it
        place = {
            "name": f"{parent['name']}/{child['basename']}",
            "path": [*parent["path"], parent["id"]],
            "last_update": utc_now(),
        }
        await _place(call, {"id": child["id"], "parent": parent["id"]}, Update(set=place))
        places[child["id"]] = child | place
    return len(places)


async def _place(call: Call, project: Filter, update: Update) -> Document | None:
    try:
        return await documents(call).find_and_update(PROJECTS, project, update)
    except DuplicateDocument:
        raise name_in_use(update.set["name"]) from None


def _inside(location: str, project: Document) -> str:
    """The name of a project when it is in the project `location`, or at the top if that is empty."""
    return f"{location}/{project['basename']}" if location else str(project["basename"])


async def _check_depth(call: Call, project: Document, depth: int) -> None:
    """Raises Refusal(PROJECT_TOO_DEEP) if those below this one would be too deep with it at `depth` (1 is the top)."""
    below = await documents(call).find(PROJECTS, {"path": project["id"]}, projection=["path"])
    deepest = depth + max((len(child["path"]) - len(project["path"]) for child in below), default=0)
    if deepest > MAX_DEPTH:
        raise too_deep(deepest)


async def _destination(call: Call, project: Document, destination: str | None) -> Document | None:
    if destination is None:
        return None
    target = await get_project(call, destination)
    if target["id"] == project["id"]:
        raise Refusal(Why.PROJECT_THERE_ALREADY, f"A project cannot be merged with itself: project={project['id']}")
    if project["id"] in target["path"]:
        raise Refusal(
            Why.PROJECT_MERGED_BELOW, f"A project cannot be merged into one below it: project={project['id']}"
        )
    return target
