"""Backups that a served process makes by itself."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from apiserver.operating.backup import manifest
from apiserver.operating.backup.checking import check
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.forgetting import forget
from apiserver.operating.backup.schedule import ScheduledBackups
from apiserver.operating.backup.storage import BackupError
from apiserver.settings.settings import Settings
from tests.harness import Served, served, wait_until
from tests.operating.backup.conftest import backed_up, quiet


def told(server: Served) -> dict[str, Any]:
    """What `/health` tells of backups."""
    with server.client() as client:
        answer = client.get("/health")
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
        assert told(server)["why"] == "the destination cannot be listed: Not a directory"
        assert number(server, "apiserver_backup_well") == 0
        assert "a backup waits: " in server.log.read_text()


@pytest.mark.anyio
async def test_old_backups_are_deleted_and_a_new_one_is_made_when_the_newest_is_old(data: Path, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "backups")
    names = [backed_up(data, folder.root).name for _ in range(2)]
    settings = Settings(data=data, backup_to=str(folder.root), backup_every=1, backup_keep=2)
    clock = [time.time()]
    backups = ScheduledBackups(settings, clock=lambda: clock[0])
    await backups.make_if_due()
    assert manifest.names(folder) == names
    clock[0] += 3600
    await backups.make_if_due()
    assert manifest.names(folder)[0] == names[1]
    assert len(manifest.names(folder)) == 2
    clock[0] += 2 * 3600
    assert backups.state == "late"


@pytest.mark.anyio
async def test_no_backup_is_made_when_somebody_has_just_made_one_by_the_command(data: Path, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "backups")
    backups = ScheduledBackups(Settings(data=data, backup_to=str(folder.root), backup_every=1))
    backups._newest, backups._looks = time.time() - 2 * 3600, False
    by_hand = backed_up(data, folder.root).name
    await backups.make_if_due()
    assert manifest.names(folder) == [by_hand]
    assert backups.newest == manifest.time_of(by_hand)


@pytest.mark.anyio
async def test_backups_that_are_ahead_do_not_count_until_the_clock_has_come_there(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Folder(tmp_path / "backups")
    day = 24 * 3600
    made = manifest.time_of(backed_up(data, folder.root).name)
    clock = [made + 60]
    settings = Settings(data=data, backup_to=str(folder.root), backup_every=1, backup_keep=1)
    backups = ScheduledBackups(settings, clock=lambda: clock[0])
    await backups.make_if_due()
    assert backups.gauges()["backup_newest_seconds"][1]() == made
    clock[0] = made - day / 2
    assert backups.report() == {"state": "ok", "newest": None, "why": None}
    asked = []

    async def make() -> None:
        """Make a backup as the clock says, and delete old ones."""
        now = datetime.fromtimestamp(clock[0], UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        monkeypatch.setattr(manifest, "moment", lambda: now)
        asked.append(backed_up(data, folder.root).name)
        forget(folder, 1, clock[0])

    monkeypatch.setattr(backups, "make", make)
    for _ in range(3):  # the backup that was made does count, and is not deleted for the one that is ahead
        await backups.make_if_due()
    assert manifest.names(folder)[:-1] == asked
    assert backups.newest == manifest.time_of(asked[0])
    assert (
        f"do not count until the clock has come there: 1, the last one is {manifest.names(folder)[-1]}" in caplog.text
    )
    clock[0] += 3600
    await backups.make_if_due()
    assert len(asked) == 2
    assert manifest.names(folder)[:-1] == asked[1:]
    clock[0] = made + 60
    restarted = ScheduledBackups(settings, clock=lambda: clock[0])
    await restarted.make_if_due()
    assert restarted.newest == made
    forget(folder, 1, clock[0])
    assert [manifest.time_of(name) for name in manifest.names(folder)] == [made]


@pytest.mark.anyio
async def test_after_a_failure_the_newest_backup_is_told_still(data: Path, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "backups")
    made = manifest.time_of(backed_up(data, folder.root).name)
    clock = [made + 1]
    settings = Settings(data=data, backup_to=str(folder.root), backup_every=1)
    backups = ScheduledBackups(settings, clock=lambda: clock[0])
    await backups.make_if_due()
    before = backups.report()
    assert before["newest"] is not None
    clock[0] = made + 3601
    folder.root.rename(tmp_path / "elsewhere")
    (tmp_path / "backups").write_text("this is no folder")
    with pytest.raises(BackupError):
        await backups.make_if_due()
    why = "the destination cannot be listed: Not a directory"
    assert backups.report() == {"state": "failed", "newest": before["newest"], "why": why}
    assert backups.gauges()["backup_newest_seconds"][1]() == made
    (tmp_path / "backups").unlink()
    backups._attempts._next = 0
    await backups.make_if_due()  # it looks again: the destination is another one now
    assert backups.state == "ok"
    assert len(manifest.names(folder)) == 1


@pytest.mark.anyio
async def test_a_backup_after_which_nothing_can_be_deleted_is_not_made_again_at_each_try(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Folder(tmp_path / "backups")
    folder.write("manifests/notes.txt", b"")
    settings = Settings(data=data, backup_to=str(folder.root), backup_every=1, backup_keep=1)
    clock = [now := time.time()]
    backups = ScheduledBackups(settings, clock=lambda: clock[0])
    backups._newest, backups._looks = now - 2 * 3600, False
    with caplog.at_level(logging.WARNING):
        await backups.make_if_due()
    assert (
        "deleting older ones failed: nothing is deleted while there are 1 names like manifests/notes.txt" in caplog.text
    )
    assert backups.state == "ok"
    clock[0] += 1800
    await backups.make_if_due()
    assert len(manifest.names(folder)) == 1


@pytest.mark.anyio
async def test_why_the_command_failed_is_told_without_paths(data: Path, tmp_path: Path) -> None:
    """Anybody may read /health. The log has the whole message."""
    folder = Folder(tmp_path / "backups")
    (tmp_path / "backups").mkdir(mode=0o700)
    backups = ScheduledBackups(Settings(data=data, backup_to=str(folder.root)))
    with folder.owned(), pytest.raises(BackupError, match=f"another backup to {folder.root} is under way"):
        await backups.make_if_due()
    assert backups.report()["why"] == "another backup to the destination is under way"
    (data / "formats.json").write_text('{"release": "9.0.0", "formats": {"folder": 99}}')
    backups._attempts._next = 0
    with pytest.raises(BackupError) as failure:
        await backups.make_if_due()
    assert str(tmp_path) in str(failure.value)
    assert backups.report()["why"] == "the data folder cannot be used"
