"""Makes a backup: what is at the destination already is not written again, and the manifest comes last.

If the process is killed anywhere, there are some more pieces, and no manifest that names one that is missing. The next
backup uses these pieces. A piece of which the newest backup needs less than half is not used any more: what is needed
of it is written again. So a destination never takes much more than twice of what it has to.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from apiserver import __version__
from apiserver.operating.backup import manifest as manifests
from apiserver.operating.backup import pieces
from apiserver.operating.backup.block_index import BlockIndex
from apiserver.operating.backup.bounds import BackupBounds
from apiserver.operating.backup.manifest import Extent, File, Manifest, Named, PieceUsed
from apiserver.operating.backup.moment import FolderFile, Moment, find_files
from apiserver.operating.backup.progress import Progress, Say
from apiserver.operating.backup.rereading import read_state
from apiserver.operating.backup.storage import BackupError, Storage, require_elsewhere
from apiserver.operating.backup.working_copy import in_folder
from apiserver.settings.settings import Settings
from apiserver.stores import formats
from apiserver.stores.data_folder import DataFolder, DataFolderError
from apiserver.stores.snapshots import SnapshotError

#: Bytes that are read at a time.
_READ = 2**20
#: As many pieces as a large backup has.
_MANY_PIECES = 100_000


def make(
    settings: Settings,
    storage: Storage,
    progress: Progress,
    *,
    work: Path | None = None,
    bounds: BackupBounds | None = None,
) -> Named:
    """Make a backup of the data folder, and of the data in engines; BackupError if that does not work.

    work: the folder to which the data of engines are copied before; None for the data folder.
    """
    bounds = bounds or BackupBounds()
    folder = DataFolder(settings.data)
    require_elsewhere(storage.address, folder.root)
    started = time.monotonic()
    try:
        formats.require(settings)
        with (
            in_folder(settings, storage, progress, work) as in_a_folder,
            closing(Moment(in_a_folder)) as moment,
            storage.owned(),
        ):
            suspects = read_state(folder, storage.address).suspects
            usable = _look(storage, {*suspects}, progress.say)
            writer = _Writer(storage, usable, progress, bounds.piece_bytes)
            manifest = _write_blocks(folder, moment, writer, bounds.manifest_bytes, started)
            return manifests.write(storage, manifest, bounds.manifest_bytes)
    except (DataFolderError, SnapshotError) as error:
        raise BackupError(str(error), "the data folder cannot be used") from error
    except OSError as error:
        raise BackupError(str(error), f"the data folder cannot be read: {error.strerror}") from error
    finally:
        progress.end()


def _write_blocks(folder: DataFolder, moment: Moment, writer: _Writer, manifest_bytes: int, started: float) -> Manifest:
    """Write the blocks that the destination lacks: first the blocks of databases, then of files. Returns the manifest.

    BackupError, before anything is written, if the manifest would have more than `manifest_bytes`.
    """
    usable, progress = writer.usable, writer.progress
    moment.begin()
    made = manifests.moment()
    folder_files = find_files(folder, usable.has, progress.say)
    expected = sum(manifests.bytes_of(usable.expected(file)) for file in folder_files)
    manifests.require_room(expected, manifest_bytes)
    counts = moment.counts()
    databases = [writer.keep(part.path, part.read, part.size, small=part.changes_in_place) for part in moment.parts()]
    moment.close()
    progress.step("files", sum(file.size for file in folder_files))
    files = [kept for file in folder_files if (kept := _keep_file(file, usable, writer, progress))]
    counts["files"] = len(files)
    writer.flush()
    pieces_used, kept_files = writer.used(databases + files)
    seconds = round(time.monotonic() - started, 3)
    return Manifest(manifests.FORMAT, __version__, made, seconds, writer.written, counts, pieces_used, kept_files)


@dataclass(slots=True)
class _Usable:
    """The pieces, blocks and files at the destination that a new backup may use."""

    pieces: list[PieceUsed]
    blocks: BlockIndex
    files: dict[str, File]
    """By path, the files of the newest backup all of whose pieces may be used. Numbers are places in `pieces`."""

    def has(self, file: FolderFile) -> bool:
        """Whether a file has not changed since the newest backup."""
        before = self.files.get(file.path)
        return before is not None and (before.size, before.stamp) == (file.size, file.stamp)

    def expected(self, file: FolderFile) -> File:
        """The entry of a file in the manifest; an estimate if the file has changed, as it is not copied yet."""
        if self.has(file):
            return self.files[file.path]
        last = Extent(_MANY_PIECES, pieces.PIECE_BLOCKS, 1, file.size)
        return File(file.path, file.size, file.stamp, [last] if file.size else [])


def _look(storage: Storage, suspects: Collection[str], say: Say) -> _Usable:
    """Find what a new backup may use. Only tables are read of most pieces, and all of `suspects`, damaged lately."""
    backups = []
    for name in manifests.names(storage):
        try:
            backups.append(manifests.read(storage, name).manifest)
        except BackupError as error:  # `--check` fails for it; a new backup is needed all the more
            say(f"not used: {error}")
    newest = backups[-1] if backups else None
    needed = {piece.sha256: piece.table for backup in backups for piece in backup.pieces}
    may_use = set(_mostly_live(newest)) if newest else set()
    sizes, _ = pieces.listed(storage)
    usable: list[PieceUsed] = []
    tables = []
    for sha256, size in sizes.items():
        if sha256 in may_use or sha256 not in needed:
            try:
                table = needed.get(sha256, "")
                if sha256 in suspects or (storage.key and not table):  # without a signature, the table may lie
                    entries = pieces.read(storage, sha256).entries.copy()  # a copy, so that the content can go
                else:
                    entries = pieces.read_entries(storage, sha256, size, table)
            except BackupError as error:
                say(f"not used: {error}")
                continue
            tables.append((len(usable), entries))
            usable.append(PieceUsed(sha256, size, len(entries), table or pieces.digest_of(entries)))
    return _Usable(usable, BlockIndex(tables), _files_of(newest, usable) if newest else {})


def _mostly_live(manifest: Manifest) -> list[str]:
    """The pieces of which the backup needs at least half."""
    needs: Counter[int] = Counter()
    for file in manifest.files:
        for extent in file.extents:
            needs[extent.piece] += extent.bytes
    return [piece.sha256 for number, piece in enumerate(manifest.pieces) if 2 * needs[number] >= piece.size]


def _files_of(manifest: Manifest, usable: list[PieceUsed]) -> dict[str, File]:
    """The files of a backup of which all pieces are usable."""
    places = {(piece.sha256, piece.size, piece.blocks): number for number, piece in enumerate(usable)}
    numbers = [places.get((piece.sha256, piece.size, piece.blocks)) for piece in manifest.pieces]
    return {
        file.path: _renumbered(file, numbers)
        for file in manifest.files
        if all(numbers[extent.piece] is not None for extent in file.extents)
    }


def _renumbered(file: File, numbers: list[int | None]) -> File:
    """The file, with other numbers for its pieces."""
    extents = [Extent(numbers[extent.piece] or 0, extent.first, extent.count, extent.bytes) for extent in file.extents]
    return File(file.path, file.size, file.stamp, extents)


def _keep_file(file: FolderFile, usable: _Usable, writer: _Writer, progress: Progress) -> File | None:
    """Keep a file that lies in the data folder; None if it was deleted before it could be opened."""
    if usable.has(file):
        progress.advance(file.size)
        return usable.files[file.path]
    if not file.open():
        return None
    try:
        kept = writer.keep(file.path, file.read, file.size)
        return File(kept.path, kept.size, file.stamp, kept.extents)
    finally:
        file.close()


@dataclass(slots=True)
class _Writer:
    """Writes blocks that are not at the destination yet, in new pieces."""

    storage: Storage
    usable: _Usable
    progress: Progress
    piece_bytes: int
    written: int = 0
    """Bytes of all new pieces."""
    _mine: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """Where large blocks are that this backup has written."""
    _blocks: list[bytes] = field(default_factory=list)
    _digests: list[bytes] = field(default_factory=list)
    _size: int = 0

    def keep(self, path: str, read: Callable[[int, int], bytes], size: int, *, small: bool = False) -> File:
        """Keep a file of about this size. It may end sooner, if it became shorter."""
        if small:
            self.progress.step(path, size)
        step = pieces.small_block(size) if small else pieces.LARGE_BLOCK
        extents: list[Extent] = []
        at = 0
        while at < size and (content := read(at, min(_READ, size - at))):
            blocks = [content[start : start + step] for start in range(0, len(content), step)]
            digests = [hashlib.sha256(block).digest() for block in blocks]
            places = self.usable.blocks.find(digests).tolist()
            for block, digest, place in zip(blocks, digests, places, strict=True):
                piece, number = place if place[0] >= 0 else self._place(block, digest, shared=not small)
                last = extents[-1] if extents else None
                if last is not None and (last.piece, last.first + last.count) == (piece, number):
                    extents[-1] = Extent(piece, last.first, last.count + 1, last.bytes + len(block))
                else:
                    extents.append(Extent(piece, number, 1, len(block)))
            at += len(content)
            self.progress.advance(len(content))
        return File(path, at, manifests.Stamp(), extents)

    def flush(self) -> None:
        """Write the piece that has been begun."""
        if self._blocks:
            content = pieces.encode(self._blocks, self._digests)
            sha256 = hashlib.sha256(content).hexdigest()
            self.storage.write(pieces.name_of(sha256), content)
            table = pieces.digest_of(pieces.entries_of(content, sha256))
            self.usable.pieces.append(PieceUsed(sha256, len(content), len(self._blocks), table))
            self.written += len(content)
            self._blocks, self._digests, self._size = [], [], 0

    def used(self, files: list[File]) -> tuple[list[PieceUsed], list[File]]:
        """The pieces that the files need, and the files with these pieces' numbers."""
        needed = sorted({extent.piece for file in files for extent in file.extents})
        numbers: list[int | None] = [None] * len(self.usable.pieces)
        for number, piece in enumerate(needed):
            numbers[piece] = number
        return [self.usable.pieces[piece] for piece in needed], [_renumbered(file, numbers) for file in files]

    def _place(self, block: bytes, digest: bytes, *, shared: bool) -> tuple[int, int]:
        """Where a new block will be. If it is `shared`, it is written once, however often it comes."""
        if shared and (place := self._mine.get(digest)):
            return place
        if self._size >= self.piece_bytes or len(self._blocks) == pieces.PIECE_BLOCKS:
            self.flush()
        place = (len(self.usable.pieces), len(self._blocks))
        self._blocks.append(block)
        self._digests.append(digest)
        self._size += len(block)
        if shared:
            self._mine[digest] = place
        return place
