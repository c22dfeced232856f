"""Files that deleted images showed go though a run is cut short, and only if nothing needs them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from apiserver.cli import main
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.retention import due
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.shown_files import ShownFiles
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.events.base import EventStoreBusy
from tests.contract.document_stores import store
from tests.contract.event_stores import batch, lines
from tests.contract.plain_event_store import PlainEventStore
from tests.harness import PATIENCE, running_api
from tests.operating.retention.stores import COMPANY, IMAGES, LOGS, OWNER, Stores
from tests.operating.retention.test_run import OLD, image
from tests.operating.retention.test_schedule import filled

__all__ = ["store"]

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stores(store: DocumentStore) -> AsyncIterator[Stores]:
    """Documents on each engine, and plain events."""
    events = PlainEventStore()
    await events.open()
    yield Stores(events, store)
    await events.close()


def shown(stores: Stores) -> ShownFiles:
    return ShownFiles(stores.events, stores.documents, cast(FileDeletions, stores.files), stores.bounds)


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_run_that_is_killed_leaves_no_files_for_good(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    """It is killed just before the images are deleted, or just after. The next run goes by any rules."""
    await stores.task()
    await stores.events.add(batch(*map(image, range(4))))
    real = stores.events.delete_samples

    class Killed(BaseException):
        pass

    async def delete_samples(*asked: Any) -> int:
        if is_deleted:
            await real(*asked)
        raise Killed

    begun = time.time_ns()
    with monkeypatch.context() as patch:
        patch.setattr(stores.events, "delete_samples", delete_samples)
        with pytest.raises(Killed):
            await stores.run(IMAGES)
    killed = time.time_ns()
    assert stores.files.names == set()
    await stores.run(LOGS)
    assert stores.files.names == ({"/0.png", "/1.png"} if is_deleted else set())
    assert all(begun <= before <= killed for before in stores.files.before)  # what is uploaded since then stays
    await stores.run(IMAGES)
    assert stores.files.names == {"/0.png", "/1.png"}
    assert await stores.documents.count("retention_files", {}) == 0


async def test_files_that_were_left_and_are_needed_again_stay(stores: Stores) -> None:
    await stores.task()
    files = shown(stores)
    await files.note(OWNER, [f"http://localhost:8081/{n}.png" for n in range(3)])
    await stores.events.add(batch(image(9, "http://localhost:8081/1.png")))
    await stores.documents.insert("models", [{"id": "model", "company": COMPANY, "uri": "http://localhost/2.png"}])
    await stores.run(LOGS)
    assert stores.files.names == {"/0.png"}


async def test_files_that_were_left_and_cannot_be_looked_at_are_told_and_keep_nothing_from_going(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stores.task()
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))
    files = shown(stores)
    await files.note(OWNER, ["http://localhost:8081/0.png"])

    async def fails(*asked: Any) -> set[str]:
        raise EventStoreBusy("a node is away")

    with monkeypatch.context() as patch:
        patch.setattr(due, "unneeded_files", fails)
        (gone,) = await stores.run(LOGS)
    assert (gone.events, stores.failures) == (1, ["files of task task: a node is away"])
    await stores.run(LOGS)
    assert stores.files.names == {"/0.png"}


async def test_many_urls_are_noted_some_at_a_time(stores: Stores) -> None:
    """MongoDB takes no document of more than 16 MB. URLs of other servers and of other tasks are not noted."""
    urls = {f"http://localhost:8081/{n:02}.png" for n in range(10)}
    others = {"s3://bucket/0.png", f"http://localhost:8081/p/other.{'0' * 32}/x.png"}
    stores.bounds = RetentionBounds(note_characters=100)
    files = shown(stores)
    await files.note(OWNER, urls | others)
    notes = await stores.documents.find("retention_files", {})
    assert sorted(url for note in notes for url in note["urls"]) == sorted(urls)
    assert {len(note["urls"]) for note in notes} == {3, 1}
    await stores.run(LOGS)
    assert len(stores.files.names) == 10


#: The command, which is killed when the events are deleted, and their files are not.
_KILLED = """
import os, signal, sys
from apiserver.cli import main
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.shown_files import ShownFiles

async def delete(self, shown):
    os.kill(os.getpid(), signal.SIGKILL)

ShownFiles.delete = delete
main(sys.argv[1:])
"""


@pytest.mark.test
def test_the_command_deletes_the_files_that_one_left_which_was_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"

    async def fill() -> None:
        async with running_api(data) as api:
            await filled(api)

    def files() -> list[str]:
        return sorted(path.name for path in (data / "files").rglob("*.png"))

    asyncio.run(fill())
    command = ["retention", "--data", str(data), "--retention", '[{"types": ["images"], "keep": "1 iteration"}]']
    killed = subprocess.run([sys.executable, "-c", _KILLED, *command], timeout=PATIENCE, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert files() == ["0.png", "1.png"]
    assert main(command) == 0
    assert files() == ["1.png"]
