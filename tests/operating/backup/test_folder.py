"""A folder of backups in which there is more than backups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apiserver import cli
from apiserver.operating.backup import manifest, pieces
from apiserver.operating.backup.checking import check
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.forgetting import forget
from apiserver.operating.backup.manifest import Manifest
from apiserver.operating.backup.storage import BackupError
from tests.operating.backup.conftest import backed_up, quiet


@pytest.mark.parametrize("name", ["pieces", "manifests"])
def test_links_to_folders_of_others_are_not_followed(data: Path, destination: Path, tmp_path: Path, name: str) -> None:
    others = tmp_path / "others"
    (destination / name).rename(others)
    (others / "mine").write_text("mine")
    (destination / name).symlink_to(others)
    before = sorted(others.rglob("*"))
    folder = Folder(destination)
    for ask in (lambda: check(folder, quiet()), lambda: forget(folder, 1), lambda: backed_up(data, destination)):
        with pytest.raises(BackupError, match=f"{name} is a symbolic link"):
            ask()
    with pytest.raises(BackupError, match="is a symbolic link"):
        folder.write(f"{name}/new", b"")
    assert sorted(others.rglob("*")) == before


def test_the_folder_itself_may_be_a_link(data: Path, destination: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(destination)
    assert backed_up(data, tmp_path / "link").manifest.copied == 0
    assert check(Folder(tmp_path / "link"), quiet()) == []


def test_what_backups_did_not_write_is_named_and_stays(data: Path, destination: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ("ab" * 32)).write_text("mine")
    digest = "ab" * 32
    strays = [destination / "pieces" / name for name in ("notes.txt", digest, f"cd/{digest}", "ab/short.unfinished")]
    for path in strays:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (destination / "notes.unfinished").write_text("mine")
    (destination / "pieces" / "ef").symlink_to(outside)
    left = destination / f"{pieces.name_of(digest)}.unfinished"
    left.parent.mkdir(exist_ok=True)
    left.write_text("half")
    backed_up(data, destination)
    forget(Folder(destination), 1)
    assert not left.exists()
    assert all(path.read_text() == "mine" for path in [*strays, destination / "notes.unfinished", *outside.iterdir()])
    named = check(Folder(destination), quiet())
    expected = [*strays, destination / "pieces" / "ef"]
    assert sorted(map(str, named)) == sorted(
        f"{path.relative_to(destination)} is not the name of a piece" for path in expected
    )


def test_what_is_no_file_is_not_waited_for(destination: Path) -> None:
    folder = Folder(destination)
    (name, *_) = folder.sizes("pieces")
    folder.delete(name)
    os.mkfifo(destination / name)
    with pytest.raises(BackupError, match="is no file"):
        folder.read(name)
    folder.delete(name)
    (destination / name).symlink_to("/etc/passwd")
    with pytest.raises(BackupError, match="cannot be read"):
        folder.read(name)


def test_a_manifest_that_is_larger_than_any_backup_needs_is_refused(data: Path, destination: Path) -> None:
    folder = Folder(destination)
    (name,) = manifest.names(folder)
    largest = len(folder.read(name)) - 1
    with pytest.raises(BackupError, match=f"{name} is refused: it is larger than"):
        manifest.read(folder, name, largest)
    with pytest.raises(BackupError, match="there are too many files"):
        backed_up(data, destination, manifest_bytes=largest)
    assert manifest.names(folder) == [name]


def test_names_at_the_destination_cannot_write_to_a_terminal(
    data: Path, destination: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("manifests", "pieces"):
        (destination / os.fsdecode(f"{folder}/\x1b[2K\n".encode() + b"\xff")).write_text("")
    evil = Manifest(manifest.FORMAT, "0", manifest.moment(), 0.0, 0, {"\x1b[2K": 1}, [], [])
    manifest.write(Folder(destination), evil)
    backup = ["backup", str(destination)]
    for arguments in (["--list"], ["--check"], ["--data", str(data), "--fast", "--keep", "1"]):
        assert cli.main([*backup, *arguments]) == 1
        said = "".join(capsys.readouterr())
        assert "\x1b" not in said
        assert "\\x1b[2K" in said
