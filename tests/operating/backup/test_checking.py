"""Checks find every flipped byte, and old backups go with the pieces that only they needed."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import msgspec
import pytest

from apiserver import cli
from apiserver.operating.backup import manifest, pieces
from apiserver.operating.backup.checking import all_of, check
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.forgetting import forget
from apiserver.operating.backup.storage import BackupError, Storage
from tests.operating.backup.conftest import backed_up, quiet


def test_a_flipped_byte_in_any_piece_and_manifest_is_found_and_named(destination: Path, dice: random.Random) -> None:
    folder = Folder(destination)
    assert check(folder, quiet()) == []
    contents = [path for path in destination.rglob("*") if path.is_file() and path.name != "lock"]
    assert len(contents) >= 2
    for path in contents:
        whole = path.read_bytes()
        for at in (0, len(whole) - 1, *(dice.randrange(len(whole)) for _ in range(8))):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1 :])
            assert any(path.name in line for line in map(str, check(folder, quiet()))), at
        path.write_bytes(whole[:-1])
        assert any(path.name in line for line in map(str, check(folder, quiet())))
        path.write_bytes(whole)
    assert check(folder, quiet()) == []


def test_a_damaged_piece_that_was_deleted_is_copied_anew(
    data: Path, destination: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path, *_) = (destination / "pieces").glob("*/*")
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    backed_up(data, destination)  # no backup reads what is there
    assert cli.main(["backup", str(destination), "--check"]) == 1
    said = capsys.readouterr().err
    assert path.name in said
    assert said.endswith(
        "\ndelete damaged pieces, and make a backup: it copies anew what these pieces had, if the server still has it;"
        " then delete, in manifests/, those backups that stay damaged: `apiserver backup DEST --check` names them\n"
    )
    path.unlink()
    backed_up(data, destination)
    assert cli.main(["backup", str(destination), "--check"]) == 0


@pytest.mark.parametrize("flag", ["--list", "--check"])
def test_nothing_is_kept_or_deleted_where_no_backup_is_made(
    destination: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    assert cli.main(["backup", str(destination), flag, "--keep", "1"]) == 2
    assert "--keep: it deletes older backups after one was made" in capsys.readouterr().err


def test_a_missing_piece_is_named_with_the_backup_that_needs_it(
    data: Path, destination: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(destination)
    (name, *_) = folder.sizes("pieces")
    folder.delete(name)
    assert any(name.rpartition("/")[2] in line and "is missing" in line for line in map(str, check(folder, quiet())))
    assert cli.main(["backup", str(destination), "--check"]) == 1
    said = capsys.readouterr().err
    assert "delete damaged pieces" not in said
    assert "\nmake a backup: it copies anew what these pieces had, if the server still has it; " in said
    backed_up(data, destination)
    assert check(folder, quiet()) == []


def test_what_is_missing_of_a_backup_that_is_deleted_meanwhile_is_not_named(
    data: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without any backup then is one that is not mounted any more."""
    folder = Folder(destination)
    backed_up(data, destination)
    older, newer = manifest.names(folder)
    (piece, *_) = folder.sizes("pieces")
    goes, real = [older, piece], pieces.listed

    def listed(storage: Storage) -> tuple[dict[str, int], list[str]]:
        for name in goes:  # all manifests were read
            folder.delete(name)
        return real(storage)

    monkeypatch.setattr(pieces, "listed", listed)
    (wrong,) = map(str, check(folder, quiet()))
    assert wrong == f"the piece {piece.rpartition('/')[2]} is missing, which {manifest.id_of(newer)} needs"
    goes.append(newer)
    with pytest.raises(BackupError, match=r"there is no backup at .+ any more"):
        check(folder, quiet())


def test_a_piece_whose_table_lies_about_a_block_is_found(destination: Path) -> None:
    folder = Folder(destination)
    content = pieces.encode([b"true", b"false"], [hashlib.sha256(block).digest() for block in (b"true", b"other")])
    digest = hashlib.sha256(content).hexdigest()
    folder.write(pieces.name_of(digest), content)
    assert [str(one) for one in check(folder, quiet())] == [
        f"the piece {digest} is damaged: block 1 is not what its table says"
    ]
    with pytest.raises(BackupError, match="block 1"):
        pieces.read(folder, digest)


def test_nothing_at_all_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=f"there is no backup at {tmp_path}"):
        check(Folder(tmp_path), quiet())


def test_old_backups_go_with_pieces_that_nobody_needs(data: Path, destination: Path) -> None:
    folder = Folder(destination)
    (large,) = data.glob("files/**/large.bin")
    large.write_bytes(random.Random(1).randbytes(2_000_000))
    newest = backed_up(data, destination)
    folder.write(pieces.name_of("ab" * 32), b"of a backup that was killed")
    assert forget(folder, 2) == (0, 1)
    assert len(list(all_of(folder))) == 2
    assert forget(folder, 1)[0] == 1
    assert [one.name for one in all_of(folder) if not isinstance(one, str)] == [newest.name]
    assert set(folder.sizes("pieces")) == {pieces.name_of(piece.sha256) for piece in newest.manifest.pieces}
    assert check(folder, quiet()) == []


def test_nothing_is_deleted_while_a_manifest_cannot_be_read(data: Path, destination: Path) -> None:
    (first,) = manifest.names(Folder(destination))
    backed_up(data, destination)
    (destination / first).write_bytes(b"{}")
    before = Folder(destination).sizes("pieces")
    with pytest.raises(BackupError, match="damaged"):
        forget(Folder(destination), 2)
    assert Folder(destination).sizes("pieces") == before


def test_a_manifest_that_lies_about_blocks_is_found(destination: Path) -> None:
    folder = Folder(destination)
    (name,) = manifest.names(folder)
    found = manifest.read(folder, name).manifest
    wrong = manifest.Extent(0, 0, 1, 2**40)
    lying = manifest.File("file", wrong.bytes, manifest.Stamp(), [wrong])
    manifest.write(folder, msgspec.structs.replace(found, files=[lying]))
    assert any("file of" in line and "refers to blocks" in line for line in map(str, check(folder, quiet())))


@pytest.mark.parametrize(
    "name", ["notes.txt", f"99991231T000000.000Z-{'a' * 64}.json", f"20269999T000000.000Z-{'a' * 64}.json"]
)
def test_what_is_no_manifest_is_no_backup_and_nothing_is_deleted(destination: Path, name: str) -> None:
    folder = Folder(destination)
    names = manifest.names(folder)
    folder.write(f"manifests/{name}", b"{}")
    assert manifest.names(folder) == names
    assert manifest.choose(folder, None).name == names[0]
    assert any(name in line for line in map(str, check(folder, quiet())))
    with pytest.raises(BackupError, match="nothing is deleted"):
        forget(folder, 1)
    assert manifest.names(folder) == names
