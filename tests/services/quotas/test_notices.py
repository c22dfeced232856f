"""Lines in the console logs of tasks that say what was not stored because of a quota, or soon will not be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.events.model import EventBatch
from apiserver.settings.values import Quota
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import PATIENCE, Api, running_api
from tests.services.quotas.sending import line, new_task, of_task, points, send

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def with_quotas(data: Path, *quotas: Quota) -> AsyncIterator[Api]:
    async with running_api(data, quotas=quotas) as api:
        assert api.backend.quotas is not None
        await api.backend.quotas.amounts.measure(api.company)
        yield api


async def warnings(api: Api, task: str) -> list[str]:
    """What the task's console log says at level warning."""
    found = await api.call("events.get_task_log", {"task": task, "batch_size": 100})
    return [event["msg"] for event in found["events"] if event.get("level") == "warning"]


async def told(api: Api, task: str, count: int = 1) -> list[str]:
    """The warnings of a task, once there are so many."""
    async with asyncio.timeout(PATIENCE):
        while len(found := await warnings(api, task)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


async def test_a_task_is_told_once_that_bytes_are_nearly_and_then_wholly_used_up(tmp_path: Path) -> None:
    async with with_quotas(tmp_path / "data", Quota("project", bytes=10_000)) as api:
        project = (await api.call("projects.create", {"name": "vision"}))["id"]
        task, other = await new_task(api, project=project), await new_task(api, project=project)
        for _ in range(4):
            assert (await send(api, line(task, "x" * 2060))).status_code == 200
        (near,) = await told(api, task)
        assert near.startswith(f"83 % of a quota are used up: project vision ({project}) has 8,3")
        assert (await send(api, line(task, "x" * 2060))).status_code == 200
        assert (await send(api, line(task, "x"))).status_code == 429
        assert (await send(api, line(task, "x"))).status_code == 429
        (used_up,) = set(await told(api, task, 2)) - {near}
        assert used_up.startswith(f"A quota is used up: project vision ({project}) has 10,3")
        assert await warnings(api, other) == []
        assert (await send(api, line(other, "x"))).status_code == 429
        assert len(await told(api, other)) == 1
        assert len(await warnings(api, task)) == 2


async def test_a_task_is_told_which_series_are_left_out_of_a_batch(tmp_path: Path) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", series=5)) as api:
        task = await new_task(api)
        for _ in range(2):
            answer = await send(api, *[points(task, 1, variant=f"v{n}")[0] for n in range(10)])
            assert answer.json()["data"]["errors"] == 5
        assert await told(api, task) == [
            f"A quota is used up: task a task ({task}) has 5 of 5 series. New series are left out:"
            ' "m / v5", "m / v6", "m / v7" and 2 more. Series that are here already go on.'
        ]


async def test_a_task_is_told_of_a_file_that_was_not_stored(tmp_path: Path) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", bytes=1000)) as api:
        task = await new_task(api)
        assert (await api.raw("PUT", of_task(task, "a.bin"), content=b"x" * 2000)).status_code == 507
        (said,) = await told(api, task)
        assert said.endswith(
            f"artifacts/a.bin was not stored, because there is too little room: task a task ({task}) may have"
            " 1,000 bytes, of which 1,000 are left, and the upload has 2,000."
        )


@pytest.mark.test
async def test_a_task_that_sends_too_fast_is_told_once_and_others_are_not(tmp_path: Path) -> None:
    """Also if there are no other quotas than of events a second."""
    async with with_quotas(tmp_path / "data", Quota("task", events_per_second=10)) as api:
        task, other = await new_task(api), await new_task(api)
        assert (await send(api, *points(task, 1000))).status_code == 200
        for _ in range(3):
            assert (await send(api, *points(task, 1), *points(other, 1))).status_code == 429
        assert await told(api, task) == [
            f"This run is slowed down: task a task ({task}) may send 10 events a second, and sends more. Nothing is"
            " lost: the run keeps the rest, and sends it later."
        ]
        assert await warnings(api, other) == []


async def test_no_request_waits_for_a_line_or_fails_with_it_and_it_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", series=1)) as api:
        task, add, refused = await new_task(api), api.backend.events.add, asyncio.Event()

        async def busy(batch: EventBatch) -> Any:
            if batch.logs:
                refused.set()
                raise EventStoreBusy("a full disk", overloaded=False)
            return await add(batch)

        monkeypatch.setattr(api.backend.events, "add", busy)
        answer = await send(api, *points(task, 1, variant="a"), *points(task, 1, variant="b"))
        assert answer.json()["data"]["added"] == 1

        async with asyncio.timeout(PATIENCE):
            await refused.wait()
        monkeypatch.undo()
        assert api.backend.quotas is not None
        for job in api.backend.quotas.jobs():
            job.wake()
        assert len(await told(api, task)) == 1


@pytest.mark.test
async def test_tasks_that_were_deleted_or_published_meanwhile_get_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_quotas(tmp_path / "data", Quota("task", series=1)) as api:
        writing = api.backend.quotas.jobs()[1]  # type: ignore[union-attr]
        monkeypatch.setattr(writing, "wake", lambda: None)
        gone, published, there = [await new_task(api) for _ in range(3)]
        for task in (gone, published, there):
            await send(api, *points(task, 1, variant="a"), *points(task, 1, variant="b"))
        await api.call("tasks.delete", {"task": gone, "force": True})
        await api.call("tasks.publish", {"task": published, "force": True})
        monkeypatch.undo()
        writing.wake()
        assert len(await told(api, there)) == 1
        assert await warnings(api, published) == []
        kept = await api.backend.events.usage(api.company)
        assert {owner.id for owner in kept.owners} == {published, there}
