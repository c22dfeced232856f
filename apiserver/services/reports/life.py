"""The life of a report: published, archived, deleted."""

from __future__ import annotations

from typing import Any

from apiserver.common.times import utc_now
from apiserver.services.backend import Call, endpoint
from apiserver.services.reports.report_documents import get_report, leave_home
from apiserver.services.tasks.cleanup import delete_task
from apiserver.services.tasks.status import change_status
from apiserver.services.tasks.task_documents import change_task
from apiserver.stores.documents.query import Update


@endpoint("reports.publish", "2.23")
async def publish(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    report = await get_report(call, request["task"])
    # A report never runs, so, unlike other tasks, it is published from status created: by force.
    said = {"force": True, "status_message": request.get("comment", "")}
    return await change_status(call, report["id"], "published", said, values={"published": utc_now()})


@endpoint("reports.archive", "2.23")
async def archive(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await _mark(call, request, Update(add={"system_tags": ["archived"]}))
    return {"archived": 1}


@endpoint("reports.unarchive", "2.23")
async def unarchive(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await _mark(call, request, Update(pull={"system_tags": "archived"}))
    return {"unarchived": 1}


@endpoint("reports.delete", "2.23")
async def delete(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    report = await get_report(call, request["task"])
    asked = {"force": request["force"], "delete_output_models": True, "return_file_urls": False}
    asked["delete_external_artifacts"] = True
    await delete_task(call, report["id"], asked)
    await leave_home(call, report.get("project"))
    return {"deleted": 1}


async def _mark(call: Call, request: dict[str, Any], change: Update) -> None:
    report = await get_report(call, request["task"])
    said = {"status_reason": "", "status_message": request.get("comment", "")}
    await change_task(call, report["id"], change.setting(said))
