"""Finding reports. They are found as tasks are, among those of their type."""

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
    """The list of `project`, each id and null in it replaced by the home there; what has no home stays as it is."""
    given = request["project"] if isinstance(request["project"], list) else [request["project"]]
    ids = [value.removeprefix("-") for value in given if isinstance(value, str)]
    homes = await homes_below(call, ids)
    if request["include_subprojects"]:
        # Homes are among the projects below; only that at the top is below none.
        homes = {parent: home for parent, home in homes.items() if parent is None}
    return [_place(value, homes) for value in given]


def _place(value: Any, homes: dict[str | None, str]) -> Any:
    if isinstance(value, str):
        sign = "-" if value.startswith("-") else ""
        id = value.removeprefix("-")
        return sign + homes.get(id, id)
    return homes.get(None) if value is None else value
