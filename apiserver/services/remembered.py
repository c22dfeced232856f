"""Documents by id, remembered until anything changes: each batch of events asks for the document of its task."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.stores.documents.base import Document, DocumentStore
from apiserver.stores.documents.scoped import CompanyDocuments

_MOST = 10_000


class Remembered:
    """What `find_one` found, for as long as the store says that nothing has changed since."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._changes: int | None = None
        self._found: dict[tuple[str, str, str, Sequence[str]], Document] = {}

    async def find_one(
        self, documents: CompanyDocuments, collection: str, id: str, fields: tuple[str, ...]
    ) -> Document | None:
        """The document with this id; not to be changed by the caller."""
        changes = self._store.changes  # before looking: what changes meanwhile makes the answer out of date at once
        if changes is None:
            return await documents.find_one(collection, {"id": id}, projection=fields)
        if changes != self._changes or len(self._found) >= _MOST:
            self._changes, self._found = changes, {}
        key = (documents.company, collection, id, fields)
        if key in self._found:
            return self._found[key]
        found = await documents.find_one(collection, {"id": id}, projection=fields)
        if found is not None and changes == self._changes:  # what is not there may have any name, of any length
            self._found[key] = found
        return found
