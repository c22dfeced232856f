"""Making, changing and deleting projects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.public import require_private
from apiserver.services.projects.children import REPORTS
from apiserver.services.projects.contents import TASKS_WITHOUT_REPORTS, active, contents_of, delete_models, delete_tasks
from apiserver.services.projects.move import relocate
from apiserver.services.projects.names import cleaned_name
from apiserver.services.projects.tree import (
    PROJECTS,
    changeable,
    checked_name,
    create_project,
    find_or_create,
    get_project,
)
from apiserver.stores.documents.query import Document, Filter, In, Update, all_of

_FIELDS = ("description", "tags", "system_tags", "default_output_destination")


@endpoint("projects.create", "1.0")
async def create(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Raises Refusal(NAME_IN_USE) if a project has this name, written as it is stored.

    A name that is kept otherwise answers the project there is. The SDK looks for the name as it is written, and makes
    the project if it finds none. So it makes it again and again.
    """
    fields = {name: request[name] for name in _FIELDS if name in request}
    make = create_project if request["name"] == cleaned_name(request["name"]) else find_or_create
    return {"id": (await make(call, request["name"], fields))["id"]}


@endpoint("projects.update", "1.0")
async def update(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    project = await get_project(call, request["project"])
    fields = {name: request[name] for name in _FIELDS if name in request}
    if fields:
        fields["last_update"] = utc_now()
        await documents(call).update(PROJECTS, {"id": project["id"]}, Update(set=fields))
    if "name" in request:
        fields |= await _rename(call, project, request["name"])
    return {"updated": int(bool(fields)), "fields": fields}


@endpoint("projects.validate_delete", "1.0")
async def validate_delete(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    project = await get_project(call, request["project"])
    ids = await changeable(call, project)
    contents = await contents_of(call, ids)
    return {
        "tasks": await documents(call).count("tasks", all_of([contents.inside, TASKS_WITHOUT_REPORTS])),
        "non_archived_tasks": await active(call, "tasks", all_of([contents.inside, TASKS_WITHOUT_REPORTS])),
        "models": await documents(call).count("models", contents.inside),
        "non_archived_models": await active(call, "models", contents.inside),
        "reports": await documents(call).count("tasks", all_of([contents.inside, REPORTS])),
        "non_archived_reports": await active(call, "tasks", all_of([contents.inside, REPORTS])),
        "datasets": contents.datasets,
        "pipelines": contents.pipelines,
    }


@endpoint("projects.delete", "1.0")
async def delete(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a project and all below it. Their tasks and models are deleted first, or left without a project."""
    project = await get_project(call, request["project"])
    ids = await changeable(call, project)
    inside: Filter = {"project": In(ids)}
    for collection in ("tasks", "models"):
        await require_private(call, collection, inside)
    if not request["force"]:
        await _check_empty(call, project, ids)
    answer: dict[str, Any] = {"disassociated_tasks": 0, "deleted_tasks": 0, "deleted_models": 0}
    if request["delete_contents"]:
        files = request["delete_external_artifacts"]
        answer |= await delete_tasks(call, inside, files=files)
        answer["deleted_models"] += await delete_models(call, inside, answer["urls"], files=files)
    else:
        answer["disassociated_tasks"] = await _disassociate(call, inside)
    answer["deleted"] = await documents(call).delete(PROJECTS, {"id": In(ids)})
    # Once more, for tasks and models that other calls have put there meanwhile.
    answer["disassociated_tasks"] += await _disassociate(call, inside)
    return answer


async def _disassociate(call: Call, inside: Filter) -> int:
    """Take the matching tasks and models out of their project; returns how many tasks there were."""
    homeless = Update(unset=["project"])
    await documents(call).update("models", inside, homeless, many=True)
    return await documents(call).update("tasks", inside, homeless, many=True)


async def _rename(call: Call, project: Document, name: str) -> Document:
    """Change the last part of a project's name.

    Raises Refusal(PROJECT_NAME_WOULD_MOVE) if another part changes, which would move it.
    """
    name = checked_name(name)
    if name.rpartition("/")[0] != project["name"].rpartition("/")[0]:
        raise Refusal(Why.PROJECT_NAME_WOULD_MOVE, f"Use projects.move to move a project: project={project['id']}")
    await changeable(call, project)
    place = {"name": name, "basename": name.rpartition("/")[2], "last_update": utc_now()}
    await relocate(call, project, Update(set=place))
    return place


async def _check_empty(call: Call, project: Document, ids: Sequence[str]) -> None:
    """Raises Refusal(PROJECT_HAS_…) if there are pipelines, datasets, tasks or models that are not archived."""
    contents = await contents_of(call, ids)
    for why, kind, found in (
        (Why.PROJECT_HAS_PIPELINES, "pipelines", contents.pipelines),
        (Why.PROJECT_HAS_DATASETS, "datasets", contents.datasets),
        (Why.PROJECT_HAS_TASKS, "tasks", await active(call, "tasks", contents.inside)),
        (Why.PROJECT_HAS_MODELS, "models", await active(call, "models", contents.inside)),
    ):
        if found:
            message = f"Project has {kind}, use force to delete it: id={project['id']}, {kind}={found}"
            raise Refusal(why, message)
