"""reports.create, update and move."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.services.backend import Call, documents
from apiserver.services.projects.tree import PROJECTS
from apiserver.services.reports import edit
from apiserver.services.reports import report_documents as stored
from apiserver.stores.documents.query import Document
from tests.harness import Api
from tests.services.reports.calls import homes, make, project
from tests.services.tasks.calls import get, refused
from tests.services.tasks.calls import make as make_task

pytestmark = pytest.mark.anyio


async def test_a_report_is_a_hidden_task_in_a_hidden_project(api: Api) -> None:
    made = await api.call("reports.create", {"name": "r", "comment": "c", "tags": ["t"], "report": "# Text"})

    task = await get(api, made["id"])
    assert (task["type"], task["status"], task["project"]) == ("report", "created", made["project_id"])
    assert (task["name"], task["comment"], task["tags"], task["report"]) == ("r", "c", ["t"], "# Text")
    assert task["report_assets"] == []
    home = (await api.call("projects.get_by_id", {"project": made["project_id"]}))["project"]
    assert home["name"] == ".reports"
    assert set(task["system_tags"]) == set(home["system_tags"]) == {"hidden", "reports"}
    assert (await api.call("projects.get_all_ex"))["projects"] == []
    assert (await api.call("tasks.get_all_ex"))["tasks"] == []


async def test_reports_of_a_project_share_a_home_below_it(api: Api) -> None:
    about = await project(api, "a/b")
    first = await api.call("reports.create", {"name": "1", "project": about})
    home = first["project_id"]

    assert (await api.call("reports.create", {"name": "2", "project": about}))["project_id"] == home
    assert (await api.call("reports.create", {"name": "3", "project": home}))["project_id"] == home
    assert await homes(api) == ["a/b/.reports"]
    assert await refused(api, "reports.create", {"name": "4", "project": "no such"}) == (400, 401)


async def test_of_a_published_report_only_what_it_is_called_changes(api: Api) -> None:
    report = await make(api, report="draft")
    answer = await api.call("reports.update", {"task": report, "report": "text", "report_assets": ["file:///a.png"]})
    assert answer["updated"] == 1
    await api.call("reports.publish", {"task": report})

    assert await refused(api, "reports.update", {"task": report, "report": "other", "name": "n"}) == (400, 110)
    assert await refused(api, "reports.update", {"task": report, "report_assets": []}) == (400, 110)
    answer = await api.call("reports.update", {"task": report, "name": "n", "tags": ["t"], "comment": "c"})
    assert answer["fields"]["name"] == "n"
    task = await get(api, report)
    assert (task["name"], task["tags"], task["comment"], task["report"]) == ("n", ["t"], "c", "text")
    assert task["report_assets"] == ["file:///a.png"]


async def test_an_update_of_nothing_changes_nothing(api: Api) -> None:
    assert await api.call("reports.update", {"task": await make(api)}) == {"updated": 0, "fields": {}}


async def test_a_home_goes_with_the_last_report_that_is_moved(api: Api) -> None:
    first, second = await make(api), await make(api)
    there = (await api.call("reports.move", {"task": first, "project_name": "a/new"}))["project_id"]
    assert await homes(api) == [".reports", "a/new/.reports"]

    assert (await api.call("reports.move", {"task": second, "project": there}))["project_id"] == there
    assert await homes(api) == ["a/new/.reports"]
    assert (await get(api, first))["project"] == (await get(api, second))["project"] == there
    assert [p["name"] for p in (await api.call("projects.get_all"))["projects"]] == ["a", "a/new"]


async def test_reports_move_to_the_top_and_stay_where_they_are(api: Api) -> None:
    report = await make(api, project=await project(api, "a"))
    for _ in range(2):
        home = (await api.call("reports.move", {"task": report, "project": None}))["project_id"]
        assert (await get(api, report))["project"] == home
        assert await homes(api) == [".reports"]


async def test_a_home_that_holds_something_else_stays(api: Api) -> None:
    made = await api.call("reports.create", {"name": "r"})
    task = await make_task(api, project=made["project_id"])
    await api.call("reports.move", {"task": made["id"], "project_name": "a"})

    assert await homes(api) == [".reports", "a/.reports"]
    assert (await get(api, task))["project"] == made["project_id"]


@pytest.mark.test
async def test_no_report_loses_its_home_to_one_that_leaves(api: Api) -> None:
    about = await project(api, "a")
    for _ in range(10):
        leaving, deleted = await make(api, project=about), await make(api, project=about)
        made = await asyncio.gather(
            api.call("reports.move", {"task": leaving, "project": None}),
            api.call("reports.delete", {"task": deleted}),
            *(api.call("reports.create", {"name": "r", "project": about}) for _ in range(3)),
        )
        for report in made[2:]:
            home = (await get(api, report["id"]))["project"]
            assert home == report["project_id"]
            assert (await api.call("projects.get_by_id", {"project": home}))["project"]["name"] == "a/.reports"
            await api.call("reports.delete", {"task": report["id"]})
        assert await homes(api) == [".reports"]


@pytest.mark.own_api
async def test_a_home_that_goes_while_a_report_comes_is_made_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    find = stored.home_for

    async def find_just_before_it_goes(call: Call, request: dict[str, Any]) -> Document:
        home = await find(call, request)
        await documents(call).delete(PROJECTS, {"id": home["id"]})
        return home

    monkeypatch.setattr(edit, "home_for", find_just_before_it_goes)
    made = await api.call("reports.create", {"name": "r"})
    moved = (await api.call("reports.move", {"task": made["id"], "project_name": "a"}))["project_id"]

    assert (await get(api, made["id"]))["project"] == moved
    assert (await api.call("projects.get_by_id", {"project": moved}))["project"]["name"] == "a/.reports"
    assert await homes(api) == ["a/.reports"]


async def test_names_of_projects_are_taken_as_they_are_kept(api: Api) -> None:
    report = await make(api)
    await api.call("reports.move", {"task": report, "project_name": "/a//b/"})
    assert await homes(api) == ["a/b/.reports"]
    await api.call("reports.move", {"task": report, "project_name": "a/ /.reports/"})
    assert await homes(api) == ["a/.reports"]
    assert await refused(api, "reports.move", {"task": report, "project_name": "//"}) == (400, 407)


@pytest.mark.parametrize("action", ["update", "move", "publish", "archive", "unarchive", "delete"])
async def test_other_tasks_are_no_reports(api: Api, action: str) -> None:
    task = await make_task(api)
    assert await refused(api, f"reports.{action}", {"task": task, "name": "n", "force": True}) == (400, 101)
    assert (await get(api, task))["name"] == "a task"
