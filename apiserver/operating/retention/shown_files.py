"""Deletes the files that only deleted images and plots showed.

1. Before events are deleted, note in the documents which files they show.
2. Once they are deleted, look which of these files nothing shows or names any more, and have those deleted.
3. Delete the note.

If the server is killed before step 3, the note stays, and the next run does steps 2 and 3. Events that were not deleted
show their files still, so these stay. So do files that were uploaded since step 1.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple
from uuid import uuid4

from apiserver.events.changes import ChangesQuery
from apiserver.events.model import EventType, Owner
from apiserver.fileserver.addresses import files_of, task_of
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.retention import due
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.paging import pages_by_id
from apiserver.stores.documents.query import Document, In
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.parts import in_parts

_NOTES = "retention_files"
#: Notes and models that are read at once.
_NOTES_AT_ONCE, _MODELS = 10, 5000
#: How often somebody looks which files are needed still, if others come meanwhile.
_LOOKS = 3

log = logging.getLogger(__name__)


class Shown(NamedTuple):
    """The URLs of files that events of a task show. The events are to be deleted, or are deleted already."""

    owner: Owner
    urls: Collection[str]
    noted: int
    """When that was noted (epoch ns)."""
    notes: Sequence[str]
    """The ids of the documents that say so."""


class ShownFiles:
    """The files that deleted events showed."""

    def __init__(
        self,
        events: EventStore,
        documents: DocumentStore,
        files: FileDeletions,
        bounds: RetentionBounds | None = None,
    ) -> None:
        self._bounds = bounds or RetentionBounds()
        self._events = events
        self._documents = documents
        self._files = files
        self._of_models: dict[str, set[str]] = {}

    async def note(self, owner: Owner, urls: Collection[str]) -> Shown:
        """Note the files that due events show. `urls`: the URLs in these events."""
        noted = time.time_ns()
        if urls:
            hosts = await self._files.hosts(owner.company)
            urls = await asyncio.to_thread(lambda: [url for url in sorted(urls) if _files(owner, [url], hosts)])
        notes: list[Document] = [
            {"id": uuid4().hex, "company": owner.company, "task": owner.id, "urls": some, "noted": noted}
            for some in in_parts(urls, len, self._bounds.note_characters)
        ]
        for one in notes:
            await self._documents.insert(_NOTES, [one])
        return Shown(owner, urls, noted, [one["id"] for one in notes])

    async def left(self) -> AsyncIterator[Shown]:
        """The notes of runs that were cut short."""
        async for some in pages_by_id(self._documents, _NOTES, limit=_NOTES_AT_ONCE):
            for one in some:
                yield Shown(Owner(one["company"], one["task"]), one["urls"], one["noted"], [one["id"]])

    async def delete(self, shown: Shown) -> None:
        """Have the files deleted that nothing shows or names any more, and delete the note.

        Events that are still there show their files, and events that come meanwhile may show them, too. If such events
        come again and again, the note stays, and the next run deletes the files.
        """
        if not shown.notes:
            return
        owner = shown.owner
        hosts = await self._files.hosts(owner.company)
        for _ in range(_LOOKS):
            cursor = (await self._events.changes(ChangesQuery([owner]))).cursor
            names = await self._unneeded(shown, hosts)
            changed = (await self._events.changes(ChangesQuery([owner], cursor))).owners.get(owner)
            if changed is None or not (changed.may_have(EventType.IMAGE) or changed.may_have(EventType.PLOT)):
                if names:
                    await self._files.add_names(owner.company, names, before=shown.noted)
                await self._documents.delete(_NOTES, {"id": In(shown.notes)})
                return
        log.warning("files of deleted events of task %s stay until the next run, as it reports all the time", owner.id)

    async def _unneeded(self, shown: Shown, hosts: Collection[str]) -> set[str]:
        """The files that no event, task or model shows or names."""
        owner, urls = shown.owner, shown.urls
        left = await asyncio.to_thread(_files, owner, urls, hosts)
        left = await due.unneeded_files(self._events, owner, left, hosts)
        made = await self._documents.find_one("tasks", {"id": owner.id}, projection=["execution.artifacts"])
        artifacts = (made or {}).get("execution", {}).get("artifacts", ())
        left -= files_of([document["uri"] for document in artifacts if document.get("uri")], hosts)
        left -= await self._files_of_models(owner.company, hosts)
        asked, most = sorted(urls), self._bounds.urls
        for start in range(0, len(asked), most):  # models that were made since
            models = await self._documents.find("models", {"uri": In(asked[start : start + most])}, projection=["uri"])
            left -= files_of([document["uri"] for document in models], hosts)
        return left

    async def _files_of_models(self, company: str, hosts: Collection[str]) -> set[str]:
        """The files of all models of a company, as of the first time that somebody asks.

        A URL may be spelled in many ways, so the documents cannot be asked for the models of some files.
        """
        if company not in self._of_models:
            files = set[str]()
            of = {"company": company}
            async for models in pages_by_id(self._documents, "models", wanted=of, projection=["uri"], limit=_MODELS):
                uris = [model["uri"] for model in models if model.get("uri")]
                files |= await asyncio.to_thread(files_of, uris, hosts)
            self._of_models[company] = files
        return self._of_models[company]


def _files(owner: Owner, urls: Collection[str], hosts: Collection[str]) -> set[str]:
    """The files of this server with these URLs. Clients may write any URL into an event: none is another task's."""
    return {name for name in files_of(urls, hosts) if task_of(name) in (None, owner.id)}
