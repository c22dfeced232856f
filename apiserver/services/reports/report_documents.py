"""How reports are stored: as hidden tasks of type `report`, in hidden projects called `.reports`.

Such a project is the home of the reports of the project above it. Another one, at the top, is for reports without a
project. A home is made when it is needed, and deleted when its last report leaves it.
"""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import invalid_id, unavailable
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, documents
from apiserver.services.projects.tree import PROJECTS, checked_name, find_or_create, get_project
from apiserver.services.tasks.task_documents import ATTEMPTS, TASKS, change_task
from apiserver.stores.documents.query import AnyOf, Document, In, Update

#: The type of the tasks that are reports.
REPORT = "report"
#: The system tags of reports and their homes.
SYSTEM_TAGS = ("hidden", "reports")
_HOME = ".reports"


async def get_report(call: Call, report_id: str) -> Document:
    """The `{id, project}` of a report. Raises Refusal(NO_TASK) if there is none."""
    report = await documents(call).find_one(TASKS, {"id": report_id, "type": REPORT}, projection=["project"])
    if report is None:
        raise invalid_id("task", report_id)
    return report


async def home_for(call: Call, request: dict[str, Any]) -> Document:
    """The home below the project that `project` (an id) or `project_name` of a request names, else the one at the top.

    The home, and a project with an unknown name, are made. Raises Refusal(NO_PROJECT) for an unknown id.
    """
    if project := request.get("project"):
        name = (await get_project(call, project))["name"]
    else:
        given = request.get("project_name", "").strip()
        name = checked_name(given, field="project_name") if given else ""
    parts = name.split("/") if name else []
    if not parts or parts[-1] != _HOME:
        parts.append(_HOME)
    return await find_or_create(call, "/".join(parts), {"system_tags": list(SYSTEM_TAGS)})


async def homes_below(call: Call, project_ids: list[str]) -> dict[str | None, str]:
    """By project, the id of the home directly below it; by None, the id of the home at the top."""
    below = {"basename": _HOME, "parent": In(project_ids)}
    found = await documents(call).find(PROJECTS, AnyOf([below, {"name": _HOME}]), projection=["parent"])
    return {home.get("parent"): home["id"] for home in found}


async def settled(call: Call, report_id: str, home: Document, request: dict[str, Any]) -> Document:
    """Make sure that `home`, into which a report was just put, still exists; returns it.

    If another call deleted it at the same time, the report moves to a new home, which is returned.
    """
    for _ in range(ATTEMPTS):
        # `leave_home` deletes a home only if it has not changed since it was found empty. So it is changed here.
        if await documents(call).update(PROJECTS, {"id": home["id"]}, Update(set={"last_update": utc_now()})):
            return home
        home = await home_for(call, request)
        await change_task(call, report_id, Update(set={"project": home["id"]}))
    raise unavailable(f"report {report_id} is being changed by too many calls at once", retry_after=1)


async def leave_home(call: Call, project_id: str | None) -> None:
    """Delete a home if it is empty. Other projects stay."""
    wanted = {"id": project_id, "basename": _HOME}
    home = await documents(call).find_one(PROJECTS, wanted, projection=["last_update"])
    if home is None:
        return
    for collection, field in ((TASKS, "project"), ("models", "project"), (PROJECTS, "parent")):
        if await documents(call).find_one(collection, {field: project_id}, projection=["id"]):
            return
    await documents(call).delete(PROJECTS, {"id": project_id, "last_update": home["last_update"]})
