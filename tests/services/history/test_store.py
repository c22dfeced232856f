"""The history of subjects: weeks, groups, what is kept and what is forgotten."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from apiserver.common.errors import Refusal, Why
from apiserver.common.times import now_ms
from apiserver.events.model import HISTORY
from apiserver.services.history.steps import Steps
from apiserver.services.history.store import COLLECTION, DAY, WEEK, Subject, plausible
from tests.harness import Api, running_api

pytestmark = pytest.mark.anyio

BORDER = now_ms() // WEEK * WEEK


async def record(api: Api, name: str, at: int, **values: float) -> None:
    subject = Subject(api.company, "worker", name)
    await api.backend.history.record(subject, at, {(metric, "total"): value for metric, value in values.items()})


def around(border: int, seconds: int, interval: int = 40) -> Steps:
    seconds_of = border / 1000
    return Steps.whole({"from_date": seconds_of - seconds, "to_date": seconds_of + seconds, "interval": interval})


async def test_curves_are_those_of_all_values_also_across_weeks(api: Api) -> None:
    chance = random.Random(5)
    steps = around(BORDER, 600, 47)
    reports = {
        BORDER + chance.randrange(-660_000, 660_000): (chance.uniform(-9, 9), chance.random()) for _ in range(300)
    }
    for at, (cpu, memory) in reports.items():
        await record(api, "w", at, cpu=cpu, memory=memory)
    await record(api, "v", BORDER, cpu=1)

    subject = Subject(api.company, "worker", "w")
    curves = (await api.backend.history.curves([subject, subject], ["cpu"], steps))[subject]
    assert list(curves) == [("cpu", "total")]
    for n, date in enumerate(steps.dates.tolist()):
        inside = [cpu for at, (cpu, _) in reports.items() if date <= at < date + 47_000]
        curve = curves["cpu", "total"]
        assert curve.count[n] == len(inside)
        expected = [sum(inside) / len(inside), min(inside), max(inside)]
        assert [curve.values(kind)[n] for kind in ("avg", "min", "max")] == pytest.approx(expected)


async def test_the_same_time_again_replaces_the_value(api: Api) -> None:
    for value in (1, 5):
        await record(api, "w", BORDER, cpu=value)
    subject = Subject(api.company, "worker", "w")
    curves = await api.backend.history.curves([subject], ["cpu"], around(BORDER, 100))
    assert curves[subject]["cpu", "total"].count.sum() == 1
    assert curves[subject]["cpu", "total"].max.max() == 5


async def test_sources_of_other_kinds_groups_and_companies_are_apart(api: Api) -> None:
    company, steps = api.company, around(BORDER, 100)
    subjects = [
        Subject(company, "worker", "w"),
        Subject(company, "queue", "w"),
        Subject("other", "worker", "w"),
        Subject(company, "container", "w", "http://a"),
        Subject(company, "container", "w", "http://a/b"),
        Subject(company, "container", "bw", "http://a/"),
    ]
    history = api.backend.history
    for n, subject in enumerate(subjects):
        await history.record(subject, BORDER, {("m", "v"): n})
    found = await history.curves(subjects, ["m"], steps)
    assert [found[subject]["m", "v"].max.max() for subject in subjects] == list(range(6))
    weeks = await history.weeks(company, "container", start=BORDER, stop=BORDER, group="http://a", fields=["metrics"])
    assert [(week["name"], week["metrics"]) for week in weeks] == [("w", ["m"])]
    assert await history.weeks(company, "worker", start=BORDER - WEEK, stop=BORDER - 1) == []


async def test_charts_over_all_of_time_look_at_what_is_kept_only(api: Api) -> None:
    subject, looked_at = Subject(api.company, "worker", "w"), []
    read = api.backend.events.scalar_buckets

    async def counted(*arguments: Any, **options: Any) -> Any:
        looked_at.append(arguments[0])
        return await read(*arguments, **options)

    await record(api, "w", now_ms(), cpu=3)
    api.backend.events.scalar_buckets = counted  # type: ignore[method-assign]
    steps = Steps.whole({"from_date": 0, "to_date": 10**11, "interval": 10**9})
    found = await api.backend.history.curves([subject], ["cpu"], steps)
    assert found[subject]["cpu", "total"].max.max() == 3
    assert len(looked_at) <= 60 // 7 + 4


async def test_charts_that_fit_no_memory_are_refused(api: Api) -> None:
    subjects = [Subject(api.company, "worker", str(n)) for n in range(100)]
    steps = Steps.whole({"from_date": 0, "to_date": 60_000 * 40, "interval": 40})
    with pytest.raises(Refusal) as refused:
        await api.backend.history.curves(subjects, ["cpu"], steps)
    assert refused.value.why is Why.INVALID


async def test_history_outlives_a_restart(tmp_path: Path) -> None:
    for number in range(2):
        async with running_api(tmp_path / "data") as api:
            await record(api, "w", BORDER + number, cpu=number)
            subject = Subject(api.company, "worker", "w")
            found = await api.backend.history.curves([subject], ["cpu"], around(BORDER, 100))
            assert found[subject]["cpu", "total"].count.sum() == number + 1


async def test_only_what_is_older_than_the_kept_days_goes(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", history_days=15) as api:
        now = now_ms()
        for days in (0, 15, 22, 30, 100):
            await record(api, "w", now - days * DAY, cpu=days)
        await api.backend.history.sweep()
        weeks = await api.backend.documents.find(COLLECTION, {})
        kept = {owner.id async for owner in api.backend.events.owners() if owner.id.startswith(HISTORY)}
        assert {f"{HISTORY}{week['id'].partition('/')[2]}" for week in weeks} == kept
        ends = [(week["week"] + 1) * WEEK for week in weeks]
        assert min(ends) > now - (15 + 7) * DAY
        assert any(week["week"] == (now - 15 * DAY) // WEEK for week in weeks)


async def test_no_document_waits_for_what_is_in_the_history(api: Api) -> None:
    await record(api, "w", BORDER, cpu=1)
    assert [owner async for owner in api.backend.events.owners_to_restate()] == []


def test_clocks_that_are_far_off_are_not_believed() -> None:
    now, hour = now_ms(), 3_600_000
    assert plausible(now - DAY + hour) == now - DAY + hour
    assert plausible(now + DAY - hour) == now + DAY - hour
    for at in (0, now // 1000, now + DAY + hour, 2**63 - 1, -(2**63)):
        assert now <= plausible(at) <= now_ms()
