"""Backups of what is in engines, which are taken while two servers write to them, and restored into a folder."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from apiserver.events.changes import Cursor
from apiserver.events.model import EventType, Owner
from apiserver.events.queries import Range, SeriesQuery
from apiserver.operating.backup import working_copy
from apiserver.operating.backup.bounds import BackupBounds
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.making import make
from apiserver.operating.backup.restoring import restore
from apiserver.operating.backup.storage import BackupError
from apiserver.operating.backup.working_copy import _owned, left_in
from apiserver.server.bounds import Bounds
from apiserver.settings.settings import Settings, SettingsError
from apiserver.settings.sources import load
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.engines import document_engine, event_engine
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from apiserver.transfer.copying.events import EventCopy
from apiserver.transfer.copying.retrying import Say
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.engines.fixtures import own_engines
from tests.harness import Served, apiserver, run, served, wait_until
from tests.operating.backup.conftest import quiet
from tests.operating.backup.test_under_load import Uploader, assert_files
from tests.robustness.writers import LINES, Task, Writer, assert_stored, beside, new_task, writing
from tests.transfer.copying.test_events import content

BACKUPS = int(os.environ.get("EVENTS_KILLS", "1"))
#: Seconds that who writes waits after each batch or task: else the tests wait for what they write, and not for backups.
PAUSE = 0.03
ELSEWHERE: dict[str, Any] = {"events": "elasticsearch://es", "documents": "mongodb://mongo/db"}


@dataclass
class Coming:
    """Makes tasks with a few events, and deletes each second one."""

    server: Served
    kept: list[str] = field(default_factory=list)

    def run(self, stop: Event) -> None:
        """Go on until told to stop."""
        with self.server.client() as client:
            while not stop.is_set():
                task = self._call(client, "tasks.create", name="a task", type="training")["id"]
                common = {"task": task, "metric": "m", "variant": "v", "iter": 0}
                self._call(client, "events.add", type="training_stats_scalar", value=1.0, **common)
                self._call(client, "events.add", type="log", msg="line", **common)
                if len(self.kept) % 2:
                    self._call(client, "tasks.delete", task=task, force=True)
                    task = ""
                self.kept.append(task)
                stop.wait(PAUSE)

    def _call(self, client: httpx.Client, endpoint: str, **request: Any) -> dict[str, Any]:
        """Call until the server has room."""
        while (answer := client.post(f"/v2.34/{endpoint}", json=request)).status_code in (429, 503):
            pass
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data


def assert_all_of_it(server: Served, writers: Sequence[Writer], before: Sequence[int], after: Sequence[int]) -> None:
    """What was acknowledged before is there. Of batches that came meanwhile, what is there is whole; and summaries fit.

    A batch that is under way when the moment begins may have its points in it, and not yet its lines.
    """
    for writer, least, most in zip(writers, before, after, strict=True):
        task = Task(server, writer.task)
        stored = task.stored(writer)
        any_of_them = [writer.expected(count) for count in range(least, most + 2)]
        assert len(stored.lines) % LINES == 0
        assert stored.lines in [one.lines for one in any_of_them]
        assert stored.plots in [one.plots for one in any_of_them]
        for metric, points in stored.points.items():
            assert points in [one.points[metric] for one in any_of_them]
        last = {metric: values["count"] for metric, values in task.last_metrics(writer).items()}
        assert last == {metric: len(points) for metric, points in stored.points.items()}


def test_what_is_in_engines_is_backed_up_under_load(
    tmp_path: Path, dice: random.Random, engines: dict[str, Any]
) -> None:
    destination, data = tmp_path / "backups", tmp_path / "data"
    places = ["--events", engines["events"], "--documents", engines["documents"]]
    command = ["backup", destination, "--data", data, *places, "--work", tmp_path / "work", "--fast"]
    with ExitStack() as running:
        servers = [running.enter_context(served(data, **engines)) for _ in range(2)]
        shared = new_task(servers[0])
        writers = [
            Writer(server, task, f"{n}", pause=PAUSE)
            for n, server in enumerate(servers)
            for task in (new_task(server),)
        ]
        writers += [Writer(server, shared, f"shared {n}", pause=PAUSE) for n, server in enumerate(servers)]
        uploader, coming = Uploader(servers[0]), Coming(servers[1])
        with writing(writers), beside([uploader.run, coming.run]):
            for number in range(BACKUPS):
                goal = writers[0].acknowledged + dice.randrange(20, 60)
                wait_until(lambda goal=goal: writers[0].acknowledged >= goal)  # type: ignore[misc]
                killed = apiserver(*command)
                try:
                    killed.wait(dice.uniform(0.5, 6))
                except subprocess.TimeoutExpired:
                    killed.kill()
                killed.communicate()
                before = [writer.acknowledged for writer in writers]
                files, tasks = list(uploader.made), [task for task in coming.kept if task]
                run(*command)
                after = [writer.acknowledged for writer in writers]
                assert "all backups are well" in run("backup", destination, "--check")
                new = tmp_path / f"new{number}"
                assert "is what the backup says" in run("restore", destination, "--data", new, "--verify")
                assert "all well" in run("doctor", "--data", new)
                with served(new) as restored:
                    assert_all_of_it(restored, writers, before, after)
                    assert_files(restored, files)
                    for task in tasks:
                        assert restored.call("events.get_task_log", {"task": task})["total"] == 1
        assert not any(path.name.startswith(".working") for path in data.iterdir())
        assert all("Traceback" not in server.log.read_text() for server in servers)


@pytest.mark.anyio
async def test_a_copy_that_stays_takes_only_what_has_changed(
    tmp_path: Path, engines: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(data=tmp_path / "data", **engines)
    folder = DataFolder(settings.data)
    folder.make()
    events, documents = event_engine(settings).store(folder), document_engine(settings).store(folder)
    owners = {name: Owner("company", name) for name in ("same", "more", "over", "less", "gone", "new")}
    new = owners["new"]
    copied: set[str] = set()
    really = EventCopy.copy_type

    async def copy_type(self: EventCopy, owner: Owner, type: EventType, turns: asyncio.Semaphore) -> None:
        copied.add(owner.id)
        await really(self, owner, type, turns)

    async def restored(name: str, work: Path | None) -> list[list[str]]:
        """What a backup has, by owner."""
        backups = Folder(tmp_path / name)
        made = await asyncio.to_thread(make, settings, backups, quiet(), work=work)
        root = tmp_path / f"{name} {made.id}"
        restore(backups, made.manifest, root, quiet())
        store = EmbeddedEventStore(root / "events")
        await store.open()
        try:
            return [await content(store, owner) for owner in owners.values()]
        finally:
            await store.close()

    for store in (events, documents):
        await store.open()
    try:
        await documents.insert("tasks", [{"id": owner.id, "company": owner.company} for owner in owners.values()])
        for owner in owners.values():
            if owner != new:
                some = [sample(n, type=EventType.PLOT, owner=owner) for n in range(3)]
                await events.add(batch(scalars([1.0, 2.0], owner=owner), lines(["a", "b"], owner=owner), *some))
        assert await restored("kept", tmp_path / "work") == await restored("fresh", None)
        await events.add(batch(scalars([3.0], iters=[2], owner=owners["more"]), scalars([1.0], owner=new)))
        await events.add(batch(scalars([9.0], owner=owners["over"])))
        await events.delete_samples(SeriesQuery(owners["less"], EventType.PLOT), Range(0, 0))
        await events.delete([owners["gone"]])
        monkeypatch.setattr(EventCopy, "copy_type", copy_type)
        found = await restored("kept", tmp_path / "work")
        assert copied >= {"more", "over", "less", "new"}
        assert "same" not in copied
        assert found == await restored("fresh", None)
    finally:
        for store in (events, documents):
            await store.close()


def test_what_was_restored_goes_back_to_engines(
    tmp_path: Path, engines: dict[str, Any], elasticsearch_url: str, mongodb_url: str
) -> None:
    destination, data, new = tmp_path / "backups", tmp_path / "data", tmp_path / "new"
    places = [engines["events"], engines["documents"]]
    with served(data, **engines) as server:
        writers = [Writer(server, task, name) for task in (new_task(server), new_task(server)) for name in "ab"]
        with writing(writers):
            wait_until(lambda: all(writer.acknowledged >= 30 for writer in writers))
        run("backup", destination, "--data", data, "--events", places[0], "--documents", places[1])
    run("restore", destination, "--data", new, "--verify")
    with served(new):  # it brings summaries up to date; a server on engines does that within a minute
        pass
    with own_engines(elasticsearch_url, mongodb_url) as others:
        run("copy", "--from", new, "--to", others["events"], others["documents"])
        with served(new, **others) as server:
            for writer in writers:
                writer.server = server
            assert_stored(server, writers)


def test_a_server_makes_backups_of_engines_by_itself_and_only_one_of_its_workers(
    tmp_path: Path, engines: dict[str, Any]
) -> None:
    destination = Folder(tmp_path / "backups")
    settings = {**engines, "backup_to": str(destination.root), "workers": 2}
    often = Bounds(backup=BackupBounds(look_seconds=0.5))
    with served(tmp_path / "data", bounds=often, **settings) as server:
        wait_until(lambda: "a backup was made: " in server.log.read_text())
        with server.client() as client:
            wait_until(lambda: client.get("/health").json()["backup"]["newest"] is not None)
        assert len(list((destination.root / "manifests").iterdir())) == 1
        assert "another backup" not in server.log.read_text()


def test_one_engine_and_one_data_folder_are_refused(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data", events=ELSEWHERE["events"])
    with pytest.raises(BackupError, match=r"apiserver copy --to FOLDER"):
        make(settings, Folder(tmp_path / "backups"), quiet())
    with pytest.raises(SettingsError, match="backup_to: either events or documents are in the data folder"):
        load({"backup_to": "/backups", "documents": ELSEWHERE["documents"]})
    assert load({"backup_to": "/backups", **ELSEWHERE}).backup_to == "/backups"


def test_a_destination_that_cannot_be_used_is_told_before_anything_is_copied(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "backups").write_text("this is no folder")
    with pytest.raises(BackupError, match=r"backups cannot be used|backups cannot be"):
        make(Settings(data=tmp_path / "data", **ELSEWHERE), Folder(tmp_path / "backups"), quiet())


def test_engines_that_are_away_are_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    settings = Settings(
        data=tmp_path / "data", events="elasticsearch://127.0.0.1:1", documents="mongodb://127.0.0.1:1/d"
    )
    with pytest.raises(BackupError, match="Elasticsearch cannot be reached") as told:
        make(settings, Folder(tmp_path / "backups"), quiet())
    assert told.value.told == "what is in the engines cannot be copied"
    assert not (tmp_path / "data" / ".working_copy").exists()


def test_a_copy_ends_when_its_disk_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for room, and servers that share the disk would have none meanwhile."""
    (tmp_path / "data").mkdir()
    ended: list[bool] = []

    async def copied(settings: Settings, copied: Settings, say: Say) -> Cursor:
        copied.data.mkdir()
        monkeypatch.setattr(working_copy, "free_bytes", lambda folder: 0)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    monkeypatch.setattr(working_copy, "copy_stores", copied)
    with pytest.raises(BackupError, match=r"there is too little room in .*data for a copy"):
        make(Settings(data=tmp_path / "data", **ELSEWHERE), Folder(tmp_path / "backups"), quiet())
    assert ended == [True]
    assert not (tmp_path / "data" / ".working_copy").exists()


def test_two_copies_at_once_in_one_folder_are_refused(tmp_path: Path) -> None:
    with _owned(tmp_path), pytest.raises(BackupError, match="another backup makes its copy in"), _owned(tmp_path):
        pass
    with _owned(tmp_path):
        pass


def test_a_copy_counts_as_left_once_nobody_makes_it(tmp_path: Path) -> None:
    assert left_in(tmp_path) is None
    with _owned(tmp_path) as root:
        root.mkdir()
        (root / "secrets").write_bytes(b"12345")
        assert left_in(tmp_path) is None
    assert left_in(tmp_path) == (root, 5)


def test_nothing_is_copied_to_where_a_link_of_somebody_else_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".working_copy").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BackupError, match="is a link, or of another user"), _owned(tmp_path):
        pass


def test_a_copy_that_would_be_backed_up_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    settings, backups = Settings(data=tmp_path / "data", **ELSEWHERE), Folder(tmp_path / "backups")
    with pytest.raises(BackupError, match="lies in the data folder, all of which is backed up"):
        make(settings, backups, quiet(), work=tmp_path / "data" / "work")
