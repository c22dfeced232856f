"""Retention that a server does by itself, and by the command."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from apiserver.cli import main
from apiserver.common.times import from_now
from apiserver.events.model import EventType, Owner
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.retention import schedule
from apiserver.operating.retention.run import RetentionError
from apiserver.operating.retention.schedule import ScheduledRetention
from apiserver.settings.retention_rules import RetentionRule
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Update
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.contract.event_stores import batch, lines, sample
from tests.contract.plain_event_store import PlainEventStore
from tests.harness import Api, Served, running_api
from tests.operating.retention.stores import NotedFiles

pytestmark = pytest.mark.anyio

COMPANY = Settings().company
RULES = (RetentionRule(("logs",), "90 d"), RetentionRule(("images",), "1 iteration"))
YEAR = 365 * 86_400_000


async def filled(api: Api) -> str:
    """A task of a year ago, with an old line and a new one, and two images whose files are here."""
    task = (await api.call("tasks.create", {"name": "old", "type": "training"}))["id"]
    await api.backend.documents.find_and_update(
        "tasks", {"id": task}, Update(set={"created": "2020-01-01T00:00:00+00:00", "status": "completed"})
    )
    now, owner = int(time.time() * 1000), Owner(COMPANY, task)
    images = []
    for n in range(2):
        assert (await api.raw("PUT", f"/files/p/{n}.png", content=b"png")).status_code == 200
        url = b'{"url": "http://testserver/files/p/%d.png"}' % n
        images.append(sample(n, type=EventType.IMAGE, timestamp=now, document=url, owner=owner))
    await api.backend.events.add(batch(lines(["old", "new"], timestamps=[now - YEAR, now], owner=owner), *images))
    return str(task)


async def counts(api: Api, task: str) -> tuple[int, int]:
    """How many lines and images the task has."""
    lines, images = [
        await api.backend.events.events_count(Owner(COMPANY, task), [type]) for type in (EventType.LOG, EventType.IMAGE)
    ]
    return lines, images


async def told(api: Api) -> dict[str, Any]:
    answer: dict[str, Any] = (await api.raw("GET", "/health")).json()["retention"]
    return answer


@pytest.mark.test
async def test_a_server_deletes_when_that_is_due_and_tells_of_it(tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    async with running_api(data) as api:
        task = await filled(api)
        assert "retention" not in (await api.raw("GET", "/health")).json()
    settings: dict[str, Any] = {"retention": RULES, "retention_every": 24, "retention_archive": str(archive)}
    async with running_api(data, **settings) as api:
        await until(api, lambda told: told["ended"] is not None)
        assert await counts(api, task) == (1, 1)
        assert (await told(api))["state"] == "ok"
        assert (await told(api))["events"] == 2
        metrics = (await api.raw("GET", "/metrics")).text
        assert "apiserver_retention_events 2\n" in metrics
        assert "apiserver_retention_well 1.0\n" in metrics
        await api.backend.file_deletions.work()
        assert [(await api.raw("GET", f"/files/p/{n}.png")).status_code for n in range(2)] == [404, 200]
        ended = (await told(api))["ended"]
    assert sorted(path.name.partition("-")[0] for path in archive.rglob("*.parquet")) == ["images", "logs"]
    async with running_api(data, **settings) as api:
        await until(api, lambda told: told["ended"] is not None)
        assert (await told(api))["ended"] == ended
        audit = (await api.raw("GET", "/data/audit.json?action=retention.")).json()
    assert [(line["action"], line["what"]) for line in audit] == [
        ("retention.delete", {"project": "", "tasks": 1, "logs": 1, "images": 1})
    ]


@pytest.mark.test
async def test_a_failure_is_told_and_nothing_goes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (tmp_path / "archive").write_text("this is no folder")
    async with running_api(data) as api:
        task = await filled(api)
    archive = str(tmp_path / "archive")
    async with running_api(data, retention=RULES, retention_every=24, retention_archive=archive) as api:
        await until(api, lambda told: told["state"] == "failed")
        assert await counts(api, task) == (2, 2)
        assert "apiserver_retention_well 0.0\n" in (await api.raw("GET", "/metrics")).text


async def test_a_project_that_is_not_there_and_an_archive_that_cannot_be_are_said_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("this is no folder")
    async with running_api(tmp_path / "data") as api:
        await api.call("projects.create", {"name": "lab/vision"})
    rules = tuple(RetentionRule(("logs",), "90 d", project) for project in ("lab/vision", "lab/visoin", "*/none", ""))
    archive = str(tmp_path / "file" / "archive")
    with caplog.at_level(logging.WARNING, "apiserver.server.opening"):
        settings: dict[str, Any] = {"retention": rules, "retention_every": 24, "retention_archive": archive}
        async with running_api(tmp_path / "data", **settings):
            pass
    assert [record.getMessage() for record in caplog.records if record.name == "apiserver.server.opening"] == [
        "retention: rule 2: there is no project 'lab/visoin'",
        f"retention_archive: '{archive}' cannot be written to: Not a directory",
    ]


@pytest.mark.test
@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_the_command_names_an_archive_that_cannot_be_once(
    dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    asyncio.run(_fill(data))
    rules = [{"types": ["logs"], "keep": "90 d", **one} for one in ({"project": "lab"}, {}, {"project": "lab/a"})]
    command = ["retention", "--data", str(data), "--retention", json.dumps(rules), "--retention-archive", "/proc/a"]
    assert main([*command, *dry]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "apiserver: warning: retention: rule 3 never counts: rule 1 comes first, and fits all that it fits",
        "apiserver: warning: retention: rule 1: there is no project 'lab'",
        "apiserver: warning: retention: rule 3: there is no project 'lab/a'",
        "apiserver: retention_archive: '/proc/a' cannot be written to: No such file or directory",
    ]


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[DocumentStore]:
    store = SqliteDocumentStore(tmp_path / "documents.db")
    await store.open()
    yield store
    await store.close()


def scheduled(documents: DocumentStore, **clocks: Callable[[], float]) -> ScheduledRetention:
    settings = Settings(retention=RULES, retention_every=24)
    files = cast(FileDeletions, NotedFiles())
    return ScheduledRetention(settings, PlainEventStore(), documents, files, lambda entry: None, None, **clocks)


async def run_ended(documents: DocumentStore, seconds_from_now: float) -> None:
    """Note that another server has deleted."""
    last = {"ended": from_now(seconds_from_now), "events": 7, "tasks": 1, "failures": 0}
    noted = {"id": "retention", "until": "", "last": last}
    await documents.update("retention", {"id": "retention"}, Update(set=noted), upsert=noted)


async def test_an_end_that_a_wrong_clock_noted_stops_no_runs(documents: DocumentStore) -> None:
    retention = scheduled(documents)
    await run_ended(documents, 60)  # clocks may differ by that
    await retention.look()
    assert (retention.events, retention.state) == (7, "ok")
    assert retention.ended > time.time()
    await run_ended(documents, 365 * 86400)
    await retention.look()
    assert (retention.events, retention.state) == (0, "ok")
    assert 0 < retention.ended <= time.time()


async def test_a_failure_is_over_when_another_server_has_done_it(
    documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    retention = scheduled(documents)

    async def fails(*how: Any, **more: Any) -> list[str]:
        raise RetentionError("the disk is full")

    monkeypatch.setattr(schedule, "delete", fails)
    with pytest.raises(RetentionError):
        await retention.look()
    assert retention.state == "failed"
    await run_ended(documents, -60)  # it began before this one failed
    await retention.look()
    assert retention.state == "failed"
    await run_ended(documents, 1)
    await retention.look()
    assert retention.state == "ok"


async def test_a_failure_is_tried_again_in_ten_minutes_whatever_the_clock_says(
    documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, clock, running = list[float](), [time.time()], [1000.0]
    retention = scheduled(documents, clock=lambda: clock[0], running=lambda: running[0])

    async def fails(*how: Any, **more: Any) -> list[str]:
        tried.append(running[0])
        if len(tried) < 3:
            raise RetentionError("the disk is full")
        return []

    monkeypatch.setattr(schedule, "delete", fails)
    with pytest.raises(RetentionError):
        await retention.look()
    clock[0] += 30 * 86400  # the clock is set forward: no storm of tries
    await retention.look()
    assert len(tried) == 1
    clock[0] -= 60 * 86400  # the clock is set back: it is tried all the same
    running[0] += schedule.RETRY
    with pytest.raises(RetentionError):
        await retention.look()
    assert retention.state == "failed"
    clock[0] -= 86400
    running[0] += schedule.RETRY
    await retention.look()
    assert len(tried) == 3
    assert retention.state == "ok"


async def until(api: Api, is_so: Any) -> None:
    async with asyncio.timeout(120):
        while not is_so(await told(api)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_rules_alone_delete_nothing(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", retention=RULES) as api:
        task = await filled(api)
        assert "retention" not in (await api.raw("GET", "/health")).json()
        assert await counts(api, task) == (2, 2)


@pytest.mark.test
def test_the_command_says_what_goes_and_deletes_just_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    task = asyncio.run(_fill(data))
    config = tmp_path / "apiserver.toml"
    config.write_text(
        'retention = [{types = ["logs"], keep = "90 d"}, {types = ["images"], keep = "1 iteration"}]\n'
        f'retention_archive = "{tmp_path}/archive"\n'
    )
    command = ["retention", "--data", str(data), "--config", str(config)]
    assert main([*command, "--dry-run", "--json"]) == 0
    planned = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["task"], one["type"], one["events"]) for one in planned] == [
        (task, "images", 1),
        (task, "logs", 1),
    ]
    assert not (tmp_path / "archive").exists()
    assert main([*command, "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == planned
    assert len(list((tmp_path / "archive").rglob("*.parquet"))) == 2
    assert main(command) == 0
    assert capsys.readouterr().out == "deleted: 0 events of 0 tasks\n"
    assert main(["audit", "--data", str(data), "--action", "retention."]) == 0
    assert '"logs": 1' in capsys.readouterr().out


async def _fill(data: Path) -> str:
    async with running_api(data) as api:
        return await filled(api)


def test_the_command_needs_rules_and_a_folder_that_no_server_uses(
    server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["retention", "--data", str(server.data), "--dry-run"]
    assert main(command) == 2
    assert "retention: there are no rules" in capsys.readouterr().err
    rules = ["--retention", '[{"types": ["logs"], "keep": "90 d"}]']
    assert main([*command, *rules]) == 1
    assert re.search("in use by .*: a server that runs answers the same at /data/retention", capsys.readouterr().err)
    assert main([*command[:-1], *rules]) == 1
    assert re.search("in use by .*: stop the server, or let it delete by itself", capsys.readouterr().err)
