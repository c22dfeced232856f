"""Deletes old backups, and the pieces that only they needed."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.operating.backup import manifest as manifests
from apiserver.operating.backup import pieces
from apiserver.operating.backup.storage import BackupError, Storage


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
        old = names[: max(len(names) - len(manifests.ahead(names, now)) - keep, 0)]
        try:
            needed = _pieces_of(storage, names[len(old) :])
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


def _pieces_of(storage: Storage, names: Iterable[str]) -> set[str]:
    """The pieces that the backups with these manifests need."""
    return {piece.sha256 for name in names for piece in manifests.read(storage, name).manifest.pieces}
