"""Files count for quotas however they are sent, and those that are over one are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.services.access.credentials import create_user
from apiserver.settings.values import Quota
from tests.harness import PATIENCE
from tests.services.quotas.sending import (
    COMPANY,
    FORM,
    amounts,
    form,
    in_pieces,
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


@pytest.mark.test
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


@pytest.mark.test
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


@pytest.mark.test
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
