"""Finds documents. If a query is exact, MongoDB finds them; else each document that it finds is tested here, too.

MongoDB also sorts by one top-level field, and by id, with its indexes. Other sorts are made here, from ids and the
values to sort by: neither collations nor pipelines sort as our language does on every server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from apiserver.stores.documents.dialect.filters import Condition, meets, paths_of
from apiserver.stores.documents.dialect.groups import Group
from apiserver.stores.documents.dialect.paths import Path, gathered, shape_of
from apiserver.stores.documents.dialect.queries import ParsedQuery
from apiserver.stores.documents.dialect.sorts import Term, in_order
from apiserver.stores.documents.mongo import pipelines
from apiserver.stores.documents.mongo.database import Database, Find, Projection, Stored
from apiserver.stores.documents.mongo.layout import REVISION, decode, name_of
from apiserver.stores.documents.mongo.ordering import ids_in_order
from apiserver.stores.documents.mongo.translate import Turn, in_turn, left_of, projection_of, query_of
from apiserver.stores.documents.query import Counted

_CHUNK = 1000
"""Documents that are read by id in one query."""


class Reader:
    """Reads collections of a database, and returns documents in their stored form."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, collection: str, query: ParsedQuery) -> list[Stored]:
        """The documents that a query finds."""
        projection = None if query.fields is None else projection_of(query.fields)
        return await self.find_stored(collection, query, projection)

    async def find_stored(self, collection: str, query: ParsedQuery, projection: Projection) -> list[Stored]:
        """The documents that a query finds, with these stored fields in place of the query's.

        `counted` gets the bytes of these documents as they are read, but not of others that are tested.
        """
        if query.limit == 0:
            return []
        turns = in_turn(query.condition, query.terms)
        if turns is not None and all(query_of(part).exact for part, _ in turns):
            return await self._find_in_turn(collection, turns, query, projection)
        if turns is None and _are_computed(query):
            ids = await self._sorted(collection, query_of(query.condition).filter, query.terms)
            page = ids[query.skip :][: query.limit]
        else:
            page = await self._matching_ids(collection, query)
        return await self._by_id(collection, page, projection, query.counted)

    async def _matching_ids(self, collection: str, query: ParsedQuery) -> list[str]:
        """The ids of a page, whose documents are tested here."""
        ids: list[str] = []
        async with aclosing(self.matching(collection, query.condition, terms=query.terms)) as matching:
            async for stored in matching:
                ids.append(stored["_id"])
                if query.limit is not None and len(ids) == query.skip + query.limit:
                    break
        return ids[query.skip :]

    async def first(self, collection: str, condition: Condition, projection: Projection) -> Stored | None:
        """One document that meets a condition, as it was at one moment. `projection` has the condition's fields."""
        if query_of(condition).exact:
            documents = await self.find_stored(collection, ParsedQuery(condition, limit=1), projection)
            return next(iter(documents), None)
        async with aclosing(self.matching(collection, condition)) as matching:
            async for stored in matching:
                for document in await self._by_id(collection, [stored["_id"]], projection):
                    if meets(condition)(decode(document)):
                        return document
        return None

    async def matching(
        self, collection: str, condition: Condition, *, terms: Sequence[Term] = ()
    ) -> AsyncGenerator[Stored]:
        """The id and revision of each document that meets a condition, sorted."""
        turns = in_turn(condition, terms)
        if turns is None:
            paths = [path for term in terms for path in term.paths]
            by_id = {stored["_id"]: stored async for stored in self._matching(collection, condition, paths=paths)}
            for document in await asyncio.to_thread(in_order, map(decode, by_id.values()), terms):
                yield by_id[document["id"]]
            return
        for part, sort in turns:
            async with aclosing(self._matching(collection, part, sort=sort)) as matching:
                async for stored in matching:
                    yield stored

    async def _matching(
        self,
        collection: str,
        condition: Condition,
        *,
        paths: Sequence[Path] = (),
        sort: Sequence[tuple[str, int]] = (),
    ) -> AsyncGenerator[Stored]:
        query, left = query_of(condition), left_of(condition)
        projection = {**projection_of([*paths_of(left), *paths]), REVISION: 1}
        async with aclosing(self._database.batches(collection, Find(query.filter, projection, sort))) as batches:
            async for batch in batches:
                for stored in batch if query.exact else await asyncio.to_thread(_matching_of, batch, left):
                    yield stored

    async def _find_in_turn(
        self, collection: str, turns: Sequence[Turn], query: ParsedQuery, projection: Projection
    ) -> list[Stored]:
        """A page of the documents of all turns, one turn after another."""
        page: list[Stored] = []
        skip = query.skip
        for place, (condition, sort) in enumerate(turns):
            filter, limit = query_of(condition).filter, 0 if query.limit is None else query.limit - len(page)
            part = await self._database.find(collection, Find(filter, projection, sort, skip, limit), query.counted)
            page += part
            if place == len(turns) - 1 or len(page) == query.limit:
                break
            if skip:
                skip = 0 if part else max(0, skip - await self._database.count(collection, filter))
        return page

    async def _sorted(self, collection: str, query: dict[str, Any], terms: Sequence[Term]) -> list[str]:
        """The ids of all documents that a query finds, sorted. The last of the terms is the id."""
        paths = [path for term in terms[:-1] for path in term.paths]
        rows = await self._database.aggregate(collection, pipelines.values(query, paths))
        with_lists = {row["_id"]: row for row in pipelines.with_lists(rows, paths)}
        for stored in await self._by_id(collection, list(with_lists), projection_of(paths)):
            with_lists[stored["_id"]] |= pipelines.given(decode(stored), paths)
        return await asyncio.to_thread(ids_in_order, rows, terms)

    async def count(self, collection: str, condition: Condition) -> int:
        """How many documents meet a condition."""
        query = query_of(condition)
        if query.exact:
            return await self._database.count(collection, query.filter)
        return len([stored async for stored in self.matching(collection, condition)])

    async def groups(
        self,
        collection: str,
        condition: Condition,
        paths: Sequence[Path],
        *,
        by_item: bool = False,
        counted: Counted | None = None,
    ) -> list[Group]:
        """How many documents that meet a condition have the same values at the paths, and these values.

        A missing value is null. If a list is on the way, the value is the list of all values. With `by_item`, the items
        of lists may come one by one, which is faster, as there are fewer distinct items than lists. `counted` gets the
        bytes of the groups as they are read.
        """
        query = query_of(condition)
        if query.exact and all(map(pipelines.takes, paths)):
            groups = await self._database.aggregate(
                collection, pipelines.groups(query.filter, paths, by_item=by_item), counted
            )
            if not pipelines.with_lists([group["_id"] for group in groups], paths):
                fields = [pipelines.field(place) for place in range(len(paths))]
                return [(group["documents"], *map(group["_id"].get, fields)) for group in groups]
        async with aclosing(self._matching(collection, condition, paths=paths)) as matching:
            singles: list[Group] = []
            async for stored in matching:
                document = decode(stored)
                values = [gathered(document, path) for path in paths]
                if counted is not None:
                    counted(len(repr(values)))
                singles.append((1, *values))
        return singles

    async def varieties(self, collection: str, condition: Condition, path: Path) -> AsyncGenerator[Stored]:
        """A document that meets the condition for each distinct set of names, two levels deep, below the path."""
        query, name = query_of(condition), name_of(path)
        if query.exact and pipelines.takes(path):
            for group in await self._database.aggregate(collection, pipelines.varieties(query.filter, name)):
                yield {"_id": group["document"], name: group["value"]}
            return
        shapes: set[int] = set()
        async with aclosing(self._matching(collection, condition, paths=[path])) as matching:
            async for stored in matching:
                shape = shape_of(gathered(decode(stored), path))
                if shape not in shapes:
                    shapes.add(shape)
                    yield stored

    async def _by_id(
        self, collection: str, ids: list[str], projection: Projection, counted: Counted | None = None
    ) -> list[Stored]:
        """The documents with these ids, in this order, without those that are gone."""
        by_id: dict[str, Stored] = {}
        for start in range(0, len(ids), _CHUNK):
            find = Find({"_id": {"$in": ids[start : start + _CHUNK]}}, projection)
            by_id |= {stored["_id"]: stored for stored in await self._database.find(collection, find, counted)}
        return [by_id[id] for id in ids if id in by_id]


def _are_computed(query: ParsedQuery) -> bool:
    """Whether MongoDB finds exactly the query's documents, and computes the values that they are sorted by."""
    return query_of(query.condition).exact and all(pipelines.takes(path) for term in query.terms for path in term.paths)


def _matching_of(documents: list[Stored], condition: Condition) -> list[Stored]:
    """Those of the documents that meet a condition."""
    met = meets(condition)
    return [stored for stored in documents if met(decode(stored))]
