"""Files that nobody needs any more are deleted behind the calls that say so.

What is to be deleted is in the documents when `add` returns, and worked off in the background, after a restart too; of
several servers any one does it, or two at once, which does no harm. A file that was put into its place later, as a task
that runs once more does, stays. For a while it is remembered what was deleted: clients that delete the same files
themselves are told that they are gone, not that they never were.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Collection, Iterable

from apiserver.files.addresses import LOCAL, host_of, names_of
from apiserver.repeating import Repeating
from apiserver.stores.documents.base import Document, DocumentStore, DocumentStoreError, DuplicateDocument, Update
from apiserver.stores.files.disk import FileStore, FileStoreError
from apiserver.times import from_now, utc_now

log = logging.getLogger(__name__)

_WAITING, _DONE, _HOSTS = "file_deletions", "deleted_files", "file_hosts"
#: Seconds that it is remembered that a file was deleted.
REMEMBERED = 3600.0
#: Files that are deleted between two updates of the documents.
_AT_ONCE = 200
#: Seconds between looks for what other servers left, and before a disk that refuses is tried again.
INTERVAL = 60.0
#: Seconds by which the clock of file systems may be behind: after them, what is put into its place has a later time. It
#: is the longest tick that Linux is built with; Python has no name for the clock that would tell.
_TICK = 0.01
#: Hosts that are remembered of a company, so that nobody fills the documents with made-up ones.
_MOST_HOSTS = 100


class FileDeletions:
    """The files of all companies that are to be deleted, or were not long ago."""

    def __init__(self, store: FileStore, documents: DocumentStore) -> None:
        self._store = store
        self._documents = documents
        self._reached_by: set[tuple[str, str]] = set()
        self.deleting = Repeating(
            "deleting files", self._work_and_forget, INTERVAL, expected=(FileStoreError, DocumentStoreError)
        )

    async def reached_by(self, company: str, authority: str) -> None:
        """Note the Host header that files were uploaded with: their URLs will name it."""
        host = host_of(authority)
        if host is None or host in LOCAL or (company, host) in self._reached_by:
            return
        if len(await self.hosts(company)) < _MOST_HOSTS:
            entry: Document = {"id": _id(company, host), "company": company, "host": host}
            await self._documents.update(_HOSTS, {"id": entry["id"]}, {"$set": entry}, upsert=entry)
        self._reached_by.add((company, host))

    async def hosts(self, company: str) -> set[str]:
        """The host names that the company's files have been reached by."""
        return {entry["host"] for entry in await self._documents.find(_HOSTS, {"company": company})} | LOCAL

    async def hosts_by(self, company: str, authority: str) -> set[str]:
        """`hosts`, and the one that a call names in its Host header, `authority`."""
        host = host_of(authority)
        return await self.hosts(company) | ({host} if host else set())

    async def add(self, company: str, urls: Iterable[str], authority: str = "") -> None:
        """Have the files of those URLs deleted that are ours; `authority` is the Host header of the call, another name.

        Files that are put into their places once this has returned stay.
        """
        hosts = await self.hosts_by(company, authority)
        names = sorted({name for url in urls for name in names_of(url, hosts)})
        before = time.time_ns()
        for first in range(0, len(names), _AT_ONCE):
            entries = [_deletion(company, name, before) for name in names[first : first + _AT_ONCE]]
            await self._put(_WAITING, entries, {"$max": {"before": before}})
        if names:
            await asyncio.sleep(2 * _TICK)
            self.deleting.wake()

    async def covers(self, company: str, name: str) -> bool:
        """Whether the file is to be deleted, or was not long ago."""
        wanted = {"id": _id(company, name)}
        return any([await self._documents.find_one(kind, wanted, projection=["id"]) for kind in (_WAITING, _DONE)])

    async def work(self) -> None:
        """Delete all that is to be deleted by now; FileStoreError when some of it could not be, after all the rest."""
        refused: FileStoreError | None = None
        last = ""
        while waiting := await self._documents.find(_WAITING, {"id": {"$gt": last}}, sort=[("id", 1)], limit=_AT_ONCE):
            done = []
            for one in waiting:
                try:
                    await self._store.delete(one["company"], one["name"], placed_before=one["before"])
                    done.append(one)
                except FileStoreError as error:  # one file that the disk refuses is not to keep all others
                    refused = error
            if done:
                await self._note_done(done)
            last = waiting[-1]["id"]
        if refused:
            raise refused

    async def _work_and_forget(self) -> None:
        try:
            await self.work()
        finally:
            await self._documents.delete(_DONE, {"deleted": {"$lt": from_now(-REMEMBERED)}})

    async def _note_done(self, deletions: Collection[Document]) -> None:
        now = utc_now()
        done = [{"id": one["id"], "company": one["company"], "deleted": now} for one in deletions]
        await self._put(_DONE, done, {"$set": {"deleted": now}})
        # Those that were asked for anew meanwhile stay.
        worked_off = {"$lte": max(one["before"] for one in deletions)}
        await self._documents.delete(_WAITING, {"id": {"$in": [one["id"] for one in done]}, "before": worked_off})

    async def _put(self, collection: str, entries: list[Document], again: Update) -> None:
        """Insert the entries, but update those that are there already."""
        ids = [entry["id"] for entry in entries]
        while True:
            found = await self._documents.find(collection, {"id": {"$in": ids}}, projection=["id"])
            if known := sorted(entry["id"] for entry in found):
                await self._documents.update(collection, {"id": {"$in": known}}, again, many=True)
            if new := [entry for entry in entries if entry["id"] not in known]:
                try:
                    await self._documents.insert(collection, new)
                except DuplicateDocument:  # another call wants some of them deleted, too
                    continue
            return


def _deletion(company: str, name: str, before: int) -> Document:
    return {"id": _id(company, name), "company": company, "name": name, "before": before}


def _id(company: str, name: str) -> str:
    return hashlib.sha256(f"{company}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
