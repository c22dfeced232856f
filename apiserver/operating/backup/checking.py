"""Lists backups, checks them without restoring them, and deletes old ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apiserver.common.sizes import counted
from apiserver.operating.backup import manifest as manifests
from apiserver.operating.backup import pieces
from apiserver.operating.backup.manifest import Named
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


def check(storage: Storage, progress: Progress) -> list[BackupError]:
    """Read every manifest and every piece; what is wrong with each. BackupError if there is no backup."""
    wrong: list[BackupError] = []
    backups = []
    for found in all_of(storage):
        if isinstance(found, str):
            wrong.append(BackupError(found))
        else:
            backups.append(found)
    if not backups and not wrong:
        raise BackupError(f"there is no backup at {storage.address}")
    if not storage.key and (signed := sum(backup.is_signed for backup in backups)):
        progress.say(
            f"signed: {signed:,} of {counted(len(backups), 'backups')}; without the key, no signature is compared"
        )
    sizes, strays = pieces.listed(storage)
    wrong += [BackupError(f"{name} is not the name of a piece") for name in strays]
    progress.step("pieces", sum(sizes.values()))
    tables = {}
    missing: set[str] = set()
    for sha256, size in sizes.items():
        try:
            tables[sha256] = pieces.read(storage, sha256).starts
        except Missing:  # it was deleted since
            missing.add(sha256)
        except BackupError as error:
            wrong.append(error)
        progress.advance(size)
    progress.end()
    there = {*manifests.names_left(storage)} if backups else set()  # some may be deleted since, with their pieces
    for backup in backups:
        if backup.name not in there:
            continue
        for piece in backup.manifest.pieces:
            if piece.sha256 not in sizes or piece.sha256 in missing:
                wrong.append(MissingPiece(f"the piece {piece.sha256} is missing, which {backup.id} needs"))
            elif piece.sha256 not in tables:
                wrong.append(BackupError(f"the backup {backup.id} is damaged with the piece {piece.sha256}"))
        for file in backup.manifest.files:
            for extent in file.extents:
                starts = tables.get(backup.manifest.pieces[extent.piece].sha256)
                end = extent.first + extent.count
                if starts is not None and not (
                    end < len(starts) and starts[end] - starts[extent.first] == extent.bytes
                ):
                    wrong.append(BackupError(f"{file.path} of {backup.id} refers to blocks that a piece does not have"))
                    break
    return wrong


def advice(wrong: Sequence[BackupError]) -> list[str]:
    """What to do about pieces that are wrong, in a sentence; none if no piece is."""
    if any(isinstance(one, DamagedPiece) for one in wrong):
        first = "delete damaged pieces, and make a backup"
    elif any(isinstance(one, MissingPiece) for one in wrong):
        first = "make a backup"
    else:
        return []
    return [f"{first}: {_THEN}"]


def forget(storage: Storage, keep: int, now: float | None = None) -> tuple[int, int]:
    """Delete all but the newest `keep` backups, and pieces that none of these needs; how many backups and pieces.

    Backups of a moment that is ahead of `now` stay, and are not counted: the clock was set back, and the backup that
    was made just now is older by its name.

    Nothing is deleted while a manifest that stays cannot be read: nobody knows which pieces it needs. With a key,
    nothing is deleted either while a manifest that would go is refused: somebody may have put it there.
    """
    with storage.owned():
        names, strays = manifests.listed(storage)
        if strays:
            raise BackupError(
                f"nothing is deleted while there are {len(strays)} names like {strays[0]} among manifests"
            )
        counted = len(names) - len(manifests.ahead(names, now))
        old = names[: max(counted - keep, 0)]
        needed: set[str] = set()
        try:
            for name in names[len(old) :]:
                needed.update(piece.sha256 for piece in manifests.read(storage, name).manifest.pieces)
            for name in old if storage.key else ():
                manifests.check(storage, name)
        except BackupError as error:
            raise BackupError(f"nothing is deleted: {error}") from error
        for name in old:
            storage.delete(name)
        unneeded = [sha256 for sha256 in pieces.listed(storage)[0] if sha256 not in needed]
        for sha256 in unneeded:
            storage.delete(pieces.name_of(sha256))
        return len(old), len(unneeded)
