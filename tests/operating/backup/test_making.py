"""What a backup copies, and what it does not copy again."""

from __future__ import annotations

import io
import random
import stat
import struct
import zlib
from pathlib import Path

import pytest

from apiserver.operating.backup import manifest, pieces
from apiserver.operating.backup.bounds import BackupBounds
from apiserver.operating.backup.checking import check
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.making import make
from apiserver.operating.backup.manifest import Extent, File, Stamp
from apiserver.operating.backup.moment import Moment
from apiserver.operating.backup.progress import Progress
from apiserver.operating.backup.storage import BackupError
from apiserver.settings.settings import Settings
from apiserver.stores.events.embedded import journal
from tests.operating.backup.conftest import backed_up, damage, quiet


def test_a_backup_has_all_that_a_server_needs(data: Path, tmp_path: Path) -> None:
    made = backed_up(data, tmp_path / "backups").manifest
    paths = {file.path for file in made.files}
    assert {"documents.db", "events/events.db", "token_secret"} <= paths
    assert any(path.startswith("events/journal-") for path in paths)
    assert sum(path.startswith("files/") for path in paths) == 2
    assert not any(path.endswith(("lock", "-wal", "-shm", "reserve")) for path in paths)
    assert made.counts["files"] == len([path for path in paths if not path.startswith(("documents.db", "events/"))])
    assert made.counts["points"] + made.counts["points in the journal"] > 400
    assert made.counts["log lines"] + made.counts["log lines in the journal"] >= 120
    assert made.counts["documents"] > 1


def test_only_the_owner_can_read_a_backup(destination: Path) -> None:
    for path in (destination, *destination.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_what_is_there_is_not_copied_again(data: Path, destination: Path) -> None:
    again = backed_up(data, destination).manifest
    first, second = (manifest.read(Folder(destination), name).manifest for name in manifest.names(Folder(destination)))
    assert (again.copied, again.size) == (0, first.size)
    assert [(file.path, file.size) for file in second.files] == [(file.path, file.size) for file in first.files]


def test_a_file_that_was_replaced_is_copied_as_far_as_it_changed(data: Path, destination: Path) -> None:
    (large,) = data.glob("files/**/large.bin")
    (data / "new").write_bytes(large.read_bytes() + b"more")
    (data / "new").replace(large)
    made = backed_up(data, destination).manifest
    assert 2**18 < made.copied < 2**20  # two blocks of a megabyte are the same, the third one is larger
    assert not check(Folder(destination), quiet())


class Interrupted(Exception):
    pass


class FailingFolder(Folder):
    """Fails at the write with a number, as if the process were killed there."""

    def __init__(self, root: Path, fails_at: int) -> None:
        super().__init__(root)
        self._left = fails_at
        self.written = 0

    def write(self, name: str, content: bytes) -> None:
        self._left -= 1
        if self._left < 0:
            raise Interrupted
        super().write(name, content)
        self.written += len(content)


def test_a_backup_that_was_interrupted_anywhere_goes_on(data: Path, tmp_path: Path) -> None:
    bounds = BackupBounds(piece_bytes=2**17)
    whole = backed_up(data, tmp_path / "whole", piece_bytes=2**17).manifest
    assert len(whole.pieces) >= 5
    for fails_at in range(len(whole.pieces) + 1):
        destination = tmp_path / f"backups{fails_at}"
        first = FailingFolder(destination, fails_at)
        with pytest.raises(Interrupted):
            make(Settings(data=data), first, quiet(), bounds=bounds)
        assert manifest.names(first) == []
        second = backed_up(data, destination, piece_bytes=2**17).manifest
        assert first.written + second.copied <= whole.copied + 100
        assert not check(Folder(destination), quiet())


def test_a_piece_of_which_less_than_half_is_needed_is_not_used_any_more(
    data: Path, destination: Path, dice: random.Random
) -> None:
    """Three files of a megabyte share a piece with a database of some hundred KB."""
    new = [data / "files" / f"{n}" for n in range(4)]
    for path in new:
        path.write_bytes(dice.randbytes(2**20))
    (piece,) = {piece.sha256 for piece in backed_up(data, destination).manifest.pieces if piece.size > 4 * 2**20}
    for path, copied in zip(new[:3], (0, 0, 2**20), strict=True):
        path.unlink()
        made = backed_up(data, destination).manifest
        assert copied <= made.copied < copied + 2**19
        assert (piece in {piece.sha256 for piece in made.pieces}) == (copied == 0)


def test_large_files_have_larger_blocks() -> None:
    assert [pieces.small_block(size * 2**30) for size in (1, 16, 17, 100, 10**6)] == [4096, 4096, 8192, 32768, 2**20]


@pytest.mark.parametrize(
    ("file", "table"),
    [("events/events.db", "state"), ("events/events.db", "scalars"), ("documents.db", "users")],
)
def test_a_damaged_database_ends_a_backup_with_an_error(data: Path, tmp_path: Path, file: str, table: str) -> None:
    damage(data / file, table)
    with pytest.raises(BackupError, match=rf"{file} cannot be read: .*malformed"):
        backed_up(data, tmp_path / "backups")


def test_a_batch_that_cannot_be_read_ends_a_backup_with_an_error(data: Path, tmp_path: Path) -> None:
    (path,) = data.glob("events/journal-*")
    checked = struct.pack("<IQQ", 8, 0, 1) + b"no batch"
    path.write_bytes(journal.MAGIC + zlib.crc32(checked).to_bytes(4, "little") + checked)
    with pytest.raises(BackupError, match=f"{path.name} cannot be read"):
        backed_up(data, tmp_path / "backups")


def test_each_batch_of_the_journal_is_checked_once(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents: list[memoryview] = []
    places: list[tuple[int, int]] = []
    whole = journal.end_of_whole

    def looked(content: memoryview, at: int) -> int | None:
        contents.append(content)  # so that no other one gets its id
        places.append((id(content.obj), at))
        return whole(content, at)

    monkeypatch.setattr(journal, "end_of_whole", looked)
    made = backed_up(data, tmp_path / "backups").manifest
    assert made.counts["points in the journal"]
    assert len(places) == len(set(places))
    assert len({content for content, _ in places}) == sum(file.path.startswith("events/journal") for file in made.files)


def test_how_far_scrubbing_is_stays_here(data: Path, tmp_path: Path) -> None:
    (data / "scrub.json").write_text("{}")
    made = backed_up(data, tmp_path / "backups").manifest
    assert "scrub.json" not in {file.path for file in made.files}


def test_a_manifest_has_room_for_eight_million_files() -> None:
    name = "confusion_matrix_of_the_validation_set.npz"
    path = f"files/speech/training of a large model.{'0' * 32}/artifacts/{name}/{name}"
    file = File(path, 2**30, Stamp(2**60, 2**60, 2**30), [Extent(100_000, 1000, 1024, 2**30)])
    assert manifest.bytes_of(file) > 220
    manifest.require_room(8_000_000 * manifest.bytes_of(file))


def test_too_many_files_are_refused_before_any_is_copied(data: Path, destination: Path, tmp_path: Path) -> None:
    for number in range(100):
        (data / "files" / f"{number}.txt").write_text("")
    before = sorted(destination.rglob("*"))
    largest = 100 * len("files/10.txt")
    for place in (destination, tmp_path / "other"):
        with pytest.raises(BackupError, match="there are too many files: the list of them has"):
            backed_up(data, place, manifest_bytes=largest)
    assert sorted(destination.rglob("*")) == before
    assert not (tmp_path / "other" / "pieces").exists()


def test_a_symbolic_link_is_left_out_and_named(data: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "of_others").write_text("a secret")
    (data / "files" / "link").symlink_to(outside / "of_others")
    (data / "files" / "folder").symlink_to(outside)
    said = io.StringIO()
    made = make(Settings(data=data), Folder(tmp_path / "backups"), Progress(said)).manifest
    assert not any("link" in file.path or "of_others" in file.path for file in made.files)
    assert "left out: files/link is neither a file nor a folder" in said.getvalue()
    assert "left out: files/folder is neither a file nor a folder" in said.getvalue()


def test_the_folder_of_files_may_be_a_link(data: Path, tmp_path: Path) -> None:
    (data / "files").rename(tmp_path / "volume")
    (data / "files").symlink_to(tmp_path / "volume")
    made = backed_up(data, tmp_path / "backups").manifest
    assert sum(file.path.startswith("files/") for file in made.files) == 2


def test_files_that_are_deleted_after_they_were_listed_are_there(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(data.glob("files/**/*.*"))

    def counts(moment: Moment) -> dict[str, int]:
        for path in found:
            path.unlink()
        return {}

    monkeypatch.setattr(Moment, "counts", counts)
    made = backed_up(data, tmp_path / "backups").manifest
    assert sum(file.path.startswith("files/") for file in made.files) == len(found) == 2
    assert not check(Folder(tmp_path / "backups"), quiet())


def test_a_backup_into_the_data_folder_is_refused(data: Path) -> None:
    with pytest.raises(BackupError, match="lies in the data folder"):
        backed_up(data, data / "backups")


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="there are no events"):
        backed_up(tmp_path / "nothing", tmp_path / "backups")
    assert not (tmp_path / "backups").exists()


def test_two_backups_at_once_are_refused(data: Path, destination: Path) -> None:
    with Folder(destination).owned(), pytest.raises(BackupError, match="another backup"):
        backed_up(data, destination)
