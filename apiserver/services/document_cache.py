"""A cache of documents by id, because each batch of events reads the document of its task.

A document is read again when one of the fields that are wanted has changed in any document of the collection, or if
documents were added or deleted. Running tasks change other fields all the time. If other servers share the store, their
changes are not seen, so documents are also read again after a second. Events for a task that another server just
deleted are then still taken; `last_metrics.py` deletes them when it finds no document to write.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.scoped import PUBLIC, VisibleDocuments

_MOST = 10_000
#: Seconds that documents are cached if other servers may change them.
_SHARED_SECONDS = 1.0


class _Found(NamedTuple):
    document: Document
    changes: int
    until: float


class DocumentCache:
    """Caches what `find_one` finds, until it may have changed."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._found: dict[tuple[type[VisibleDocuments], str, str, str, tuple[str, ...]], _Found] = {}

    async def find_one(
        self, documents: VisibleDocuments, collection: str, id: str, fields: tuple[str, ...]
    ) -> Document | None:
        """These top-level fields of the document with this id, as it is stored. The caller must not change it."""
        if not documents.whole:  # which documents are within a project depends on others
            return next(iter(await documents.find_kept(collection, [id], fields)), None)
        # The number is read before the document, so that a change meanwhile makes the document outdated.
        changes = self._store.changes(collection, (*fields, "company", PUBLIC))
        now = time.monotonic() if self._store.shared else 0.0
        key = (type(documents), documents.company, collection, id, fields)
        known = self._found.get(key)
        if known is not None and known.changes == changes and now <= known.until:
            return known.document
        found = next(iter(await documents.find_kept(collection, [id], fields)), None)
        if found is not None:  # unknown ids are not cached: they may be of any length
            if len(self._found) >= _MOST:
                self._found.clear()
            self._found[key] = _Found(found, changes, now + _SHARED_SECONDS if self._store.shared else math.inf)
        return found
