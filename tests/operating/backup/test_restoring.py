"""A restored folder is what was backed up, and nothing is written outside of it, whatever a backup says."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

import msgspec
import pytest

from apiserver.cli import main
from apiserver.operating.backup import manifest, pieces
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.manifest import Extent, File, Manifest, PieceUsed, Stamp
from apiserver.operating.backup.restoring import restore, verify
from apiserver.operating.backup.storage import BackupError
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder, DataFolderError
from tests.operating.backup.conftest import backed_up, damage, quiet


def restored(destination: Path, root: Path) -> Manifest:
    """The newest backup, after it was restored."""
    chosen = manifest.choose(Folder(destination), None).manifest
    restore(Folder(destination), chosen, root, quiet())
    return chosen


def test_a_restored_folder_has_every_file_and_is_well(data: Path, destination: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    made = restored(destination, new)
    for path in (new, *new.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    for path in data.rglob("files/**/*.*"):
        copy = new / path.relative_to(data)
        assert copy.read_bytes() == path.read_bytes()
        assert copy.stat().st_mtime_ns == path.stat().st_mtime_ns
    assert (new / "token_secret").read_text() == (data / "token_secret").read_text()
    assert verify(Settings(), made, new, quiet()) == []


def test_what_is_missing_or_damaged_is_found_when_it_is_read(destination: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    made = restored(destination, new)
    (new / "token_secret").unlink()
    (journal,) = new.glob("events/journal-*")
    content = bytearray(journal.read_bytes())
    content[-1] ^= 1
    journal.write_bytes(content)
    wrong = verify(Settings(), made, new, quiet())
    assert "is torn from byte " in wrong[0]
    assert [line.partition(":")[0] for line in wrong] == [
        *("events", "points in the journal", "log lines in the journal", "samples in the journal", "files"),
    ]


@pytest.mark.parametrize(("file", "table"), [("events/events.db", "scalars"), ("documents.db", "users")])
def test_verifying_a_damaged_database_says_all_that_is_wrong(
    destination: Path, tmp_path: Path, file: str, table: str
) -> None:
    new = tmp_path / "new"
    made = restored(destination, new)
    damage(new / file, table)
    *findings, last = verify(Settings(), made, new, quiet())
    assert findings
    assert f"{file} cannot be read: " in last


def test_a_folder_that_is_not_empty_stays_as_it_is(destination: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("mine")
    with pytest.raises(BackupError, match="is not empty"):
        restored(destination, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine"]


def test_no_server_starts_on_a_folder_that_was_not_restored_to_the_end(destination: Path, tmp_path: Path) -> None:
    (name, *_) = Folder(destination).sizes("pieces")
    (destination / name).write_bytes(b"damaged")
    with pytest.raises(BackupError, match="is damaged"):
        restored(destination, tmp_path / "new")
    with pytest.raises(DataFolderError, match="was not restored to the end"):
        DataFolder(tmp_path / "new").make()


def test_a_disk_that_loses_what_was_restored_is_told(
    destination: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing to the page cache was well, and `os.sync` says nothing. No server starts on that folder."""
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    root = tmp_path / "restored"
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(BackupError, match="Input/output error"):
            restored(destination, root)
    with pytest.raises(DataFolderError, match="was not restored to the end"):
        DataFolder(root).make()


def test_no_command_uses_a_folder_that_was_not_restored_to_the_end(
    destination: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files have the right lengths and no content yet, so whoever looks at them would say that they are damaged."""
    (name, *_) = Folder(destination).sizes("pieces")
    (destination / name).write_bytes(b"damaged")
    new = tmp_path / "new"
    with pytest.raises(BackupError, match="is damaged"):
        restored(destination, new)
    (new / "formats.json").write_bytes(b"")
    said = f"'{new}' was not restored to the end; delete it, and restore it again"
    for command, code in (
        (["doctor"], 2),
        (["backup", str(tmp_path / "other backups")], 1),
        (["migrate", "--dry-run"], 1),
        (["audit"], 1),
        (["user", "list"], 1),
    ):
        assert main([*command, "--data", str(new)]) == code, command
        assert said in capsys.readouterr().err, command
    assert not list((tmp_path / "other backups").glob("manifests/*"))


def of_an_attacker(destination: Path, files: list[File], blocks: list[bytes]) -> Folder:
    """A destination with a manifest and a piece that an attacker made, with right checksums."""
    folder = Folder(destination)
    content = pieces.encode(blocks, [hashlib.sha256(block).digest() for block in blocks])
    sha256 = hashlib.sha256(content).hexdigest()
    folder.write(pieces.name_of(sha256), content)
    used = [PieceUsed(sha256, len(content), len(blocks), "")]
    manifest.write(folder, Manifest(1, "0", manifest.moment(), 0.0, 0, {}, used, files))
    return folder


@pytest.mark.parametrize(
    "path",
    ["../outside", "a/../../outside", "/outside", "a//outside", ".", "", "a/./b", "..", "a/..", "nul\0nul", "a/"],
)
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    folder = of_an_attacker(tmp_path / "backups", [File(path, 4, Stamp(), [Extent(0, 0, 1, 4)])], [b"evil"])
    with pytest.raises(BackupError, match="has the path"):
        restored(folder.root, tmp_path / "new")
    assert {one.name for one in tmp_path.iterdir()} == {"backups"}


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ([File("a", 4, Stamp(), [Extent(0, 0, 1, 4)])] * 2, "has the path"),
        (
            [File("a", 4, Stamp(), [Extent(0, 0, 1, 4)]), File("a/b", 4, Stamp(), [Extent(0, 0, 1, 4)])],
            "cannot be written",
        ),
        ([File("a", 5, Stamp(), [Extent(0, 0, 1, 4)])], "is not as large as its blocks"),
        ([File("a", 5, Stamp(), [Extent(0, 0, 1, 5)])], "is not as large as its blocks"),
        ([File("a", 2**62, Stamp(), [Extent(0, 0, 1, 2**62)])], "there is no room"),
        ([File("a", 4, Stamp(), [Extent(1, 0, 1, 4)])], "refers to no piece"),
        ([File("a", 4, Stamp(), [Extent(-1, 0, 1, 4)])], "refers to no piece"),
        ([File("a", 4, Stamp(), [Extent(0, 0, 2, 4)])], "blocks that its piece does not have"),
        ([File("a", 4, Stamp(), [Extent(0, -1, 1, 4)])], "blocks that its piece does not have"),
        ([File("a", -4, Stamp(), [Extent(0, 0, 1, -4)])], "refers to no piece"),
        ([File("a", 4, Stamp(2**63 - 1), [Extent(0, 0, 1, 4)])], "has no possible time"),
        ([File("x" * 5000, 4, Stamp(), [Extent(0, 0, 1, 4)])], "cannot be written"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path: Path, files: list[File], error: str) -> None:
    folder = of_an_attacker(tmp_path / "backups", files, [b"evil"])
    with pytest.raises(BackupError, match=error):
        restored(folder.root, tmp_path / "new")
    assert {one.name for one in tmp_path.iterdir()} <= {"backups", "new"}


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"format": 1}', b"[" * 10_000])
def test_what_is_no_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    name = f"manifests/20260101T000000.000Z-{hashlib.sha256(content).hexdigest()}.json"
    Folder(tmp_path / "backups").write(name, content)
    with pytest.raises(BackupError, match="is not a manifest that this version can read"):
        restored(tmp_path / "backups", tmp_path / "new")


def test_a_manifest_of_a_later_format_is_refused(destination: Path, tmp_path: Path) -> None:
    folder = Folder(destination)
    newest = manifest.choose(folder, None)
    folder.delete(newest.name)
    manifest.write(folder, msgspec.structs.replace(newest.manifest, format=2))
    with pytest.raises(BackupError, match="has format 2 of manifests, which apiserver"):
        restored(destination, tmp_path / "new")


@pytest.mark.parametrize("content", [b"", b"EVPIECE1", b"EVPIECE1\xff\xff\xff\xff", b"text" * 100])
def test_what_is_no_piece_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = Folder(tmp_path / "backups")
    sha256 = hashlib.sha256(content).hexdigest()
    folder.write(pieces.name_of(sha256), content)
    files = [File("a", 4, Stamp(), [Extent(0, 0, 1, 4)])]
    used = [PieceUsed(sha256, len(content), 1, "")]
    manifest.write(folder, Manifest(1, "0", manifest.moment(), 0.0, 0, {}, used, files))
    with pytest.raises(BackupError, match=sha256):
        restored(folder.root, tmp_path / "new")


def test_a_backup_is_chosen_by_the_beginning_of_its_time(destination: Path, data: Path) -> None:
    folder = Folder(destination)
    newest = backed_up(data, destination)
    assert manifest.choose(folder, None).name == newest.name
    assert manifest.choose(folder, newest.id).name == newest.name
    oldest = manifest.names(folder)[0].removeprefix("manifests/")
    assert manifest.choose(folder, oldest).name == f"manifests/{oldest}"
    assert manifest.choose(folder, newest.manifest.made).name == newest.name
    assert manifest.choose(folder, newest.manifest.made[:-1]).name == newest.name
    with pytest.raises(BackupError, match=f"2 backups begin with 2: say more of it, such as {newest.id}"):
        manifest.choose(folder, "2")
    oldest = oldest.partition("-")[0]
    with pytest.raises(BackupError, match=f"no backup begins with 1999: there are 2, from {oldest} to {newest.id}"):
        manifest.choose(folder, "1999")
    (destination / "manifests" / manifest.names(folder)[0].removeprefix("manifests/")).unlink()
    with pytest.raises(BackupError, match=f"no backup begins with 1999: there is only {newest.id};"):
        manifest.choose(folder, "1999")


def test_no_backup_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = str(tmp_path / "nothing")
    assert main(["backup", nothing, "--list"]) == 0
    assert capsys.readouterr().out == f"there is no backup at {nothing}\n"
    assert main(["restore", nothing, "--data", str(tmp_path / "new")]) == 1
    assert f"there is no backup at {nothing}: the command backup makes one" in capsys.readouterr().err
    assert main(["backup", nothing, "--check"]) == 1
    assert capsys.readouterr().err == f"apiserver: there is no backup at {nothing}\n"
