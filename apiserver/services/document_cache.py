"""A cache of documents by id, because each batch of events reads the document of its task.

The cache is emptied at every change of the store. If other servers share the store, their changes are not seen, so the
cache is also emptied after a second. Events for a task that another server just deleted are then still taken;
`last_metrics.py` deletes them when it finds no document to write.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.scoped import VisibleDocuments

_MOST = 10_000
#: Seconds that documents are cached if other servers may change them.
_SHARED_SECONDS = 1.0


class DocumentCache:
    """Caches what `find_one` finds, until the store changes."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._changes: int | None = None
        self._until = math.inf
        self._found: dict[tuple[type[VisibleDocuments], str, str, str, Sequence[str]], Document] = {}

    async def find_one(
        self, documents: VisibleDocuments, collection: str, id: str, fields: tuple[str, ...]
    ) -> Document | None:
        """The document with this id, as it is stored. The caller must not change it."""
        changes = self._store.changes  # read before the document, so that a change meanwhile makes the cache outdated
        now = time.monotonic() if self._store.shared else 0.0
        if changes != self._changes or len(self._found) >= _MOST or now > self._until:
            self._changes, self._found = changes, {}
            self._until = now + _SHARED_SECONDS
        key = (type(documents), documents.company, collection, id, fields)
        if key in self._found:
            return self._found[key]
        found = next(iter(await documents.find_kept(collection, [id], fields)), None)
        if found is not None and changes == self._changes:  # unknown ids are not cached: they may be of any length
            self._found[key] = found
        return found
