"""Backups that a served process makes by itself."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from apiserver.operating.backup import manifest
from apiserver.operating.backup.checking import check
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.schedule import ScheduledBackups
from apiserver.settings import Settings, SettingsError, load
from tests.harness import Served, served, wait_until
from tests.operating.backup.conftest import backed_up, quiet


def told(server: Served) -> dict[str, Any]:
    """What `/health` tells of backups."""
    answer = httpx.get(f"{server.api_url}/health")
    assert answer.status_code == 200
    backup: dict[str, Any] = answer.json()["backup"]
    return backup


def number(server: Served, name: str) -> float:
    with server.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.split()[0] == name)


def test_a_server_makes_the_backup_that_is_due_and_not_again_after_a_restart(tmp_path: Path) -> None:
    destination = Folder(tmp_path / "backups")
    with served(tmp_path / "data", backup_to=str(destination.root), backup_keep=2) as server:
        wait_until(lambda: told(server)["newest"] is not None)
        (first,) = manifest.names(destination)
        assert told(server)["state"] == "ok"
        assert number(server, "apiserver_backup_newest_seconds") == manifest.time_of(first)
        assert number(server, "apiserver_backup_well") == 1
        assert "a backup was made: " in server.log.read_text()
        server.stop()
        server.start()
        wait_until(lambda: told(server)["newest"] is not None)
        assert manifest.names(destination) == [first]
    assert check(destination, quiet()) == []


def test_a_failure_is_told(tmp_path: Path) -> None:
    (tmp_path / "backups").write_text("this is no folder")
    with served(tmp_path / "data", backup_to=str(tmp_path / "backups")) as server:
        wait_until(lambda: told(server)["state"] == "failed")
        assert told(server)["newest"] is None
        assert number(server, "apiserver_backup_well") == 0
        assert "a backup waits: " in server.log.read_text()


@pytest.mark.anyio
async def test_old_backups_are_deleted_and_a_new_one_is_made_when_the_newest_is_old(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path / "backups")
    names = [backed_up(data, folder.root).name for _ in range(2)]
    backups = ScheduledBackups(Settings(data=data, backup_to=str(folder.root), backup_every=1, backup_keep=2))
    await backups._make_if_due()
    assert manifest.names(folder) == names
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    await backups._make_if_due()
    assert manifest.names(folder)[0] == names[1]
    assert len(manifest.names(folder)) == 2
    monkeypatch.setattr(time, "time", lambda: now + 3 * 3600)
    assert backups.state == "late"


@pytest.mark.anyio
async def test_a_backup_after_which_nothing_can_be_deleted_is_not_made_again_at_each_try(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Folder(tmp_path / "backups")
    folder.write("manifests/notes.txt", b"")
    backups = ScheduledBackups(Settings(data=data, backup_to=str(folder.root), backup_every=1, backup_keep=1))
    now = time.time()
    backups.newest = now - 2 * 3600
    with caplog.at_level(logging.WARNING):
        await backups._make_if_due()
    assert (
        "deleting older ones failed: nothing is deleted while there are 1 names like manifests/notes.txt" in caplog.text
    )
    assert backups.state == "ok"
    monkeypatch.setattr(time, "time", lambda: now + 1800)
    await backups._make_if_due()
    assert len(manifest.names(folder)) == 1


def test_engines_make_no_backups() -> None:
    with pytest.raises(SettingsError, match="backup_to: events or documents are not in the data folder"):
        load({"backup_to": "/backups", "events": "elasticsearch://es"})
