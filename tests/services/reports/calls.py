"""Short calls that the tests of reports are written with."""

from __future__ import annotations

from typing import Any

from tests.harness import Api


async def make(api: Api, **fields: Any) -> str:
    """A new report; its id."""
    created: str = (await api.call("reports.create", {"name": "a report", **fields}))["id"]
    return created


async def project(api: Api, name: str) -> str:
    """A new project; its id."""
    created: str = (await api.call("projects.create", {"name": name}))["id"]
    return created


async def found(api: Api, **request: Any) -> list[str]:
    """The names of the reports that get_all_ex finds."""
    return [report["name"] for report in (await api.call("reports.get_all_ex", request))["tasks"]]


async def homes(api: Api) -> list[str]:
    """The names of all projects `.reports`."""
    request = {"basename": r"^\.reports$", "search_hidden": True, "order_by": ["name"]}
    return [project["name"] for project in (await api.call("projects.get_all", request))["projects"]]
