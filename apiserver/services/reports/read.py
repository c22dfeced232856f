"""Finding reports: they are tasks of type report."""

from __future__ import annotations

from typing import Any

from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.reports.report_documents import REPORT, homes_below
from apiserver.services.tasks import read
from apiserver.services.tasks.task_documents import TASKS


@endpoint("reports.get_all_ex", "2.27")
async def get_all_ex(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    wanted = {**request, "type": [REPORT], "search_hidden": True}
    if request.get("project"):
        wanted["project"] = await _places(call, request)
    return await read.get_all_ex(call, wanted)


@endpoint("reports.get_tags", "2.23")
async def get_tags(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"tags": await visible(call).distinct(TASKS, "tags", {"type": REPORT})}


async def _places(call: Call, request: dict[str, Any]) -> list[Any]:
    """The request's `project` as a list in which each id, and null, is replaced by the home there, if there is one."""
    given = request["project"] if isinstance(request["project"], list) else [request["project"]]
    ids = [value.removeprefix("-") for value in given if isinstance(value, str)]
    homes = await homes_below(call, ids)
    if request["include_subprojects"]:
        # The tasks' list finds homes below the named projects by itself, but not the one at the top.
        homes = {parent: home for parent, home in homes.items() if parent is None}
    return [_place(value, homes) for value in given]


def _place(value: Any, homes: dict[str | None, str]) -> Any:
    if isinstance(value, str):
        sign = "-" if value.startswith("-") else ""
        id = value.removeprefix("-")
        return sign + homes.get(id, id)
    return homes.get(None) if value is None else value
