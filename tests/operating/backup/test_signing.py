"""Backups with a key: only who has it makes a backup that is restored, counts, or pushes out others."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from apiserver import cli
from apiserver.common import memory
from apiserver.common.times import iso_millis
from apiserver.operating.backup import manifest, pieces
from apiserver.operating.backup.checking import check
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.forgetting import forget
from apiserver.operating.backup.making import make
from apiserver.operating.backup.manifest import Manifest, Named
from apiserver.operating.backup.restoring import restore
from apiserver.operating.backup.schedule import ScheduledBackups
from apiserver.operating.backup.storage import BackupError
from apiserver.settings.settings import Settings
from tests.operating.backup.conftest import backed_up, quiet

KEY = b"a key that signs backups in these tests"


def folder_of(destination: Path, key: bytes = KEY) -> Folder:
    folder = Folder(destination)
    folder.key = key
    return folder


@pytest.fixture
def signed(tmp_path: Path) -> Named:
    """A small backup that is signed, of a minute ago."""
    made = iso_millis(round((time.time() - 60) * 1000))
    return manifest.write(folder_of(tmp_path / "backups"), empty(made))


def empty(made: str | None = None) -> Manifest:
    return Manifest(manifest.FORMAT, "0", made or manifest.moment(), 0.0, 0, {}, [], [])


def test_a_signed_backup_is_read_with_its_key_and_without_one(signed: Named, tmp_path: Path) -> None:
    for key in (KEY, b""):
        assert manifest.read(folder_of(tmp_path / "backups", key), signed.name).manifest == signed.manifest
    with pytest.raises(BackupError, match=f"{signed.name} is refused: it is not signed with your key"):
        manifest.read(folder_of(tmp_path / "backups", KEY + b"!"), signed.name)


@pytest.mark.parametrize("key", [b"", b"another key, which is as long as the right one"])
def test_a_backup_without_the_signature_is_refused_and_named(signed: Named, tmp_path: Path, key: bytes) -> None:
    destination = tmp_path / "backups"
    forged = manifest.write(folder_of(destination, key), empty())
    folder = folder_of(destination)
    assert any(forged.name in line and "not signed" in line for line in map(str, check(folder, quiet())))
    with pytest.raises(BackupError, match=forged.name):
        forget(folder, 1)
    with pytest.raises(
        BackupError, match=f"{forged.name} is refused: .*; name another one by --at, such as {signed.id}"
    ):
        manifest.choose(folder, None)
    assert set(manifest.names(folder)) == {signed.name, forged.name}
    assert manifest.choose(folder, signed.id).name == signed.name


def test_nothing_is_deleted_while_a_backup_that_would_go_is_not_signed(signed: Named, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "backups")
    a_minute_before = iso_millis(round((manifest.time_of(signed.name) - 60) * 1000))
    older = msgspec.structs.replace(empty(), made=a_minute_before)
    unsigned = manifest.write(Folder(tmp_path / "backups"), older)
    with pytest.raises(BackupError, match=f"nothing is deleted: {unsigned.name} is refused: it is not signed"):
        forget(folder, 1)
    assert manifest.names(folder) == [unsigned.name, signed.name]
    folder.delete(unsigned.name)
    manifest.write(folder, older)
    assert forget(folder, 1) == (1, 0)
    assert manifest.names(folder) == [signed.name]


def test_lists_and_checks_say_which_backups_are_signed(
    signed: Named, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = str(tmp_path / "backups")
    a_minute_before = iso_millis(round((manifest.time_of(signed.name) - 60) * 1000))
    unsigned = manifest.write(Folder(tmp_path / "backups"), msgspec.structs.replace(empty(), made=a_minute_before))
    assert cli.main(["backup", destination, "--list"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert [first.split()[0], second.split()[0]] == [unsigned.id, signed.id]
    assert [line.endswith(", signed") for line in (first, second)] == [False, True]
    assert cli.main(["backup", destination, "--check"]) == 0
    assert "signed: 1 of 2 backups; without the key, no signature is compared" in capsys.readouterr().err
    monkeypatch.setenv("APISERVER_BACKUP_KEY", KEY.decode())
    assert cli.main(["backup", destination, "--list"]) == 1
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()] == [signed.id]
    assert f"{unsigned.name} is refused: it is not signed with your key" in said.err


def test_a_signed_backup_cannot_be_given_another_moment(signed: Named, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "backups")
    later = signed.name.replace(signed.id, "20261124T235959.999Z")
    folder.write(later, folder.read(signed.name))
    with pytest.raises(BackupError, match="not signed with your key"):
        manifest.read(folder, later)


def test_a_backup_that_was_not_signed_does_not_keep_the_server_from_making_one(
    signed: Named, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    destination = tmp_path / "backups"
    later = manifest.time_of(signed.name) + 60
    a_minute_later = iso_millis(round(later * 1000))
    forged = manifest.write(Folder(destination), msgspec.structs.replace(empty(), made=a_minute_later))
    (destination / "manifests" / "notes.txt").write_text("")
    settings = Settings(backup_to=str(destination), backup_key=KEY.decode())
    with caplog.at_level(logging.WARNING):
        newest = ScheduledBackups(settings, clock=lambda: later).look()
    assert newest == manifest.time_of(signed.name)
    assert f"{forged.name} is refused" in caplog.text
    assert "manifests/notes.txt" in caplog.text


@pytest.mark.parametrize("end", [b"", b',"signature":"%b"}' % (b"0" * 64)])
def test_a_large_manifest_without_the_signature_takes_no_memory(tmp_path: Path, end: bytes) -> None:
    folder = folder_of(tmp_path / "backups")
    content = bytes(2**25) + end
    name = f"manifests/20261124T153000.125Z-{hashlib.sha256(content).hexdigest()}.json"
    folder.write(name, content)
    del content
    settings = Settings(backup_to=str(tmp_path / "backups"), backup_key=KEY.decode())
    tracemalloc.start()
    try:
        assert ScheduledBackups(settings).look() is None
        with pytest.raises(BackupError, match=f"{name} is refused: it is not signed with your key"):
            manifest.read(folder, name)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("key", [b"", KEY])
def test_a_large_manifest_is_read(tmp_path: Path, key: bytes) -> None:
    folder = folder_of(tmp_path / "backups", key)
    files = [manifest.File(f"files/{number}", 0, manifest.Stamp(), []) for number in range(100_000)]
    written = manifest.write(folder, msgspec.structs.replace(empty(), files=files))
    assert manifest.read(folder, written.name).manifest == written.manifest


def test_without_a_key_a_large_manifest_is_decoded_only_if_there_is_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [manifest.File(f"files/{number}", 0, manifest.Stamp(), []) for number in range(100_000)]
    written = manifest.write(folder_of(tmp_path, b""), msgspec.structs.replace(empty(), files=files))
    monkeypatch.setattr(memory, "available", lambda: 2**24)
    with pytest.raises(
        BackupError, match=r"anybody may have made it, and it may take .* of memory, of which 16.8 MB are free"
    ):
        manifest.read(folder_of(tmp_path, b""), written.name)
    monkeypatch.setattr(memory, "available", lambda: None)
    assert manifest.read(folder_of(tmp_path, b""), written.name).manifest == written.manifest


def test_a_signed_manifest_is_json_that_says_so(signed: Named, tmp_path: Path) -> None:
    said = msgspec.json.decode(folder_of(tmp_path / "backups").read(signed.name))
    assert len(said["signature"]) == 64
    assert said["made"] == signed.manifest.made


def test_the_commands_sign_and_check(
    data: Path, destination: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (unsigned,) = manifest.names(Folder(destination))
    file = tmp_path / "key"
    file.write_bytes(KEY + b"\n")
    key = ["--key-file", str(file)]
    folder_of(destination).delete(unsigned)
    assert cli.main(["backup", str(destination), "--data", str(data), "--fast", "--keep", "1", *key]) == 0
    assert "deleted: 0 older backups, 0 pieces" in capsys.readouterr().out
    assert cli.main(["backup", str(destination), "--check", *key]) == 0
    monkeypatch.setenv("APISERVER_BACKUP_KEY", KEY.decode())
    assert cli.main(["restore", str(destination), "--data", str(tmp_path / "new"), "--verify"]) == 0
    monkeypatch.setenv("APISERVER_BACKUP_KEY", "x" * 32)
    assert cli.main(["restore", str(destination), "--data", str(tmp_path / "other")]) == 1
    assert "not signed with your key" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    file.write_bytes(b"short")
    assert cli.main(["backup", str(destination), "--check", *key]) == 2
    assert "shorter than 32 characters" in capsys.readouterr().err
    file.unlink()
    assert cli.main(["backup", str(destination), "--check", *key]) == 2
    assert capsys.readouterr().err == f"apiserver: --key-file: {file}: No such file or directory\n"


def test_a_server_with_a_key_gives_it_to_its_backups(data: Path, tmp_path: Path) -> None:
    backups = ScheduledBackups(Settings(data=data, backup_to=str(tmp_path / "backups"), backup_key=KEY.decode()))
    asyncio.run(backups.make_if_due())
    (name,) = manifest.names(Folder(tmp_path / "backups"))
    folder = folder_of(tmp_path / "backups")
    restore(folder, manifest.read(folder, name).manifest, tmp_path / "new", quiet())


def test_a_server_with_a_key_and_older_backups_without_one_tells_of_the_good_backup(
    data: Path, destination: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (unsigned,) = manifest.names(Folder(destination))
    settings = Settings(data=data, backup_to=str(destination), backup_key=KEY.decode())
    for keep in (1, 2):  # the unsigned one would go, and would stay
        backups = ScheduledBackups(replace(settings, backup_keep=keep))
        with caplog.at_level(logging.INFO):
            asyncio.run(backups.make_if_due())
        *_, made = manifest.names(Folder(destination))
        assert (backups.state, backups.newest) == ("ok", manifest.time_of(made))
        (line,) = [line for line in caplog.messages if line.startswith("a backup was made: ")]
        assert "; deleting older ones failed: " in line
        assert line.endswith(f": nothing is deleted: {unsigned} is refused: it is not signed with your key")
        assert "\\n" not in line
        folder_of(destination).delete(made)
        caplog.clear()


def test_backups_that_were_made_before_there_was_a_key_lend_their_pieces(data: Path, destination: Path) -> None:
    assert make(Settings(data=data), folder_of(destination), quiet()).manifest.copied < 2**20
    assert backed_up(data, destination).manifest.copied == 0


def test_a_piece_that_nobody_signed_for_is_read_before_it_is_used(data: Path, tmp_path: Path) -> None:
    """Its table says that it has the first block of the documents, which it does not have."""
    folder = folder_of(tmp_path / "backups")
    block = (data / "documents.db").read_bytes()[: pieces.SMALL_BLOCK]
    content = pieces.encode([bytes(len(block))], [hashlib.sha256(block).digest()])
    planted = hashlib.sha256(content).hexdigest()
    folder.write(pieces.name_of(planted), content)
    made = make(Settings(data=data), folder, quiet()).manifest
    assert planted not in {piece.sha256 for piece in made.pieces}
    restore(folder, made, tmp_path / "new", quiet())


def test_a_piece_whose_table_was_changed_is_not_used(data: Path, tmp_path: Path) -> None:
    """A user has uploaded a block, and says in the table of its piece that it is another one, which is new."""
    folder = folder_of(tmp_path / "backups")
    (data / "files" / "planted").write_bytes(b"planted")
    settings = Settings(data=data)
    made = make(settings, folder, quiet()).manifest
    (data / "files" / "new").write_bytes(b"correct")
    extent = next(file for file in made.files if file.path == "files/planted").extents[0]
    piece = pieces.name_of(made.pieces[extent.piece].sha256)
    content = folder.read(piece)
    entries = pieces.entries_of(content, piece).copy()
    entries["digest"][extent.first] = hashlib.sha256(b"correct").digest()
    folder.write(piece, content[: -4 - entries.nbytes] + entries.tobytes() + content[-4:])
    newest = make(settings, folder, quiet()).manifest
    folder.write(piece, content)
    restore(folder, newest, tmp_path / "new", quiet())
    assert (tmp_path / "new" / "files" / "new").read_bytes() == b"correct"


def test_tables_of_signed_backups_are_read_alone(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path / "backups")
    make(Settings(data=data), folder, quiet())
    monkeypatch.setattr(pieces, "read", None)
    assert make(Settings(data=data), folder, quiet()).manifest.copied == 0
