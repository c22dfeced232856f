"""Making, changing and moving reports."""

from __future__ import annotations

from typing import Any

from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.projects.tree import touch_projects
from apiserver.services.reports.report_documents import REPORT, SYSTEM_TAGS, get_report, home_for, leave_home, settled
from apiserver.services.tasks.task_documents import TASKS, change_task, new_task
from apiserver.stores.documents.query import Update

#: The contents of a report, which cannot change once it is published.
_CONTENT = ("report", "report_assets")
_FIELDS = ("name", "tags", "comment", *_CONTENT)


@endpoint("reports.create", "2.24")
async def create(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    home = await home_for(call, request)
    fields = {name: request[name] for name in _FIELDS if name in request}
    place = {"type": REPORT, "system_tags": list(SYSTEM_TAGS), "project": home["id"]}
    report = new_task(call, {"report_assets": []} | fields | place)  # the web UI's editor needs a list
    await documents(call).insert(TASKS, report)
    home = await settled(call, report["id"], home, request)
    return {"id": report["id"], "project_id": home["id"]}


@endpoint("reports.update", "2.24")
async def update(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    report = await get_report(call, request["task"])
    fields = {name: request[name] for name in _FIELDS if name in request}
    if not fields:
        return {"updated": 0, "fields": {}}
    statuses = ("created",) if any(name in fields for name in _CONTENT) else None
    stamps = await change_task(call, report["id"], Update(set=fields), statuses=statuses)
    await touch_projects(call, report.get("project"))
    return {"updated": 1, "fields": fields | stamps}


@endpoint("reports.move", "2.23")
async def move(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    report = await get_report(call, request["task"])
    home = await home_for(call, request)
    if home["id"] != report.get("project"):
        await change_task(call, report["id"], Update(set={"project": home["id"]}))
        home = await settled(call, report["id"], home, request)
        await touch_projects(call, report.get("project"))
        await leave_home(call, report.get("project"))
    return {"project_id": home["id"]}
