"""organization.get_project_usages, against adding up seconds task by task."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from apiserver.stores.documents.query import Update
from tests.harness import Api

pytestmark = pytest.mark.anyio

ZONE = timezone(timedelta(hours=5, minutes=30))
FIRST = datetime(2026, 3, 2, tzinfo=ZONE)
DAYS = 4
DAY = 86400


def text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def at(seconds: float) -> datetime:
    """So long after the first day began."""
    return FIRST + timedelta(seconds=seconds)


async def project(api: Api, name: str) -> str:
    made: str = (await api.call("projects.create", {"name": name, "description": ""}))["id"]
    return made


async def queue(api: Api, name: str, **resources: float) -> str:
    made: str = (await api.call("queues.create", {"name": name}))["id"]
    if resources:
        await api.call("workers.register", {"worker": name, "queues": [made], "resources": resources})
    return made


async def ran(api: Api, project: str, begin: float, end: float, queue: str | None = None, **fields: Any) -> str:
    """Have a task ran in this project, from and to so many seconds after the first day began."""
    task: str = (await api.call("tasks.create", {"name": "t", "type": "training", "project": project}))["id"]
    known = {"status": "completed", "started": text(at(begin)), "completed": text(at(end)), "execution.queue": queue}
    await api.backend.documents.update("tasks", {"id": task}, Update(set={**known, **fields}))
    return task


async def usages(api: Api, *projects: str, **request: Any) -> dict[str, Any]:
    dates = {"from_date": at(3600).isoformat(), "to_date": at(DAY * (DAYS - 1)).isoformat()}
    return await api.call("organization.get_project_usages", {"projects": projects, **dates, **request})


def daily(answer: dict[str, Any], field: str = "duration") -> dict[str | None, list[float]]:
    """The values of each day, by name; the totals are their sums."""
    for total, series in zip(answer["total"], answer["series"], strict=True):
        assert (total["id"], total["name"]) == (series["id"], series["name"])
        assert total[field] == pytest.approx(sum(series[field]))
        assert series["dates"] == [int(FIRST.timestamp()) + DAY * n for n in range(DAYS)]
    return {series["name"]: series[field] for series in answer["series"]}


async def test_a_task_counts_for_the_days_on_which_it_ran(api: Api) -> None:
    used = await project(api, "p")
    cards = await queue(api, "cards", gpu_usage=2)
    await ran(api, used, -500, 100, cards)  # of the day before, too
    await ran(api, used, DAY - 60, DAY * 2 + 7, cards)
    await ran(api, used, DAY * 3 + 10, DAY * 9, cards)
    await ran(api, used, -500, -100, cards)
    await ran(api, used, DAY * DAYS, DAY * 5, cards)

    answer = await usages(api, used, usage_fields=["duration", "cpu_usage", "gpu_usage"])
    expected = [160, DAY, 7, DAY - 10]
    for by, name in (("projects", "p"), ("users", "admin"), ("queues", "cards")):
        assert daily(answer[by]) == {name: expected}
        assert daily(answer[by], "cpu_usage") == {name: expected}
        assert daily(answer[by], "gpu_usage") == {name: [2 * value for value in expected]}
        [total] = answer[by]["total"]
        assert total["cpu_artificial_weights"] is True
        assert "gpu_artificial_weights" not in total


@pytest.mark.test
async def test_usages_are_those_of_all_tasks(api: Api) -> None:
    chance = random.Random(3)
    root = await project(api, "root")
    names = ("root", "root/a", "root/a/b", "root/c", "other")
    projects = {name: root if name == "root" else await project(api, name) for name in names}
    queues: dict[str | None, str | None] = {"x": await queue(api, "x", gpu_usage=0.5), "y": await queue(api, "y")}
    queues |= {"other": "gone", None: None}
    by_project: dict[str | None, list[float]] = {}
    by_queue: dict[str | None, list[float]] = {}
    for _ in range(40):
        name, waited = chance.choice(names), chance.choice(list(queues))
        begin = chance.randrange(-DAY, DAY * (DAYS + 1))
        end = begin + chance.randrange(3 * DAY)
        await ran(api, projects[name], begin, end, queues[waited])
        seconds = [max(0, min(end, DAY * (n + 1)) - max(begin, DAY * n)) for n in range(DAYS)]
        if name == "other" or begin >= DAY * DAYS or end <= 0:
            continue
        head = "/".join(name.split("/")[:2])
        for sums, key in ((by_project, head), (by_queue, waited)):
            sums[key] = [a + b for a, b in zip(sums.get(key, [0] * DAYS), seconds, strict=True)]

    answer = await usages(api, root, include_development=True)
    assert daily(answer["projects"]) == by_project
    assert daily(answer["queues"]) == by_queue
    weights = {"x": 0.5}
    expected = {name: [value * weights.get(name or "", 1) for value in values] for name, values in by_queue.items()}
    assert daily(answer["queues"], "gpu_usage") == expected
    assert sorted(total["id"] or "" for total in answer["queues"]["total"]) == sorted(
        {"x": queues["x"], "y": queues["y"], "other": "_other_", None: ""}[name] or "" for name in by_queue
    )
    assert list(daily((await usages(api, projects["root/a"], projects["other"]))["projects"])) == ["other", "root/a"]
    assert list(daily((await usages(api))["projects"])) == ["other", "root"]


async def test_what_counts(api: Api) -> None:
    used, waited = await project(api, "p"), await queue(api, "q")
    await ran(api, used, 0, 1, waited)
    await ran(api, used, 0, 10, waited, system_tags=["development"])
    await ran(api, used, 0, 100)
    await ran(api, used, 0, 1000, waited, type="controller")
    await ran(api, used, 0, 1000, waited, system_tags=["hidden"])
    await ran(api, used, 0, 1000, waited, started=None)
    failed = await ran(api, used, 5, 0, waited, status="failed", status_changed=text(at(10_005)))
    await api.backend.documents.update("tasks", {"id": failed}, Update(unset=["completed"]))

    assert daily((await usages(api, used))["projects"])["p"][0] == 10_001
    assert daily((await usages(api, used, include_development=True))["projects"])["p"][0] == 10_111
    assert list(await usages(api, used, breakdown_keys=["queue"])) == ["queues"]
    [total] = (await usages(api, used, usage_fields=["cpu_usage"]))["projects"]["total"]
    assert total == {"name": "p", "id": used, "cpu_usage": 10_001, "cpu_artificial_weights": True}


async def test_tasks_that_run_count_until_now(api: Api) -> None:
    used, waited = await project(api, "p"), await queue(api, "q")
    now = datetime.now(UTC)
    await ran(api, used, 0, 0, waited, status="in_progress", started=text(now - timedelta(seconds=50)))
    request = {"projects": [used], "from_date": (now - timedelta(days=1)).isoformat()}
    answer = await api.call("organization.get_project_usages", request)
    later = datetime.now(UTC)
    [total] = answer["projects"]["total"]
    assert 50 <= total["duration"] <= 51 + (later - now).total_seconds()
    assert len(answer["projects"]["series"][0]["dates"]) in {2, 2 + (later.date() - now.date()).days}


async def test_without_tasks_there_is_nothing(api: Api) -> None:
    used = await project(api, "p")
    for projects in ([], [used], ["nothing"], [used, "nothing"]):
        empty: dict[str, list[Any]] = {"total": [], "series": []}
        assert await usages(api, *projects) == {"projects": empty, "users": empty, "queues": empty}


@pytest.mark.parametrize(
    ("dates", "field"),
    [
        ({"from_date": "yesterday"}, "from_date"),
        ({"to_date": "2026-13-01"}, "to_date"),
        ({"to_date": "2020-01-01"}, "to_date"),
        ({"from_date": "1999-01-01"}, "from_date"),
        ({"from_date": "0001-01-01"}, "from_date"),
        ({"to_date": "9999-12-31T23:59:59+00:00"}, "to_date"),
    ],
)
async def test_bad_dates_are_named(api: Api, dates: dict[str, str], field: str) -> None:
    request = {"projects": [], "from_date": FIRST.isoformat(), "to_date": FIRST.isoformat(), **dates}
    answer = await api.call("organization.get_project_usages", request, expect=400)
    assert answer["meta"]["error_data"] == {"field": field}
