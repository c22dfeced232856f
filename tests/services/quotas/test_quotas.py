"""What is over a quota is refused and named, and everything else goes on."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from apiserver.files.sizes import Files, files_by_task
from apiserver.services import usage as of_companies
from apiserver.services.access.credentials import create_user
from apiserver.services.quotas.accounts import Account
from apiserver.services.quotas.amounts import Amounts
from apiserver.services.quotas.subjects import Subject
from apiserver.services.usage import CompanyUsage
from apiserver.setting_values import Quota
from apiserver.settings import SettingsError, load, masked
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.usage import Usage
from tests.harness import PATIENCE, Api, running_api, wait_until

pytestmark = pytest.mark.anyio

COMPANY = "d1e5c0a8f00d4e0ab1e0c0ffee000001"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time for rates, which stands still until a test sets it."""
    now = [time.monotonic()]
    monkeypatch.setattr("apiserver.services.quotas.quotas.time.monotonic", lambda: now[0])
    return now


async def new_task(api: Api, name: str = "a task", **more: Any) -> str:
    return str((await api.call("tasks.create", {"name": name, "type": "training", **more}))["id"])


async def send(api: Api, *events: Mapping[str, Any], **options: Any) -> httpx.Response:
    return await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, events)), **options)


def points(task: str, count: int, *, variant: str = "v", first: int = 0) -> list[dict[str, Any]]:
    point = {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": variant, "value": 1}
    return [{**point, "iter": first + n} for n in range(count)]


def line(task: str, text: str) -> dict[str, Any]:
    return {"type": "log", "task": task, "msg": text, "timestamp": 1}


def amounts(api: Api) -> Amounts:
    assert api.backend.quotas is not None
    return api.backend.quotas.amounts


@asynccontextmanager
async def with_quotas(data: Path, *quotas: Quota) -> AsyncIterator[Api]:
    """A server with quotas that has just added up, so that it does not again while the test runs."""
    async with running_api(data, quotas=quotas) as api:
        await amounts(api).measure(COMPANY)
        yield api


FORM = {"content-type": "multipart/form-data; boundary=b"}


def form(sizes: Mapping[str, int]) -> bytes:
    """A form of files by their paths."""
    part = b'--b\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\n\r\n%s\r\n'
    files = [part % (unquote(path).removeprefix("/files").encode(), b"x" * size) for path, size in sizes.items()]
    return b"".join([*files, b"--b--\r\n"])


async def usage(api: Api, more: str = "") -> list[dict[str, Any]]:
    answer = await api.raw("GET", f"/data/usage.json?by=quota{more}")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()
    return rows


async def test_who_sends_too_fast_is_named_and_waits_and_loses_nothing(
    tmp_path: Path, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    quotas = (Quota("task", events_per_second=10), Quota("company", events_per_second=15))
    async with with_quotas(tmp_path / "data", *quotas) as api:
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


async def test_another_company_and_another_user_have_their_own(tmp_path: Path, clock: list[float]) -> None:
    quotas = (Quota("user", events_per_second=10), Quota("company", COMPANY, events_per_second=1000))
    async with with_quotas(tmp_path / "data", *quotas) as api:
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


async def test_files_count_and_are_refused(tmp_path: Path) -> None:
    quotas = (Quota("task", bytes=5_000), Quota("company", COMPANY, bytes=1_000_000))
    async with with_quotas(tmp_path / "data", *quotas) as api:
        project = (await api.call("projects.create", {"name": "p"}))["id"]
        task = await new_task(api, project=project)
        path = f"/files/p/a%20task.{task}/artifacts/a.bin"
        assert (await api.raw("PUT", path, content=b"x" * 4000)).status_code == 200
        refused = await api.raw("PUT", path + "2", content=b"x" * 4000)
        assert refused.status_code == 507
        said = (
            f"The file was not stored: Over quota: task a task ({task}) may have 5,000 bytes, of which 1,000 are left"
        )
        assert refused.json()["meta"]["result_msg"] == f"{said}, and the upload has 4,000"
        assert (await api.raw("PUT", "/files/of-nobody.bin", content=b"x" * 9000)).status_code == 200
        await amounts(api).measure(COMPANY)
        task_row, company_row = await usage(api)
        assert (task_row["of"], company_row["of"]) == ("task", "company")  # the fullest first, and all others, too
        assert 4000 <= task_row["used"] < 4400  # with a line in its console
        assert company_row["used"] == task_row["used"] + 9000
        form = {f"/p/a task.{task}/b.bin": ("b.bin", b"x" * 4000)}
        assert (await api.raw("POST", "/files/", files=form)).status_code == 507
        assert (await send(api, line(task, "x" * 2000))).status_code == 200
        assert (await send(api, line(task, "x"))).status_code == 429


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


async def in_pieces(*sizes: int, before_last: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    """A body that does not say how long it is."""
    for n, size in enumerate(sizes):
        if before_last is not None and n == len(sizes) - 1:
            await before_last.wait()
        yield b"x" * size


def of_task(task: str, name: str = "a.bin") -> str:
    return f"/files/p/a%20task.{task}/artifacts/{name}"


def used(api: Api, of: str, id: str) -> int:
    return account(api, of, id).bytes


def account(api: Api, of: str, id: str) -> Account:
    """The account of a subject; an empty one if nothing was counted for it."""
    assert api.backend.quotas is not None
    subject = Subject(of, COMPANY, id)
    return api.backend.quotas.accounts.of_company(COMPANY).get(subject, Account(subject, Quota(of)))


async def test_files_of_unknown_length_are_bounded_one_by_one_and_together(tmp_path: Path) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", bytes=5_000)) as api:
        task = await new_task(api)
        refused = await api.raw("PUT", of_task(task), content=in_pieces(4000, 2000))
        assert refused.status_code == 507
        said = "may have 5,000 bytes, of which 5,000 are left, and the upload has at least 6,000"
        assert refused.json()["meta"]["result_msg"].endswith(said)

        async def body() -> AsyncIterator[bytes]:
            yield form({of_task(task, name): 3000 for name in "ab"})

        assert (await api.raw("POST", "/files/", content=body(), headers=FORM)).status_code == 507
        assert used(api, "task", task) == 0  # nothing was stored
        go_on = asyncio.Event()
        first = asyncio.create_task(api.raw("PUT", of_task(task), content=in_pieces(3000, 1, before_last=go_on)))
        async with asyncio.timeout(PATIENCE):
            while used(api, "task", task) < 3000:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await api.raw("PUT", of_task(task, "b"), content=b"x" * 3000)).status_code == 507
        go_on.set()
        assert (await first).status_code == 200
        assert used(api, "task", task) == 3001
        assert (await api.raw("PUT", of_task(task, "b"), content=b"x" * 1000)).status_code == 200


async def test_the_files_of_a_form_count_once(tmp_path: Path) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", bytes=10_000), Quota("user", bytes=20_000)) as api:
        bob, key = await create_user(api.backend.documents, COMPANY, "bob", "user")
        bobs = (await api.call("tasks.create", {"name": "b", "type": "training"}, auth=(key.key, key.secret)))["id"]
        for task in (await new_task(api), bobs):  # those of bob do not count for him while they come
            body = form({of_task(task, str(n)): 900 for n in range(9)})
            assert (await api.raw("POST", "/files/", content=body, headers=FORM)).status_code == 200
            assert used(api, "task", task) == 8100
            refused = await api.raw("POST", "/files/", content=body, headers=FORM)
            assert refused.status_code == 507
            assert f"1,900 are left, and the upload has {len(body):,}" in refused.json()["meta"]["result_msg"]

            async def unknown_length(of: str = task) -> AsyncIterator[bytes]:
                yield form({of_task(of, f"more {n}"): 1000 for n in range(2)})

            assert (await api.raw("POST", "/files/", content=unknown_length(), headers=FORM)).status_code == 507
            assert used(api, "task", task) == 8100
            assert (await api.raw("GET", of_task(task, "8"))).status_code == 200
            assert (await api.raw("GET", of_task(task, "more 0"))).status_code == 404
        assert used(api, "user", bob["id"]) == 8100


async def test_a_replaced_or_deleted_file_counts_no_more(tmp_path: Path) -> None:
    quotas = (Quota("task", bytes=5_000), Quota("company", bytes=5_000))
    async with with_quotas(tmp_path / "data", *quotas) as api:
        task = await new_task(api)
        for size in (2000, 1500, 2000):
            assert (await api.raw("PUT", of_task(task), content=b"x" * size)).status_code == 200
            assert (used(api, "task", task), used(api, "company", COMPANY)) == (size, size)
        await amounts(api).measure(COMPANY)
        assert (await api.raw("PUT", of_task(task), content=b"x" * 2500)).status_code == 200
        assert used(api, "task", task) == 2500
        for _ in range(3):
            assert (await api.raw("PUT", of_task(task, "b"), content=b"x" * 2000)).status_code == 200
            assert (await api.raw("DELETE", of_task(task, "b"))).status_code == 200
        assert used(api, "company", COMPANY) <= 2500


async def test_a_file_counts_as_the_events_of_its_task_do_whoever_sends_it(tmp_path: Path) -> None:
    quotas = (Quota("user", bytes=5_000), Quota("company", bytes=1_000_000))
    async with with_quotas(tmp_path / "data", *quotas) as api:
        bob, key = await create_user(api.backend.documents, COMPANY, "bob", "user")
        user, auth = bob["id"], (key.key, key.secret)
        task = (await api.call("tasks.create", {"name": "b", "type": "training"}, auth=auth))["id"]
        assert (await api.raw("PUT", of_task(task), content=b"x" * 3000)).status_code == 200
        assert (used(api, "user", user), used(api, "company", COMPANY)) == (3000, 3000)
        for _ in range(5):  # nobody uses up what another may have by sending and deleting
            assert (await api.raw("PUT", of_task(task, "b"), content=b"x" * 500)).status_code == 200
            assert (await api.raw("DELETE", of_task(task, "b"))).status_code == 200
        assert (used(api, "user", user), used(api, "company", COMPANY)) == (3000, 3000)
        await amounts(api).measure(COMPANY)
        assert (used(api, "user", user), used(api, "company", COMPANY)) == (3000, 3000)
        assert (await api.raw("PUT", of_task(task, "b"), content=in_pieces(1500, 1500))).status_code == 507


async def test_an_upload_that_never_ends_holds_up_nobody_but_its_sender(tmp_path: Path) -> None:
    quotas = (Quota("task", bytes=5_000), Quota("user", bytes=5_000), Quota("company", bytes=1_000_000))
    async with with_quotas(tmp_path / "data", *quotas) as api:
        bob, key = await create_user(api.backend.documents, COMPANY, "bob", "user")
        auth = (key.key, key.secret)
        task = (await api.call("tasks.create", {"name": "b", "type": "training"}, auth=auth))["id"]
        end = asyncio.Event()
        stuck = asyncio.create_task(api.raw("PUT", of_task(task), content=in_pieces(4990, 1, before_last=end)))
        async with asyncio.timeout(PATIENCE):
            while used(api, "company", COMPANY) < 4990:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (used(api, "task", task), used(api, "user", bob["id"])) == (0, 0)
        assert (await send(api, *points(task, 100))).status_code == 200
        end.set()
        assert (await stuck).status_code == 507  # the events have taken its room
        assert used(api, "company", COMPANY) < 4990


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
    async with with_quotas(tmp_path / "data", Quota("task", events_per_second=10, series=100)) as api:
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


async def test_without_quotas_nothing_is_counted(api: Api) -> None:
    assert api.backend.quotas is None
    assert await usage(api) == []
    assert "quotas" not in (await api.raw("GET", "/health")).json()


def test_settings_say_quotas_in_toml_and_json(tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text(
        'quotas = [{of = "task", series = 100_000}, {of = "company", bytes = "500 GB"},\n'
        '          {of = "user", id = "u", events_per_second = 20000, bytes = "1.5 GiB"}]\n'
    )
    quotas = load(config=config).quotas
    assert quotas == (
        Quota("task", series=100_000),
        Quota("company", bytes=500 * 10**9),
        Quota("user", "u", bytes=3 * 2**29, events_per_second=20_000),
    )
    assert load(environ={"APISERVER_QUOTAS": masked(load(config=config))["quotas"]}).quotas == quotas


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            [{"of": "task", "bytes": 1}, {"of": "tasks", "bytes": 1}],
            "quota 2: of: 'tasks' is none of task, project, user",
        ),
        ([{"bytes": 1}], "quota 1: of: it is missing; give one of task, project, user, company"),
        ([{"of": ["task"], "bytes": 1}], "quota 1: of: "),
        ([{"of": "task"}], "quota 1: the quota of a task bounds nothing"),
        ([{"of": "task", "bytes": 0}], "bounds nothing: give bytes, series or events_per_second, of 1 or more"),
        ([{"of": "task", "bytes": "many"}], "'many' is neither a whole number nor a size"),
        ([{"of": "task", "bytes": -1}], "bytes: -1 is less than 0"),
        ([{"of": "task", "bytes": "200"}], "bytes: '200' has no unit: give a size such as '200 GB', or a number"),
        ([{"of": "task", "bytes": 1.5}], "bytes: 1.5 is not a whole number"),
        ([{"of": "task", "series": "5 GB"}], "series: '5 GB' is not a whole number"),
        ([{"of": "task", "serie": 5}], "a quota has no field serie, only of, id, bytes, series, events_per_second"),
        ([{"of": "task", "points": 1}], "no field points"),
        ([{"of": "task", "bytes": 1}, {"of": "task", "series": 1}], "quota 2: one before it is for the same"),
        (["task"], "is a table"),
        ({"of": "task", "bytes": 1}, r"not a list of quotas: put them into \[ and \]"),
    ],
)
def test_a_wrong_quota_is_named(given: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load(environ={"APISERVER_QUOTAS": json.dumps(given)})


async def test_a_quota_for_nobody_is_said_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_api(tmp_path / "data") as api:
        project = (await api.call("projects.create", {"name": "lab/vision"}))["id"]
    quotas = (
        Quota("project", "lab/vision", series=9),
        Quota("project", project, series=9),
        Quota("task", "t", series=9),
    )
    with caplog.at_level(logging.WARNING):
        async with running_api(tmp_path / "data", quotas=quotas):
            pass
    assert [text for text in caplog.messages if "quotas" in text] == [
        f"quotas: there is no project with the id 'lab/vision'; of this name there is {project}: a quota is for an id",
        "quotas: there is no task with the id 't'",
    ]
