"""The DocumentStore protocol: collections of JSON documents, and a small language of filters, updates and sorts.

`query` has the words of the language. They mean what the similar operators of MongoDB mean. `dialect` checks filters,
updates and sorts for every engine, and defines what they mean for one document. An engine gets conditions, terms and
changes, and finds the same documents in its own way. The language has

- filters: objects of dotted paths, through objects and list items, and what is wanted there. A value wants an equal
  one; a list also equals each of its items. `In`, `Less`, `Matches` and the other tests of `query` want something
  else. `AllOf`, `AnyOf` and `NoneOf` combine filters. `FirstNumber` in place of a path is the number at the first of
  some paths that lead to one;
- updates: what `Update` sets, removes, raises, lowers, or does to lists, at dotted paths;
- sorts: a list of (path, 1 | -1). Numbers come before text, as in MongoDB. A list sorts by its least item, or by its
  greatest if descending. Unlike in MongoDB, documents without a value (missing, null, "", [], {}, or one of these in a
  list) come last in both directions, and below the fields of `indexes.NUMERIC`, texts that are numbers sort as numbers.

Documents that are equal in a sort come in the order of their ids, descending if the sort's last field is. So pages
neither skip nor repeat documents. Without a sort, documents come in any order.

A document is a JSON object with a unique text `id`, whole numbers of 64 bits, and null for NaN and infinities. Times
are UTC ISO-8601 text of fixed width, so they sort as text. Field names have no "." and do not start with "$"; services
escape names that come from users.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.stores.documents.query import Counted, Document, Filter, FindQuery, Sort, Update


class DocumentStoreError(Exception):
    """An engine could not do what was asked."""


class DocumentStoreBusy(DocumentStoreError):
    """The engine is unavailable for now. The caller may try again after `retry_after` seconds."""

    def __init__(self, reason: str, *, retry_after: int = 1) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class DuplicateDocument(DocumentStoreError):
    """There is already a document with the same value of a unique field."""


class InvalidFilter(DocumentStoreError):
    """A filter, update or sort is malformed: a bad path or pattern, or an update of two fields that overlap."""


class InvalidDocument(DocumentStoreError):
    """A document cannot be kept: it has no text `id`, or a value that JSON does not have, or is nested too deeply."""


@dataclass(frozen=True, slots=True)
class Index:
    """Fields (dotted) that are often looked up. With `unique`, no two documents may have the same values.

    `sorts`: documents with the same values in all fields but the last are often sorted by the last one. `covers`: other
    fields that are often read of these documents. An engine may keep them in the index, to answer without documents.

    An indexed field has a single value (text, number, boolean, null). A document with a list or an object there is
    InvalidDocument. A document that lacks a field of a unique index never counts as the same as another one.
    """

    collection: str
    fields: tuple[str, ...]
    unique: bool = False
    sorts: bool = False
    covers: tuple[str, ...] = ()


class DocumentReads(Protocol):
    """The reads of a store, or of a part of one. Each is answered as of one moment."""

    async def search(self, collection: str, query: FindQuery) -> list[Document]:
        """The documents that a query finds."""

    async def find(
        self,
        collection: str,
        filter: Filter,
        *,
        projection: Sequence[str] | None = None,
        sort: Sort = (),
        skip: int = 0,
        limit: int | None = None,
        counted: Counted | None = None,
    ) -> list[Document]:
        """`search`, for callers that say here what they look for."""
        return await self.search(collection, FindQuery(filter, projection, sort, skip, limit, counted))

    async def find_one(
        self,
        collection: str,
        filter: Filter,
        *,
        projection: Sequence[str] | None = None,
        sort: Sort = (),
        counted: Counted | None = None,
    ) -> Document | None:
        """The first document that meets the filter, or None."""
        query = FindQuery(filter, projection, sort, limit=1, counted=counted)
        return next(iter(await self.search(collection, query)), None)

    async def count(self, collection: str, filter: Filter) -> int:
        """How many documents match."""

    async def count_by(self, collection: str, filter: Filter, fields: Sequence[str]) -> dict[tuple[Any, ...], int]:
        """The number of matching documents for each combination of the fields' values (missing: None).

        A list or an object counts by its JSON text.
        """

    async def count_items(
        self,
        collection: str,
        filter: Filter,
        field: str,
        *,
        counted: Counted | None = None,
        longest: int | None = None,
    ) -> dict[Any, int]:
        """The number of matching documents for each value of a field (missing: None).

        A document counts for each item of its list, and for None if the list is empty. An object counts by its JSON
        text. `counted` as in `FindQuery`. A text of more than `longest` characters may be cut to `longest` + 1 of them.
        """

    async def distinct(
        self, collection: str, field: str, filter: Filter, *, counted: Counted | None = None
    ) -> list[Any]:
        """The distinct values of a field in the matching documents, list items one by one, sorted, without null.

        `counted` as in `FindQuery`.
        """

    async def varieties(self, collection: str, field: str, filter: Filter) -> list[Document]:
        """Some matching documents, with `id` and `field`, that together have all names below that top-level field.

        There is a document for each distinct set of names, two levels deep (`field.first.second`).
        """


class DocumentStore(DocumentReads, Protocol):
    """Collections of documents. Each call is atomic. Its changes survive kill -9 once it returns."""

    def changes(self, collection: str, fields: Collection[str]) -> int:
        """A number that differs after this store has changed one of these top-level fields in any document, or has
        added or deleted documents, once the call returns. It may differ for other reasons, too.
        """

    @property
    def shared(self) -> bool:
        """Whether other servers may change the documents, too."""

    @property
    def changes_by_others(self) -> int | None:
        """A number that differs after another process has changed documents; None if the store cannot tell."""

    async def open(self) -> None:
        """Open the store; raise DocumentStoreError with the reason if that is not possible."""

    async def close(self) -> None:
        """Release all resources. A second call does nothing."""

    async def collections(self) -> list[str]:
        """The names of the collections that have documents, sorted."""

    async def insert(self, collection: str, documents: Sequence[Document]) -> None:
        """Add all documents; add none and raise DuplicateDocument if there is already one of them."""

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        """Update one match, or with `many` every match; return how many there were.

        If there is none, insert `upsert`, with the update applied. All or nothing is changed: InvalidFilter if the
        update does not fit a document, DuplicateDocument if it would make a duplicate.
        """

    async def update_each(self, collection: str, updates: Sequence[tuple[Filter, Update]]) -> list[int]:
        """As `update` of one match for each filter with its update, in order; return for each how many there were.

        If one raises, others may have been made or not.
        """

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, return_new: bool = True
    ) -> Document | None:
        """Update one match in one atomic step; return it as it is after the update, or was before."""

    async def delete(self, collection: str, filter: Filter) -> int:
        """Delete every match; return how many there were."""
