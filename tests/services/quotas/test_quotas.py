"""What is over a quota is refused and named, and everything else goes on."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.services.access.credentials import create_user
from apiserver.services.quotas import usage as of_companies
from apiserver.services.quotas.accounts import Account
from apiserver.services.quotas.sizes_of_files import Files, files_by_task
from apiserver.services.quotas.usage import CompanyUsage
from apiserver.settings.values import Quota
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.usage import Usage
from tests.harness import PATIENCE, Api, running_api, wait_until
from tests.services.quotas.sending import (
    COMPANY,
    account,
    amounts,
    line,
    new_task,
    of_task,
    points,
    send,
    usage,
    used,
    with_quotas,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> list[float]:
    """The time for rates, which stands still until a test sets it."""
    return [time.monotonic()]


async def test_who_sends_too_fast_is_named_and_waits_and_loses_nothing(
    tmp_path: Path, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    quotas = (Quota("task", events_per_second=10), Quota("company", events_per_second=15))
    async with with_quotas(tmp_path / "data", *quotas, clock=clock) as api:
        one, two = await new_task(api), await new_task(api)
        assert (await send(api, *points(one, 90))).json()["data"]["added"] == 90
        refused = await send(api, *points(one, 20, first=90), *points(two, 1))
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        said = f"Over quota: task a task ({one}) may send 10 events a second, and sends more"
        assert refused.json()["meta"]["result_msg"] == said
        of_task = f"task a task ({one}) may send 10 events a second, and sends"
        assert [record.getMessage() for record in caplog.records if "a quota is" in record.message] == [
            f"a quota is nearly used up: {of_task} nearly as many",
            f"a quota is exceeded: {of_task} more",
        ]
        clock[0] += 1
        assert (await send(api, *points(one, 20, first=90))).json()["data"]["added"] == 20
        refused = await send(api, *points(two, 100))
        assert refused.json()["meta"]["result_msg"].startswith(f"Over quota: company {COMPANY} may send 15 events")
        clock[0] += 1000
        assert (await send(api, *points(two, 100))).json()["data"]["added"] == 100
        asked = {"task": one, "event_type": "training_stats_scalar", "batch_size": 1000}
        assert (await api.call("events.get_task_events", asked))["total"] == 110
        assert "apiserver_quota_refusals_total 2" in (await api.raw("GET", "/metrics")).text


@pytest.mark.test
async def test_another_company_and_another_user_have_their_own(tmp_path: Path, clock: list[float]) -> None:
    quotas = (Quota("user", events_per_second=10), Quota("company", COMPANY, events_per_second=1000))
    async with with_quotas(tmp_path / "data", *quotas, clock=clock) as api:
        mine = await new_task(api)
        assert (await send(api, *points(mine, 100))).status_code == 200
        assert (await send(api, *points(mine, 1))).status_code == 429
        for company in (COMPANY, "another company"):
            _, key = await create_user(api.backend.documents, company, "bob", "user")
            auth = (key.key, key.secret)
            answer = await api.call("tasks.create", {"name": "b", "type": "training"}, auth=auth)
            assert (await send(api, *points(answer["id"], 100), auth=auth)).status_code == 200
            assert (await send(api, *points(answer["id"], 1), auth=auth)).status_code == 429
        # It counts whose the task is, not who sends.
        other = (await api.call("tasks.create", {"name": "b", "type": "training"}, auth=auth))["id"]
        assert (await send(api, *points(other, 1), auth=auth)).status_code == 429


@pytest.mark.test
async def test_new_series_are_refused_and_known_ones_go_on(tmp_path: Path) -> None:
    quotas = (Quota("task", series=3), Quota("project", series=4))
    async with with_quotas(tmp_path / "data", *quotas) as api:
        project = (await api.call("projects.create", {"name": "p"}))["id"]
        one, two = await new_task(api, project=project), await new_task(api, project=project)
        assert (await send(api, *[points(one, 2, variant=v)[n] for v in "ab" for n in (0, 1)])).status_code == 200
        data = (await send(api, *[points(one, 1, variant=v, first=2)[0] for v in "abcde"])).json()["data"]
        reason = f"Over quota: task a task ({one}) may have 3 series, and has 3; no further ones"
        assert (data["added"], data["errors_info"]) == (3, {reason: 2})
        image = {"type": "training_debug_image", "task": two, "iter": 0, "metric": "i", "url": "http://files/a.png"}
        data = (await send(api, {**image, "variant": "x"}, {**image, "variant": "y"}, line(two, "a line"))).json()[
            "data"
        ]
        reason = f"Over quota: project p ({project}) may have 4 series, and has 4; no further ones"
        assert (data["added"], data["errors_info"]) == (2, {reason: 1})
        answer = await send(api, *points(one, 1, variant="e"))
        assert answer.status_code == 400  # nothing of it was taken: the SDK says so in its log, and goes on
        await amounts(api).measure(COMPANY)
        rows = {(row["of"], row["id"]): (row["used"], row["quota"]) for row in await usage(api)}
        assert rows == {("task", one): (3, 3), ("task", two): (1, 3), ("project", project): (4, 4)}
        await api.call("tasks.delete", {"task": one, "force": True})
        await amounts(api).measure(COMPANY)
        assert (await send(api, *points(two, 1, variant="n"))).status_code == 200


@pytest.mark.test
async def test_series_that_were_deleted_make_room_once(tmp_path: Path) -> None:
    """Known series are not counted: after a deletion, they would come beside those that took their room."""
    async with with_quotas(tmp_path / "data", Quota("task", series=10)) as api:
        task = await new_task(api)
        some = {which: [points(task, 1, variant=f"{which}{n}")[0] for n in range(10)] for which in "ab"}
        for which in "ab":
            for _ in range(2):  # until the batch is known
                assert (await send(api, *some[which])).json()["data"]["added"] == 10
            if which == "a":
                await api.call("events.delete_for_task", {"task": task})
                await amounts(api).measure(COMPANY)
        assert (await send(api, *some["a"])).status_code == 400
        assert (await send(api, *some["b"])).json()["data"]["added"] == 10
        await amounts(api).measure(COMPANY)
        assert [row["used"] for row in await usage(api)] == [10]


async def test_series_stay_known_if_a_sum_finds_a_few_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elasticsearch estimates how many there are."""
    async with with_quotas(tmp_path / "data", Quota("task", series=100)) as api:
        task, told = await new_task(api), api.backend.events.usage
        await send(api, *[points(task, 1, variant=str(n))[0] for n in range(20)])

        async def about(company: str) -> Usage:
            usage = await told(company)
            usage.series -= usage.series // 15
            return usage

        monkeypatch.setattr(api.backend.events, "usage", about)
        await amounts(api).measure(COMPANY)
        assert account(api, "task", task).series == 19
        await send(api, *[points(task, 1, variant=str(n), first=1)[0] for n in range(20)])
        assert account(api, "task", task).series == 19


async def test_the_store_is_not_asked_which_series_there_are_where_there_is_much_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", series=10)) as api:
        task = await new_task(api)
        asked, series = 0, api.backend.events.series

        async def counted(*given: Any) -> Any:
            nonlocal asked
            asked += 1
            return await series(*given)

        monkeypatch.setattr(api.backend.events, "series", counted)
        for variants in ("abc", "abd", "dc"):
            assert (await send(api, *[points(task, 1, variant=v)[0] for v in variants])).status_code == 200
        assert asked == 0
        assert account(api, "task", task).series == 4
        for _ in range(2):  # what is refused is refused again
            data = (await send(api, *[points(task, 1, variant=v)[0] for v in "abcdefghijkl"])).json()["data"]
            assert (data["added"], data["errors"]) == (10, 2)
        assert asked == 1


@pytest.mark.test
async def test_whoever_has_too_many_bytes_gets_429_until_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with with_quotas(tmp_path / "data", Quota("project", bytes=10_000)) as api:
        project = (await api.call("projects.create", {"name": "p"}))["id"]
        one, two = await new_task(api, project=project), await new_task(api, project=project)
        elsewhere = await new_task(api)
        with caplog.at_level(logging.WARNING):
            assert (await send(api, line(one, "x" * 7000))).status_code == 200
            assert "a quota" not in caplog.text
            assert (await send(api, line(one, "y" * 2000))).status_code == 200
            assert f"a quota is used up to 90 %: project p ({project}) has 9,0" in caplog.text
        assert (await send(api, line(two, "z" * 2000))).status_code == 200
        refused = await send(api, line(two, "one more"))
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        message = refused.json()["meta"]["result_msg"]
        assert message.startswith(f"Over quota: project p ({project}) may have 10,000 bytes, and has 11,0")
        assert (await send(api, line(elsewhere, "x" * 20_000))).status_code == 200
        assert (await api.raw("GET", "/health")).json()["quotas"] == {"near": 1, "used_up": 1}
        assert "apiserver_quotas_near 1" in (await api.raw("GET", "/metrics")).text
        (row,) = await usage(api)
        assert (row["of"], row["id"], row["bounded"], row["quota"]) == ("project", project, "bytes", 10_000)
        await api.call("tasks.delete", {"task": one, "force": True})
        await amounts(api).measure(COMPANY)
        assert (await send(api, line(two, "one more"))).status_code == 200
        assert (await api.raw("GET", "/health")).json()["quotas"] == {"near": 0, "used_up": 0}


@pytest.mark.test
async def test_quotas_are_listed_with_names_and_for_one_kind_or_project(tmp_path: Path) -> None:
    quotas = (Quota("task", bytes=5_000), Quota("project", bytes=50_000), Quota("user", bytes=100_000))
    async with with_quotas(tmp_path / "data", *quotas) as api:
        project = (await api.call("projects.create", {"name": "vision"}))["id"]
        task, other = await new_task(api, "mine", project=project), await new_task(api, "another")
        user = (await api.call("users.get_current_user"))["user"]
        for one in (task, other):
            assert (await api.raw("PUT", of_task(one), content=b"x" * 1000)).status_code == 200
        await amounts(api).measure(COMPANY)
        listed = {(row["of"], row["id"]): (row["name"], row["used"]) for row in await usage(api)}
        assert listed == {
            ("task", task): ("mine", 1000),
            ("task", other): ("another", 1000),
            ("project", project): ("vision", 1000),
            ("user", user["id"]): (user["name"], 2000),
        }
        assert {row["id"] for row in await usage(api, "&of=task")} == {task, other}
        assert {row["id"] for row in await usage(api, f"&of=task&project={project}")} == {task}
        assert {row["id"] for row in await usage(api, "&project=vision")} == {task, project}
        assert [row["of"] for row in await usage(api, "&limit=2")] == ["task", "task"]
        assert len(await usage(api, "&limit=9")) == 4
        assert {row["kind"] for row in await usage(api)} == {"task", "project", "user"}
        assert (await api.raw("GET", "/data/usage.json?by=quota&limit=0")).status_code == 400
        assert (await api.raw("GET", "/data/usage.json?by=task&limit=5")).status_code == 400
        assert (await api.raw("GET", "/data/usage.json?by=quota&project=nowhere")).status_code == 404
        assert (await api.raw("GET", "/data/usage.json?by=quota&of=queue")).status_code == 400


@pytest.mark.test
async def test_what_comes_while_a_sum_is_made_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the store has told of its events, and after it, while files are added up."""
    async with with_quotas(tmp_path / "data", Quota("task", bytes=100_000)) as api:
        task = await new_task(api)
        assert (await api.raw("PUT", of_task(task, "before"), content=b"x" * 1000)).status_code == 200
        assert (await send(api, line(task, "x" * 984))).status_code == 200
        asked, go_on, told = asyncio.Event(), asyncio.Event(), api.backend.events.usage
        walks, walk = threading.Event(), threading.Event()

        async def told_slowly(company: str) -> Usage:
            asked.set()
            await go_on.wait()
            return await told(company)

        def walked_slowly(folder: Path, company: str, before: int) -> dict[str, Files]:
            walks.set()
            assert walk.wait(PATIENCE)
            return files_by_task(folder, company, before)

        monkeypatch.setattr(api.backend.events, "usage", told_slowly)
        monkeypatch.setattr(of_companies, "files_by_task", walked_slowly)
        measuring = asyncio.create_task(amounts(api).measure(COMPANY))
        await asked.wait()
        assert (await api.raw("PUT", of_task(task, "first"), content=b"x" * 2000)).status_code == 200
        assert (await api.raw("PUT", of_task(task, "first"), content=b"x" * 3000)).status_code == 200
        assert (await send(api, line(task, "y" * 984))).status_code == 200
        assert used(api, "task", task) == 6000
        go_on.set()
        assert await asyncio.to_thread(walks.wait, PATIENCE)
        wait_until_files_are_newer(time.time_ns(), tmp_path / "probe")
        assert (await api.raw("PUT", of_task(task, "second"), content=b"x" * 5000)).status_code == 200
        assert (await send(api, line(task, "z" * 984))).status_code == 200
        walk.set()
        await measuring
        assert used(api, "task", task) == 12_000
        await amounts(api).measure(COMPANY)
        assert used(api, "task", task) == 12_000


def wait_until_files_are_newer(moment: int, probe: Path) -> None:
    """Return when files that are made get a later time than `moment`: the clock of files goes in steps of some ms."""

    def is_newer() -> bool:
        probe.touch()
        return probe.stat().st_ctime_ns > moment

    wait_until(is_newer)


async def test_a_model_is_named_too(tmp_path: Path, clock: list[float]) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", events_per_second=10, series=100), clock=clock) as api:
        model: str = (await api.call("models.create", {"name": "a model", "uri": "s3://b/m", "ready": False}))["id"]
        sent = [{**point, "model_event": True} for point in points(model, 101)]
        assert (await send(api, *sent)).status_code == 200
        refused = await send(api, *sent)
        assert refused.status_code == 429
        said = f"Over quota: task a model ({model}) may send 10 events a second, and sends more"
        assert refused.json()["meta"]["result_msg"] == said
        (row,) = await usage(api)
        assert (row["of"], row["kind"], row["id"], row["name"], row["used"]) == ("task", "model", model, "a model", 1)


async def test_a_sum_that_failed_is_not_tried_by_each_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_api(tmp_path / "data", quotas=(Quota("task", bytes=10_000),)) as api:
        sums = 0

        async def fail(company: str, at: Callable[[int], None]) -> CompanyUsage:
            nonlocal sums
            sums += 1
            await asyncio.sleep(0)
            raise EventStoreBusy("it takes too long", overloaded=False)

        monkeypatch.setattr(api.backend.usages, "anew", fail)
        answers = await asyncio.gather(*(api.raw("GET", "/data/usage.json?by=quota") for _ in range(5)))
        assert {answer.status_code for answer in answers} == {503}
        assert sums == 1


async def test_health_does_not_look_at_each_who_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", bytes=2_000)) as api:
        for size in (1700, 2100):
            assert (await send(api, line(await new_task(api), "x" * size))).status_code == 200
        monkeypatch.setattr(Account, "shares", None)
        assert (await api.raw("GET", "/health")).json()["quotas"] == {"near": 2, "used_up": 1}


@pytest.mark.own_api
async def test_without_quotas_nothing_is_counted(api: Api) -> None:
    assert api.backend.quotas is None
    assert await usage(api) == []
    assert "quotas" not in (await api.raw("GET", "/health")).json()
