"""Finds documents. If a query is exact, MongoDB finds them; else each document that it finds is tested here, too.

MongoDB also sorts by one top-level field, and by id, with its indexes. Other sorts are made here, from ids and the
values to sort by: neither collations nor pipelines sort as our language does on every server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from apiserver.stores.documents.base import Counted
from apiserver.stores.documents.dialect.filters import Condition, meets, paths_of
from apiserver.stores.documents.dialect.paths import Path, gathered, shape_of
from apiserver.stores.documents.dialect.sorts import Term, in_order
from apiserver.stores.documents.mongo import pipelines
from apiserver.stores.documents.mongo.database import Database, Stored
from apiserver.stores.documents.mongo.layout import REVISION, decode, name_of
from apiserver.stores.documents.mongo.ordering import ids_in_order
from apiserver.stores.documents.mongo.translate import in_turn, left_of, projection_of, query_of

_CHUNK = 1000
"""Documents that are read by id in one query."""


class Reader:
    """Reads collections of a database, and returns documents in their stored form."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(
        self,
        collection: str,
        condition: Condition,
        *,
        projection: Mapping[str, int] | None = None,
        terms: Sequence[Term] = (),
        skip: int = 0,
        limit: int | None = None,
        counted: Counted | None = None,
    ) -> list[Stored]:
        """The documents that meet a condition, sorted; with `projection`, only these fields of each.

        `counted` gets the bytes of these documents as they are read, but not of others that are tested.
        """
        if limit == 0:
            return []
        queries = in_turn(condition, terms)
        if queries is not None and all(query_of(part).exact for part, _ in queries):
            return await self._find_in_turn(collection, queries, projection, skip, limit, counted)
        if (
            queries is None
            and query_of(condition).exact
            and all(pipelines.takes(path) for term in terms for path in term.paths)
        ):
            sorted_ids = await self._sorted(collection, query_of(condition).filter, terms)
            page = sorted_ids[skip : None if limit is None else skip + limit]
            return await self._by_id(collection, page, projection, counted)
        ids: list[str] = []
        async with aclosing(self.matching(collection, condition, terms=terms)) as matching:
            async for stored in matching:
                ids.append(stored["_id"])
                if limit is not None and len(ids) == skip + limit:
                    break
        return await self._by_id(collection, ids[skip:], projection, counted)

    async def first(
        self, collection: str, condition: Condition, *, projection: Mapping[str, int] | None = None
    ) -> Stored | None:
        """One document that meets a condition, as it was at one moment. `projection` includes its fields."""
        if query_of(condition).exact:
            found = await self.find(collection, condition, projection=projection, limit=1)
            return found[0] if found else None
        async with aclosing(self.matching(collection, condition)) as matching:
            async for stored in matching:
                for found_now in await self._by_id(collection, [stored["_id"]], projection):
                    if meets(condition)(decode(found_now)):
                        return found_now
        return None

    async def matching(
        self, collection: str, condition: Condition, *, terms: Sequence[Term] = ()
    ) -> AsyncGenerator[Stored]:
        """The id and revision of each document that meets a condition, sorted."""
        queries = in_turn(condition, terms)
        if queries is None:
            paths = [path for term in terms for path in term.paths]
            found = {stored["_id"]: stored async for stored in self._matching(collection, condition, paths=paths)}
            for document in await asyncio.to_thread(in_order, map(decode, found.values()), terms):
                yield found[document["id"]]
            return
        for part, sort in queries:
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
        batches = self._database.batches(collection, query.filter, projection=projection, sort=sort)
        async with aclosing(batches) as found:
            async for batch in found:
                for stored in batch if query.exact else await asyncio.to_thread(_those_that_match, left, batch):
                    yield stored

    async def _find_in_turn(
        self,
        collection: str,
        queries: Sequence[tuple[Condition, list[tuple[str, int]]]],
        projection: Mapping[str, int] | None,
        skip: int,
        limit: int | None,
        counted: Counted | None,
    ) -> list[Stored]:
        """A page of the documents of all queries, one query after another."""
        found: list[Stored] = []
        for place, (condition, sort) in enumerate(queries):
            filter, wanted = query_of(condition).filter, 0 if limit is None else limit - len(found)
            page = await self._database.find(
                collection, filter, projection=projection, sort=sort, skip=skip, limit=wanted, counted=counted
            )
            found += page
            if place == len(queries) - 1 or len(found) == limit:
                break
            if skip:
                skip = 0 if page else max(0, skip - await self._database.count(collection, filter))
        return found

    async def _sorted(self, collection: str, query: dict[str, Any], terms: Sequence[Term]) -> list[str]:
        """The ids of all documents that a query finds, sorted. The last of the terms is the id."""
        paths = [path for term in terms[:-1] for path in term.paths]
        found = await self._database.aggregate(collection, pipelines.values(query, paths))
        lists = {stored["_id"]: stored for stored in pipelines.with_lists(found, paths)}
        for stored in await self._by_id(collection, list(lists), projection_of(paths)):
            lists[stored["_id"]] |= pipelines.given(decode(stored), paths)
        return await asyncio.to_thread(ids_in_order, found, terms)

    async def count(self, collection: str, condition: Condition) -> int:
        """How many documents meet a condition."""
        query = query_of(condition)
        if query.exact:
            return await self._database.count(collection, query.filter)
        return len([stored async for stored in self.matching(collection, condition)])

    async def grouped(
        self,
        collection: str,
        condition: Condition,
        paths: Sequence[Path],
        *,
        by_item: bool = False,
        counted: Counted | None = None,
    ) -> list[tuple[int, list[Any]]]:
        """The values at the paths of documents that meet a condition, and how many documents share them.

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
                return [(group["documents"], list(map(group["_id"].get, fields))) for group in groups]
        async with aclosing(self._matching(collection, condition, paths=paths)) as matching:
            found: list[tuple[int, list[Any]]] = []
            async for stored in matching:
                document = decode(stored)
                values = [gathered(document, path) for path in paths]
                if counted is not None:
                    counted(len(repr(values)))
                found.append((1, values))
        return found

    async def varieties(self, collection: str, condition: Condition, path: Path) -> AsyncGenerator[Stored]:
        """A document that meets the condition for each distinct set of names, two levels deep, below the path."""
        query, name = query_of(condition), name_of(path)
        if query.exact and pipelines.takes(path):
            for group in await self._database.aggregate(collection, pipelines.varieties(query.filter, name)):
                yield {"_id": group["document"], name: group["value"]}
            return
        known: set[int] = set()
        async with aclosing(self._matching(collection, condition, paths=[path])) as matching:
            async for stored in matching:
                shape = shape_of(gathered(decode(stored), path))
                if shape not in known:
                    known.add(shape)
                    yield stored

    async def _by_id(
        self, collection: str, ids: list[str], projection: Mapping[str, int] | None, counted: Counted | None = None
    ) -> list[Stored]:
        """The documents with these ids, in this order, without those that are gone."""
        found: dict[str, Stored] = {}
        for start in range(0, len(ids), _CHUNK):
            query = {"_id": {"$in": ids[start : start + _CHUNK]}}
            chunk = await self._database.find(collection, query, projection=projection, counted=counted)
            found |= {stored["_id"]: stored for stored in chunk}
        return [found[identity] for identity in ids if identity in found]


def _those_that_match(condition: Condition, found: list[Stored]) -> list[Stored]:
    met = meets(condition)
    return [stored for stored in found if met(decode(stored))]
