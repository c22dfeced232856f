"""Lists backups, and checks them without restoring them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from apiserver.common.sizes import counted
from apiserver.events.model import Int64Array
from apiserver.operating.backup import manifest as manifests
from apiserver.operating.backup import pieces
from apiserver.operating.backup.manifest import Extent, Named
from apiserver.operating.backup.pieces import DamagedPiece
from apiserver.operating.backup.progress import Progress
from apiserver.operating.backup.storage import BackupError, Missing, Storage

#: What a backup does about pieces that are not well, and what is left to do then, for people.
_THEN = (
    "it copies anew what these pieces had, if the server still has it; then delete, in manifests/, those backups that"
    " stay damaged: `apiserver backup DEST --check` names them"
)
#: What to do if the next backup knows which pieces are damaged (`rereading.py`).
REMEMBERED_ADVICE = f"make a backup, or wait for the next one: {_THEN}"


class MissingPiece(BackupError):
    """A backup needs a piece that is not there."""


def all_of(storage: Storage) -> Iterator[Named | str]:
    """What is no backup, then each backup, oldest first, or what is wrong with its manifest."""
    names, strays = manifests.listed(storage)
    for name in strays:
        yield f"{name} is not the name of a manifest, or its moment is ahead"
    for name in names:
        try:
            yield manifests.read(storage, name)
        except BackupError as error:
            yield str(error)


class _Pieces(NamedTuple):
    """The pieces at a destination, each read once."""

    starts: dict[str, Int64Array]
    """Of each piece that is well, where its blocks begin, and where the last one ends; by its SHA-256."""
    damaged: dict[str, BackupError]
    """What is wrong with each of the others."""


def check(storage: Storage, progress: Progress) -> list[BackupError]:
    """Read every manifest and every piece; what is wrong with each. BackupError if there is no backup."""
    entries = list(all_of(storage))
    if not entries:
        raise BackupError(f"there is no backup at {storage.address}")
    backups = [backup for backup in entries if not isinstance(backup, str)]
    wrong = [BackupError(problem) for problem in entries if isinstance(problem, str)]
    if not storage.key:
        _say_signed(backups, progress)
    sizes, strays = pieces.listed(storage)
    wrong += [BackupError(f"{name} is not the name of a piece") for name in strays]
    read = _read_pieces(storage, sizes, progress)
    wrong += read.damaged.values()
    for backup in _left(storage, backups):
        wrong += _wrong_pieces(backup, read)
        wrong += _wrong_files(backup, read)
    return wrong


def _say_signed(backups: Sequence[Named], progress: Progress) -> None:
    if signed := sum(backup.is_signed for backup in backups):
        said = f"signed: {signed:,} of {counted(len(backups), 'backups')}; without the key, no signature is compared"
        progress.say(said)


def _read_pieces(storage: Storage, sizes: Mapping[str, int], progress: Progress) -> _Pieces:
    """Read all pieces. A piece that was deleted since it was listed is in neither table."""
    read = _Pieces({}, {})
    progress.step("pieces", sum(sizes.values()))
    for sha256, size in sizes.items():
        try:
            read.starts[sha256] = pieces.read(storage, sha256).starts
        except Missing:
            pass
        except BackupError as error:
            read.damaged[sha256] = error
        progress.advance(size)
    progress.end()
    return read


def _left(storage: Storage, backups: Sequence[Named]) -> list[Named]:
    """The backups that were not deleted, with their pieces, since their manifests were read."""
    names = {*manifests.names_left(storage)} if backups else set()
    return [backup for backup in backups if backup.name in names]


def _wrong_pieces(backup: Named, read: _Pieces) -> Iterator[BackupError]:
    """The pieces that a backup needs, and that are damaged or not there."""
    for piece in backup.manifest.pieces:
        if piece.sha256 in read.damaged:
            yield BackupError(f"the backup {backup.id} is damaged with the piece {piece.sha256}")
        elif piece.sha256 not in read.starts:
            yield MissingPiece(f"the piece {piece.sha256} is missing, which {backup.id} needs")


def _wrong_files(backup: Named, read: _Pieces) -> Iterator[BackupError]:
    """The files of a backup that refer to blocks which a piece that is well does not have."""
    for file in backup.manifest.files:
        for extent in file.extents:
            starts = read.starts.get(backup.manifest.pieces[extent.piece].sha256)
            if starts is not None and not _has(starts, extent):
                yield BackupError(f"{file.path} of {backup.id} refers to blocks that a piece does not have")
                break


def _has(starts: Int64Array, extent: Extent) -> bool:
    """Whether a piece whose blocks start so has the blocks of an extent, and in them as many bytes."""
    end = extent.first + extent.count
    return end < len(starts) and bool(starts[end] - starts[extent.first] == extent.bytes)


def advice(wrong: Sequence[BackupError]) -> list[str]:
    """What to do about pieces that are wrong, in a sentence; none if no piece is."""
    if any(isinstance(error, DamagedPiece) for error in wrong):
        first = "delete damaged pieces, and make a backup"
    elif any(isinstance(error, MissingPiece) for error in wrong):
        first = "make a backup"
    else:
        return []
    return [f"{first}: {_THEN}"]
