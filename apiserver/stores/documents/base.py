"""The DocumentStore protocol: collections of JSON documents, and a small language of filters, updates and sorts.

The language looks like MongoDB's, and what it has means the same there. It has no more than is listed here. `dialect`
parses it for every engine, and says what it means for one document; an engine gets conditions, terms and changes, and
finds the same documents in its own way. It has

- filters: equality (also of a list field with one of its items), `$eq $ne $gt $gte $lt $lte $in $nin $exists $regex`
  (in RE2's syntax, and `$options: "i"`) `$not $all $size $elemMatch $and $or $nor`, dotted paths through objects and
  list items;
- updates: `$set $unset $inc $min $max $push` (`$each`) `$pull $addToSet` (`$each`), dotted paths, positional-free;
- sorts: a list of (path, 1 | -1): numbers before text, as MongoDB orders them, a list by its least (greatest) item. But
  documents without a value (missing, null, "", [], {}, or one of these in a list) come last in both directions, and
  below the fields that `indexes.NUMERIC` names, texts that are numbers sort as numbers.

Documents that tie in a sort come in the order of their ids, descending if its last field is, so that pages neither skip
nor repeat; unsorted ones in any order.

A document is a JSON object with a unique text `id`, whole numbers of 64 bits, and null for NaN and infinities. Times
are UTC ISO-8601 text of fixed width, so that they sort as text. Field names never hold "." and never start with "$":
services escape names that come from users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Document = dict[str, Any]
Filter = Mapping[str, Any]
Update = Mapping[str, Any]
Sort = Sequence[tuple[str, int]]
Counted = Callable[[int], None]


class DocumentStoreError(Exception):
    """An engine could not do what was asked."""


class DocumentStoreBusy(DocumentStoreError):
    """The engine is unavailable for now; the caller may try again after `retry_after` seconds."""

    def __init__(self, reason: str, *, retry_after: int = 1) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class DuplicateDocument(DocumentStoreError):
    """A document with the same unique field is there already."""


class InvalidFilter(DocumentStoreError):
    """A filter, update or sort that the dialect does not have, or that is malformed (a bad regex, say)."""


class InvalidDocument(DocumentStoreError):
    """A document that cannot be kept: without a text `id`, with a value JSON has not, nested too deeply …"""


@dataclass(frozen=True, slots=True)
class Index:
    """Fields (dotted) that are looked up often; `unique` also forbids two documents with the same values.

    `sorts`: documents that are the same in all fields but the last are often sorted by that one. `covers`: what is
    often asked of all of them besides, which an engine may keep in the index, so that it need not look at documents.

    An indexed field holds a single value (text, number, boolean, null), never a list or an object: a document that
    breaks this is InvalidDocument. Documents without all fields of a unique index never count as the same.
    """

    collection: str
    fields: tuple[str, ...]
    unique: bool = False
    sorts: bool = False
    covers: tuple[str, ...] = ()


class DocumentStore(Protocol):
    """Collections of documents. Each single call is atomic; what a call changed survives kill -9 when it returns."""

    @property
    def changes(self) -> int:
        """Another number after each change that was made here, once the call that made it returns."""

    @property
    def shared(self) -> bool:
        """Whether others may change the documents, too."""

    async def open(self) -> None:
        """Take the store into use; raise DocumentStoreError naming the reason when that is not possible."""

    async def close(self) -> None:
        """Let go of every resource; a second call does nothing."""

    async def collections(self) -> list[str]:
        """The names of the collections that hold documents, sorted."""

    async def insert(self, collection: str, documents: Sequence[Document]) -> None:
        """Add the documents, all or none; raise DuplicateDocument when one is there already."""

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
        """The matching documents; `projection` names the (dotted) fields wanted, `id` is always there.

        `counted` is told of the bytes of the documents as they are read, perhaps in a thread; what it raises ends that.
        """

    async def find_one(
        self,
        collection: str,
        filter: Filter,
        *,
        projection: Sequence[str] | None = None,
        sort: Sort = (),
        counted: Counted | None = None,
    ) -> Document | None:
        """The first matching document, or None."""

    async def count(self, collection: str, filter: Filter) -> int:
        """How many documents match."""

    async def count_by(self, collection: str, filter: Filter, fields: Sequence[str]) -> dict[tuple[Any, ...], int]:
        """How many matching documents there are for each combination of the fields' values (missing: None).

        A field that is a list or an object counts by its JSON text.
        """

    async def distinct(
        self, collection: str, field: str, filter: Filter, *, counted: Counted | None = None
    ) -> list[Any]:
        """The distinct values of a field over the matching documents, list items one by one, sorted, without null.

        `counted` as in `find`.
        """

    async def varieties(self, collection: str, field: str, filter: Filter) -> list[Document]:
        """Some matching documents, `id` and `field`, that have all names there are in that top-level field.

        There is one for each set of names, two levels deep (`field.first.second`).
        """

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        """Update the first (or every) match; return how many matched. With `upsert`, insert it updated if none did.

        All or nothing: InvalidFilter when the update does not fit a document, DuplicateDocument when it would make one.
        """

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, sort: Sort = (), return_new: bool = True
    ) -> Document | None:
        """Update the first match and return it as it is after (or was before) the update, in one atomic step."""

    async def delete(self, collection: str, filter: Filter) -> int:
        """Delete every match; return how many there were."""
