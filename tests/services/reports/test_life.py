"""reports.publish, archive, unarchive and delete."""

from __future__ import annotations

import pytest

from tests.harness import Api
from tests.services.reports.calls import homes, make, project
from tests.services.tasks.calls import get, refused

pytestmark = pytest.mark.anyio


async def test_a_draft_is_published(api: Api) -> None:
    report = await make(api)

    answer = await api.call("reports.publish", {"task": report, "comment": "done"})

    assert (answer["updated"], answer["fields"]["status"]) == (1, "published")
    task = await get(api, report)
    assert (task["status"], task["status_message"]) == ("published", "done")
    assert task["published"] >= task["created"]


async def test_archived_reports_come_back(api: Api) -> None:
    report = await make(api)
    assert await api.call("reports.archive", {"task": report, "comment": "old"}) == {"archived": 1}
    task = await get(api, report)
    assert (set(task["system_tags"]), task["status_message"]) == ({"hidden", "reports", "archived"}, "old")

    assert await api.call("reports.unarchive", {"task": report}) == {"unarchived": 1}
    assert set((await get(api, report))["system_tags"]) == {"hidden", "reports"}


async def test_published_reports_are_deleted_by_force_or_once_archived(api: Api) -> None:
    first, second = await make(api), await make(api)
    for report in (first, second):
        await api.call("reports.publish", {"task": report})
    assert await refused(api, "reports.delete", {"task": first}) == (400, 123)

    assert await api.call("reports.delete", {"task": first, "force": True}) == {"deleted": 1}
    await api.call("reports.archive", {"task": second})
    assert await api.call("reports.delete", {"task": second}) == {"deleted": 1}
    assert await refused(api, "tasks.get_by_id", {"task": first}) == (400, 101)


async def test_a_home_goes_with_the_last_report_that_is_deleted(api: Api) -> None:
    about = await project(api, "a")
    first, second = await make(api, project=about), await make(api, project=about)

    await api.call("reports.delete", {"task": first})
    assert await homes(api) == ["a/.reports"]
    await api.call("reports.delete", {"task": second})
    assert await homes(api) == []
    assert (await api.call("projects.get_by_id", {"project": about}))["project"]["name"] == "a"


async def test_tasks_calls_reach_reports_too(api: Api) -> None:
    report, other = await make(api, project=await project(api, "a")), await make(api)
    await api.call("tasks.update_tags", {"ids": [report], "add_tags": ["t"]})
    assert (await api.call("reports.get_tags"))["tags"] == ["t"]

    await api.call("tasks.delete", {"task": report, "force": True})
    await api.call("tasks.delete_many", {"ids": [other]})
    assert (await api.call("reports.get_all_ex"))["tasks"] == []
    assert (await api.call("reports.get_tags"))["tags"] == []
    # Only moving and deleting reports tidies up; an empty home is used again.
    home = (await api.call("reports.create", {"name": "r"}))["project_id"]
    assert await homes(api) == [".reports", "a/.reports"]
    assert (await api.call("projects.get_by_id", {"project": home}))["project"]["name"] == ".reports"
