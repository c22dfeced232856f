"""A cache of documents by id, because each batch of events reads the document of its task.

Documents are read again when one of the fields that are wanted has changed in any document of the collection, or if
documents were added or deleted. So all that was found before is forgotten then, also what is deleted. Running tasks
change other fields all the time. If other servers share the store, their changes are not seen, so documents are also
read again after a second. Events for a task that another server just deleted are then still taken; `last_metrics.py`
deletes them when it finds no document to write.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.scoped import PUBLIC, VisibleDocuments

_MOST = 10_000
#: Seconds that documents are cached if other servers may change them.
_SHARED_SECONDS = 1.0


class _Found(NamedTuple):
    """What was found of some fields of a collection since they changed last."""

    changes: int
    until: float
    documents: dict[tuple[type[VisibleDocuments], str, str], Document]
    """By who may see them, their company and id."""


class DocumentCache:
    """Caches what `find_one` finds, until it may have changed."""

    def __init__(self, store: DocumentStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._found: dict[tuple[str, tuple[str, ...]], _Found] = {}

    async def find_one(
        self, documents: VisibleDocuments, collection: str, id: str, fields: tuple[str, ...]
    ) -> Document | None:
        """These top-level fields of the document with this id, as it is stored. The caller must not change it."""
        if not documents.whole:  # which documents are within a project depends on others
            return next(iter(await documents.find_kept(collection, [id], fields)), None)
        # Looked for before the document is read, so that a change meanwhile makes the document outdated.
        cached = self._known(collection, fields)
        key = (type(documents), documents.company, id)
        if (document := cached.get(key)) is not None:
            return document
        stored = next(iter(await documents.find_kept(collection, [id], fields)), None)
        if stored is not None:  # unknown ids are not cached: they may be of any length
            if len(cached) >= _MOST:
                cached.clear()
            cached[key] = stored
        return stored

    def _known(
        self, collection: str, fields: tuple[str, ...]
    ) -> dict[tuple[type[VisibleDocuments], str, str], Document]:
        """The documents with these fields that are not outdated."""
        now = self._clock() if self._store.shared else 0.0
        cached = self._found.get((collection, fields))
        if cached is None or self._is_outdated(collection, fields, cached, now):
            # All that is outdated is forgotten, as nobody may ask for these fields again.
            self._found = {key: other for key, other in self._found.items() if not self._is_outdated(*key, other, now)}
            until = now + _SHARED_SECONDS if self._store.shared else math.inf
            cached = self._found[collection, fields] = _Found(self._changes(collection, fields), until, {})
        return cached.documents

    def _is_outdated(self, collection: str, fields: tuple[str, ...], cached: _Found, now: float) -> bool:
        return cached.changes != self._changes(collection, fields) or now > cached.until

    def _changes(self, collection: str, fields: tuple[str, ...]) -> int:
        return self._store.changes(collection, (*fields, "company", PUBLIC))
