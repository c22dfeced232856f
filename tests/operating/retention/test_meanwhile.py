"""Retention while the server is killed, written to, and backed up."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from typing import Any, cast

import pytest
from arro3.io import read_parquet

from apiserver.events.model import EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.making import make
from apiserver.operating.backup.restoring import restore, verify
from apiserver.operating.retention.deleting import delete
from apiserver.settings.retention_rules import RetentionRule
from apiserver.settings.settings import Settings
from apiserver.stores.documents.query import Update
from tests.contract.event_stores import batch, lines, messages
from tests.harness import Served, running_api, served, wait_until
from tests.operating.backup.conftest import quiet
from tests.operating.retention.stores import NotedFiles

COMPANY = Settings().company
DAY = 86_400_000
TASKS, LINES = 40, 30


async def filled(data: Path) -> list[str]:
    """The ids of tasks whose lines are one old and one new by turns."""
    ids = []
    async with running_api(data) as api:
        now = int(time.time() * 1000)
        for n in range(TASKS):
            ids.append((await api.call("tasks.create", {"name": str(n), "type": "training"}))["id"])
            texts = [f"{ids[-1]} {line}" for line in range(LINES)]
            times = [now - 100 * DAY * (line % 2) - line for line in range(LINES)]
            await api.backend.events.add(batch(lines(texts, timestamps=times, owner=Owner(COMPANY, ids[-1]))))
        made = Update(set={"created": "2020-01-01T00:00:00+00:00", "status": "completed"})
        await api.backend.documents.update("tasks", {}, made, many=True)
    return ids


async def stored(data: Path, ids: list[str]) -> list[str]:
    async with running_api(data) as api:
        return [
            message
            for id in ids
            for message in await messages(api.backend.events, SeriesQuery(Owner(COMPANY, id), EventType.LOG))
        ]


async def once_more(data: Path, archive: Path) -> None:
    """What the next run of retention does."""
    rules = (RetentionRule(("logs",), "90 d"),)
    kept = Settings(data=data, retention=rules, retention_archive=str(archive))
    async with running_api(data) as api:
        stores = api.backend.events, api.backend.documents
        files = cast(FileDeletions, NotedFiles())
        assert await delete(kept, *stores, files, lambda gone: None, gently=False) == []


def archived(folder: Path) -> list[str]:
    return [
        str(message)
        for path in folder.rglob("*.parquet")
        for of in read_parquet(path)
        for message in of.column("msg").to_pylist()
    ]


def settings(archive: Path) -> dict[str, Any]:
    return {
        "retention": '[{"types": ["logs"], "keep": "90 d"}]',
        "retention_every": 1,
        "retention_archive": str(archive),
    }


def has_ended(server: Served) -> bool:
    with server.client() as client:
        return client.get("/health").json()["retention"]["ended"] is not None


@pytest.mark.test
def test_a_server_that_is_killed_again_and_again_loses_no_line_and_archives_none_twice(
    tmp_path: Path, dice: random.Random
) -> None:
    """After the kills a client sends new lines, and a backup is made, while retention goes on."""
    data, archive = tmp_path / "data", tmp_path / "archive"
    ids = asyncio.run(filled(data))
    sent = [f"{id} {line}" for id in ids for line in range(LINES)]
    with served(data, **settings(archive)) as server:
        for kill in range(3):
            wanted = (kill + 1) * dice.randrange(1, TASKS // 4)
            wait_until(lambda: len(list(archive.rglob("*.parquet"))) >= wanted)  # noqa: B023
            server.kill()
            server.start()
        with server.client() as client:
            for id in ids[::3]:
                event = {"type": "log", "task": id, "msg": f"{id} late", "timestamp": int(time.time() * 1000)}
                assert client.post("/events.add", json=event).status_code == 200
                sent.append(f"{id} late")
        made = make(Settings(data=data), Folder(tmp_path / "backups"), quiet())
        wait_until(lambda: has_ended(server))
        server.stop()
    assert sorted(asyncio.run(stored(data, ids)) + archived(archive)) == sorted(sent)
    asyncio.run(once_more(data, archive))  # a task whose log grew while retention read it is left for the next time
    left, gone = asyncio.run(stored(data, ids)), archived(archive)
    assert sorted(left + gone) == sorted(sent)
    assert sorted(gone) == sorted(f"{id} {line}" for id in ids for line in range(1, LINES, 2))
    assert not list(archive.rglob("*.going.parquet*"))
    restore(Folder(tmp_path / "backups"), made.manifest, tmp_path / "restored", quiet())
    assert list(verify(Settings(), made.manifest, tmp_path / "restored", quiet())) == []
    back = asyncio.run(stored(tmp_path / "restored", ids))
    assert set(left) <= set(back)
    assert len(back) == len(set(back))
    assert set(back) | set(gone) == set(sent)
