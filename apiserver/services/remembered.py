"""Documents by id, remembered until anything changes: each batch of events asks for the document of its task.

Where other servers change documents too, they are remembered for a moment only: what comes for a task that another
server just deleted is found, and deleted, when its document is to be written.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from apiserver.stores.documents.base import Document, DocumentStore
from apiserver.stores.documents.scoped import VisibleDocuments

_MOST = 10_000
#: Seconds that a document is remembered that others may change.
_MOMENT = 1.0


class Remembered:
    """What `find_one` found, for as long as nothing has changed here since."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._changes: int | None = None
        self._until = math.inf
        self._found: dict[tuple[type[VisibleDocuments], str, str, str, Sequence[str]], Document] = {}

    async def find_one(
        self, documents: VisibleDocuments, collection: str, id: str, fields: tuple[str, ...]
    ) -> Document | None:
        """The document with this id, as it is kept; not to be changed by the caller."""
        changes = self._store.changes  # before looking: what changes meanwhile makes the answer out of date at once
        now = time.monotonic() if self._store.shared else 0.0
        if changes != self._changes or len(self._found) >= _MOST or now > self._until:
            self._changes, self._found = changes, {}
            self._until = now + _MOMENT
        key = (type(documents), documents.company, collection, id, fields)
        if key in self._found:
            return self._found[key]
        found = next(iter(await documents.find_kept(collection, [id], fields)), None)
        if found is not None and changes == self._changes:  # what is not there may have any name, of any length
            self._found[key] = found
        return found
