"""Deletes files that nobody needs any more, in the background.

`add` writes to the documents which files are to be deleted. The server deletes them later, also after a restart. If
several servers share the documents, any of them does it; two at once do no harm. A file that was uploaded again after
`add`, for example by a task that runs once more, stays.

A file of a model that another upload has replaced waits for some days first. It is deleted if nothing names it then.

For an hour, the documents also say which files were deleted. A client may delete the same files itself: it is told that
they are deleted, not that they do not exist.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Collection, Iterable
from itertools import groupby
from urllib.parse import urlsplit

from apiserver.common.repeating import Repeating
from apiserver.common.times import from_now, utc_now
from apiserver.fileserver.addresses import LOCAL, host_of, names_of
from apiserver.fileserver.naming import is_named
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError, DuplicateDocument
from apiserver.stores.documents.paging import pages_by_id
from apiserver.stores.documents.query import AtMost, Document, In, Less, Update
from apiserver.stores.files.disk import FileStore, FileStoreError

_WAITING, _DONE, _HOSTS, _REPLACED = "file_deletions", "deleted_files", "file_hosts", "replaced_files"
#: Seconds for which deleted files are remembered.
REMEMBERED = 3600.0
#: Files that are deleted between two updates of the documents.
AT_ONCE = 200
#: Seconds after which files are tried again that the disk refused to delete, or that another server left.
INTERVAL = 60.0
#: Seconds by which a file system's clock may be late: the longest tick that Linux is built with. Python gives no access
#: to that clock.
_TICK = 0.01
#: Most hosts that are remembered for a company, so that nobody fills the documents with made-up ones.
MOST_HOSTS = 100


class FileDeletions:
    """The files of all companies that are to be deleted, or were deleted within the last hour."""

    def __init__(
        self,
        store: FileStore,
        documents: DocumentStore,
        *,
        remembered: float = REMEMBERED,
        hosts: int = MOST_HOSTS,
        at_once: int = AT_ONCE,
        replaced_days: float = 0,
    ) -> None:
        """`remembered`: seconds; `hosts`: how many a company may have; `at_once`: files between two updates.

        `replaced_days`: for how long replaced files stay; 0: for ever.
        """
        self._replaced_days = replaced_days
        self._at_once = at_once
        self._store = store
        self._documents = documents
        self._remembered = remembered
        self._most_hosts = hosts
        self._noted_hosts: set[tuple[str, str]] = set()
        self.deleting = Repeating(
            "deleting files", self._work_and_forget, INTERVAL, expected=(FileStoreError, DocumentStoreError)
        )

    async def note_host(self, company: str, authority: str) -> None:
        """Remember the Host header `authority` of an upload: the URLs of these files will name that host."""
        host = host_of(authority)
        if host is None or host in LOCAL or (company, host) in self._noted_hosts:
            return
        if len(await self.hosts(company)) < self._most_hosts:
            entry: Document = {"id": _id(company, host), "company": company, "host": host}
            await self._documents.update(_HOSTS, {"id": entry["id"]}, Update(set=entry), upsert=entry)
        self._noted_hosts.add((company, host))

    async def hosts(self, company: str) -> set[str]:
        """The host names in the URLs of the company's files."""
        return {entry["host"] for entry in await self._documents.find(_HOSTS, {"company": company})} | LOCAL

    async def hosts_by(self, company: str, authority: str) -> set[str]:
        """`hosts`, and the host in the Host header `authority` of a call."""
        host = host_of(authority)
        return await self.hosts(company) | ({host} if host else set())

    async def add(self, company: str, urls: Iterable[str], authority: str = "") -> None:
        """Have the files deleted that the URLs name, if they are stored here; `authority`: the call's Host header.

        Files that are uploaded after this has returned stay.
        """
        hosts = await self.hosts_by(company, authority)
        await self.add_names(company, {name for url in urls for name in names_of(url, hosts)})

    async def add_names(self, company: str, files: Collection[str], before: int | None = None) -> None:
        """Have the files of these names deleted, as `add` does, unless they were uploaded after `before` (epoch ns)."""
        names = sorted(files)
        before = time.time_ns() if before is None else before
        for first in range(0, len(names), self._at_once):
            entries: list[Document] = [
                {"id": _id(company, name), "company": company, "name": name, "before": before}
                for name in names[first : first + self._at_once]
            ]
            await self._put(_WAITING, entries, Update(max={"before": before}))
        if names:
            await asyncio.sleep(2 * _TICK)  # so that a file that is uploaded from now on has a time after `before`
            self.deleting.wake()

    async def add_replaced(self, company: str, url: str, authority: str = "") -> None:
        """Have a file of a model deleted in some days, if nothing names it then; `authority`: the call's Host header.

        If it is uploaded again meanwhile, it stays.
        """
        if not self._replaced_days:
            return
        due = {"before": time.time_ns(), "due": from_now(self._replaced_days * 86400)}
        for name in names_of(url, await self.hosts_by(company, authority)):
            entry: Document = {"id": _id(company, name), "company": company, "name": name, "url": url, **due}
            await self._put(_REPLACED, [entry], Update(set=due))

    async def is_named(self, company: str, url: str, authority: str = "") -> bool:
        """Whether a model or a task names the file at an address of this server."""
        return await is_named(self._documents, company, url, await self.hosts_by(company, authority))

    async def add_due(self) -> None:
        """Have those replaced files deleted whose time has come, and which nothing names."""
        for one in await self._documents.find(_REPLACED, {"due": AtMost(utc_now())}):
            if not await self.is_named(one["company"], one["url"], urlsplit(one["url"]).netloc):
                await self.add_names(one["company"], [one["name"]], one["before"])
            await self._documents.delete(_REPLACED, {"id": one["id"], "due": one["due"]})

    async def covers(self, company: str, name: str) -> bool:
        """Whether the file is to be deleted, or was deleted within the last hour."""
        wanted = {"id": _id(company, name)}
        return any([await self._documents.find_one(kind, wanted, projection=["id"]) for kind in (_WAITING, _DONE)])

    async def work(self) -> None:
        """Delete all files that are to be deleted; FileStoreError in the end if some of them could not be."""
        refused: FileStoreError | None = None
        async for waiting in pages_by_id(self._documents, _WAITING, limit=self._at_once):
            done = []
            for one in waiting:
                try:
                    await self._store.delete(one["company"], one["name"], placed_before=one["before"])
                    done.append(one)
                except FileStoreError as error:  # go on with the other files
                    refused = error
            if done:
                await self._note_done(done)
        if refused:
            raise refused

    async def _work_and_forget(self) -> None:
        """Do each of these, also if one before it fails; the first error comes in the end."""
        failed: Exception | None = None
        for step in (self.add_due, self.work, self._forget):
            try:
                await step()
            except Exception as error:
                failed = failed or error
        if failed:
            raise failed

    async def _forget(self) -> None:
        await self._documents.delete(_DONE, {"deleted": Less(from_now(-self._remembered))})

    async def _note_done(self, deletions: Collection[Document]) -> None:
        now = utc_now()
        done = [{"id": deletion["id"], "company": deletion["company"], "deleted": now} for deletion in deletions]
        await self._put(_DONE, done, Update(set={"deleted": now}))
        # An entry with a later `before` than it had was added again meanwhile, and stays.
        for before, same_before in groupby(sorted(deletions, key=_before), _before):
            ids = [deletion["id"] for deletion in same_before]
            await self._documents.delete(_WAITING, {"id": In(ids), "before": AtMost(before)})

    async def _put(self, collection: str, entries: list[Document], again: Update) -> None:
        """Insert the entries; those whose ids are there already get the update `again` instead."""
        ids = [entry["id"] for entry in entries]
        while True:
            found = await self._documents.find(collection, {"id": In(ids)}, projection=["id"])
            if known := sorted(entry["id"] for entry in found):
                await self._documents.update(collection, {"id": In(known)}, again, many=True)
            if new := [entry for entry in entries if entry["id"] not in known]:
                try:
                    await self._documents.insert(collection, new)
                except DuplicateDocument:  # another call has just added some of them
                    continue
            return


def _before(entry: Document) -> int:
    before: int = entry["before"]
    return before


def _id(company: str, name: str) -> str:
    return hashlib.sha256(f"{company}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
