"""Makes a data folder of a backup, and reads all of it.

A file says from the first step to the last that the folder is not whole yet (`DataFolder.restoring`): no server starts
on it. Each piece is read once, and checked before anything of it is written. Files are made, never opened as they are,
in folders that this process made: so nothing is written outside of the new folder, whatever a manifest says.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path

from apiserver.common.sizes import shown_bytes
from apiserver.operating.backup import pieces
from apiserver.operating.backup.manifest import Extent, Manifest
from apiserver.operating.backup.moment import Moment, walk
from apiserver.operating.backup.progress import Progress
from apiserver.operating.backup.storage import BackupError, Storage
from apiserver.settings.settings import EMBEDDED, Settings
from apiserver.stores import formats
from apiserver.stores.data_folder import DataFolder, DataFolderError
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.engines import document_engine, event_engine
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.reserve import free_bytes
from apiserver.stores.snapshots import SnapshotError
from apiserver.stores.syncing import sync_file, sync_folder


def restore(storage: Storage, manifest: Manifest, root: Path, progress: Progress) -> None:
    """Make the data folder `root`, which must be empty or missing. If that fails, what there is can be deleted."""
    try:
        _restore(storage, manifest, DataFolder(root.absolute()), progress)
    except (OSError, ValueError) as error:
        raise BackupError(f"{root} cannot be written: {error}") from error
    finally:
        progress.end()


def _restore(storage: Storage, manifest: Manifest, folder: DataFolder, progress: Progress) -> None:
    root = folder.root
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise BackupError(f"{root} is not empty: a backup is restored into a new folder")
    if (free := free_bytes(root)) < manifest.size:
        raise BackupError(f"there is no room: {shown_bytes(manifest.size)} are needed, {shown_bytes(free)} are free")
    root.chmod(0o700)
    os.close(os.open(folder.restoring, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    sync_folder(root)
    places = _make_files(manifest, root)
    progress.step("restoring", manifest.size)
    for number, uses in sorted(places.items()):
        piece = pieces.read(storage, manifest.pieces[number].sha256)
        for path, at, extent in uses:
            if extent.first + extent.count >= len(piece.starts):
                raise BackupError(f"{path} refers to blocks that a piece does not have")
            content = piece.blocks(extent.first, extent.count)
            if len(content) != extent.bytes:
                raise BackupError(f"{path} is not as large as its blocks")
            _write(root / path, content, at)
            progress.advance(extent.bytes)
    for file in manifest.files:
        if file.stamp.modified:
            os.utime(root / file.path, ns=(file.stamp.modified, file.stamp.modified))
    os.sync()  # all at once, as that is fast; but it says nothing of a disk that failed
    for file in manifest.files:
        sync_file(root / file.path)
    folder.restoring.unlink()
    sync_folder(root)


def _make_files(manifest: Manifest, root: Path) -> dict[int, list[tuple[str, int, Extent]]]:
    """Make all files, empty. Returns what each piece has of them: the path of a file, a place in it, and the extent."""
    places = defaultdict(list)
    for file in manifest.files:
        path = root / file.path
        _make_folder(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        at = 0
        for extent in file.extents:
            places[extent.piece].append((file.path, at, extent))
            at += extent.bytes
    return places


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700)


def _write(path: Path, content: memoryview, at: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while content:
            written = os.pwrite(file, content, at)
            content, at = content[written:], at + written
    finally:
        os.close(file)


def verify(settings: Settings, manifest: Manifest, root: Path, progress: Progress) -> list[str]:
    """Read and decode all that was restored, count it, and open it as a server does: what is wrong, in a line each.

    What an older release kept is opened before it is read, which brings it up to date.
    """
    restored = replace(settings, data=root, events=EMBEDDED, documents=EMBEDDED)
    progress.step("reading all that was restored")
    wrong: list[str] = []
    try:
        formats.require(restored)
        is_older = bool(formats.older(restored))
        if not is_older:
            asyncio.run(_look(restored, wrong))
        with closing(Moment(restored)) as moment:
            moment.begin()
            counts = {**moment.counts(), "files": sum(1 for _ in walk(DataFolder(root), wrong.append))}
        asyncio.run(_open(restored))
        if is_older:
            asyncio.run(_look(restored, wrong))
    except (BackupError, DataFolderError, SnapshotError, EventStoreError, DocumentStoreError) as error:
        return [*wrong, str(error)]
    for name, count in manifest.counts.items():
        if counts.get(name) != count:
            wrong.append(f"{name}: the backup had {count:,}, the restored folder has {counts.get(name, 0):,}")
    return wrong


async def _look(settings: Settings, wrong: list[str]) -> None:
    """Read and decode all, and add to `wrong` what is damaged."""
    for engine in (event_engine(settings), document_engine(settings)):
        looking = engine.inspection(DataFolder(settings.data))
        assert looking is not None
        async with looking as inspection:
            async for finding in inspection.findings():
                wrong.append(finding.line)


async def _open(settings: Settings) -> None:
    """Open and close the stores."""
    async with AsyncExitStack() as opened:
        for engine in (event_engine(settings), document_engine(settings)):
            store = engine.store(DataFolder(settings.data))
            opened.push_async_callback(store.close)
            await store.open()
