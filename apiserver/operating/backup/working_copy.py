"""Copies the data of engines into a data folder while servers write, so that the folder can be backed up.

Documents are read first, and then the events as they are at one moment. So what was acknowledged before is there, and
no task is ahead of its events. Where the events are newer, a server that starts on the folder writes the task's summary
anew, as after a crash. Files are not copied: they are read where they are, and last, as each is there before something
refers to it.

Tasks that are made while documents are read may have events in the copy, and no document. Such events are deleted.

A copy may be kept for the next backup. A file in it notes the place of the engine that it shows. The next copy writes
only documents that differ, and the events of those tasks and models that got some behind that place, or have another
number of events now. While a copy is made, the file is not there. So after an interruption, the next one begins anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from apiserver.events.changes import Cursor
from apiserver.events.model import Owner
from apiserver.operating.backup.progress import Progress
from apiserver.operating.backup.storage import BackupError, Storage
from apiserver.settings.settings import EMBEDDED, Settings
from apiserver.stores.data_folder import DataFolder, write_private
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.documents.query import In
from apiserver.stores.engines import document_engine, event_engine
from apiserver.stores.events.base import EventStore, EventStoreError, EventStoreMoment
from apiserver.stores.locks import lock_if_free
from apiserver.stores.reserve import free_bytes
from apiserver.transfer.copying.documents import copy_documents
from apiserver.transfer.copying.events import EventCopy
from apiserver.transfer.copying.locations import Location, opened
from apiserver.transfer.copying.retrying import CopyError, Say

_TOGETHER = (
    "either events or documents are in the data folder, and the others in an engine, so that both have no moment in"
    " common. Stop the servers, copy all to a folder (apiserver copy --to FOLDER), and back up that folder"
    " (apiserver backup DEST --data FOLDER)"
)
_FAILED = "what is in the engines cannot be copied"
#: The folder of the copy. Backups leave out what begins with a dot in the data folder.
_NAME = ".working_copy"
#: The file in it that says of which place it is.
_PLACE = "place.json"
#: Bytes that the copy leaves free on its disk, and seconds from one look at this to the next.
_ROOM, _LOOK = 64 * 2**20, 0.5
#: Owners that are looked for at once.
_OWNERS = 1000


@contextmanager
def in_folder(settings: Settings, storage: Storage, progress: Progress, work: Path | None) -> Iterator[Settings]:
    """Settings under which events and documents are in a folder: these settings, or those of a copy of the engines.

    The copy is made in `work`, and stays there for the next backup. None: it is made in the data folder, and deleted.
    """
    if settings.events == settings.documents == EMBEDDED:
        yield settings
        return
    if EMBEDDED in (settings.events, settings.documents):
        raise BackupError(_TOGETHER, "either events or documents are not in the data folder")
    DataFolder(settings.data).require()
    if work is not None and work.resolve().is_relative_to(settings.data.resolve()):
        raise BackupError(
            f"{work} lies in the data folder, all of which is backed up: make the copy elsewhere", _FAILED
        )
    with storage.owned():  # so that an unusable destination is told before all is copied
        pass
    with _owned(work or settings.data) as root:
        copied = replace(
            settings,
            data=root,
            events=EMBEDDED,
            documents=EMBEDDED,
            events_password="",
            events_api_key="",
            documents_password="",
            durability="process",  # if the machine fails, the copy is made anew
            reserve_bytes=0,
        )
        try:
            _copy(settings, copied, progress)
            yield copied
        finally:
            if work is None:
                shutil.rmtree(root, ignore_errors=True)


@contextmanager
def _owned(folder: Path) -> Iterator[Path]:
    """Where the copy is in a folder. Nobody else makes one there inside the block.

    Others may write to the folder, as to /tmp, but what is copied has secrets: so the copy has to be this user's.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock_if_free(folder) as is_ours:
        if not is_ours:
            raise BackupError(f"another backup makes its copy in {folder}", "another backup is under way")
        root = folder / _NAME
        if root.is_symlink() or (root.exists() and root.stat().st_uid != os.geteuid()):
            raise BackupError(f"{root} is a link, or of another user: remove it", _FAILED)
        yield root


def left_in(data: Path) -> tuple[Path, int] | None:
    """The copy that a backup left in a data folder when it was killed, and how many bytes it has.

    None: there is none, or a backup makes it just now.
    """
    root = data / _NAME
    if not root.is_dir():
        return None
    with lock_if_free(data) as is_left:  # no backup deletes files of it meanwhile
        if not is_left or not root.is_dir():
            return None
        return root, sum([path.lstat().st_size for path in root.rglob("*")])


def _copy(settings: Settings, copied: Settings, progress: Progress) -> None:
    """Make the copy, or bring it up to date."""
    progress.step("copying what is in the engines")
    root = copied.data
    try:
        place = asyncio.run(_while_there_is_room(root, copy_stores(settings, copied, progress.say)))
        os.sync()
        write_private(root / _PLACE, json.dumps(place))
    except (CopyError, EventStoreError, DocumentStoreError) as error:
        raise BackupError(str(error), _FAILED) from error
    except OSError as error:
        raise BackupError(f"{root} cannot be written: {error}", _FAILED) from error


async def _while_there_is_room(root: Path, copied: Coroutine[Any, Any, Cursor]) -> Cursor:
    """Wait for a copy, and return what it returns. BackupError if its disk is nearly full: the copy is stopped then.

    The disk may be that of the servers, which need room, too. A copy to a full disk would wait for minutes for room.
    """
    copying = asyncio.create_task(copied)
    while not copying.done():
        await asyncio.wait([copying], timeout=_LOOK)
        if free_bytes(root.parent) < _ROOM and not copying.done():
            copying.cancel()
            await asyncio.wait([copying])
            raise BackupError(
                f"there is too little room in {root.parent} for a copy of what is in the engines", _FAILED
            )
    return copying.result()


async def copy_stores(settings: Settings, copied: Settings, say: Say) -> Cursor:
    """Copy documents, and then events, to the stores of other settings; returns the place of the copy."""
    seen = replace(settings, migrate_at_start=False)
    from_events, from_documents = event_engine(seen).moment(), document_engine(seen).store(DataFolder(seen.data))
    assert from_events is not None
    since = _begun(copied.data)
    async with AsyncExitStack() as open_stores, opened(Location(copied)) as (to_events, to_documents):
        assert to_events is not None
        assert to_documents is not None
        for store in (from_events, from_documents):
            open_stores.push_async_callback(store.close)
            await store.open()
        await copy_documents(from_documents, to_documents, say, replaces=True)
        await from_events.begin()
        if since is not None:
            await _delete_changed(from_events, since, to_events)
        await EventCopy(from_events, to_events, say, replaces=True).run()
        await _delete_orphans(to_events, to_documents)
        return from_events.place


def _begun(root: Path) -> Cursor | None:
    """The place of the copy that is brought up to date; None if there is none, or it is not whole."""
    path = root / _PLACE
    try:
        place = json.loads(path.read_bytes())
        path.unlink()
    except (OSError, ValueError):
        shutil.rmtree(root, ignore_errors=True)
        return None
    return place


async def _delete_changed(source: EventStoreMoment, since: Cursor, target: EventStore) -> None:
    """Delete the events of owners of whom something was written."""
    changed = {*await source.changed_since(since)}
    await target.delete([owner async for owner in target.owners() if owner in changed])
    async for _ in target.owners_to_restate():  # so that they may count as restated: their documents are new
        pass


async def _delete_orphans(events: EventStore, documents: DocumentStore) -> None:
    """Delete the events of tasks and models that have no document."""
    owners = sorted([owner async for owner in events.owners() if owner.has_document], key=_collection)
    for collection, some in groupby(owners, _collection):
        of_kind = list(some)
        for start in range(0, len(of_kind), _OWNERS):
            asked = of_kind[start : start + _OWNERS]
            ids = {"id": In([owner.id for owner in asked])}
            found = await documents.find(collection, ids, projection=("company",))
            known = {(document["company"], document["id"]) for document in found}
            if orphans := [owner for owner in asked if (owner.company, owner.id) not in known]:
                await events.delete(orphans)


def _collection(owner: Owner) -> str:
    return "models" if owner.is_model else "tasks"
