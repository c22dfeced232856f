"""Finding documents: by MongoDB alone where a query is exact, else by asking each document that it found."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from apiserver.stores.documents.dialect.filters import Condition
from apiserver.stores.documents.dialect.paths import Path, gathered
from apiserver.stores.documents.mongo.database import Database, Stored
from apiserver.stores.documents.mongo.layout import REVISION, decode, name_of
from apiserver.stores.documents.mongo.translate import paths_of, projection_of, query_of

_CHUNK = 1000
"""Documents that are asked for by id at once."""

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Reader:
    """Reads collections of a database; documents come as they are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(
        self,
        collection: str,
        condition: Condition,
        *,
        projection: Mapping[str, int] | None = None,
        sort: Sequence[tuple[str, int]] = (),
        skip: int = 0,
        limit: int | None = None,
    ) -> list[Stored]:
        """The documents that meet a condition; `projection`: of each, only these fields."""
        if limit == 0:
            return []
        query = query_of(condition)
        if query.exact:
            return await self._database.find(
                collection, query.filter, projection=projection, sort=sort, skip=skip, limit=limit or 0
            )
        ids: list[str] = []
        async with aclosing(self.matching(collection, condition, sort=sort)) as matching:
            async for stored in matching:
                ids.append(stored["_id"])
                if limit is not None and len(ids) == skip + limit:
                    break
        return await self._by_id(collection, ids[skip:], projection)

    async def first(
        self,
        collection: str,
        condition: Condition,
        *,
        projection: Mapping[str, int] | None = None,
        sort: Sequence[tuple[str, int]] = (),
    ) -> Stored | None:
        """The first document that meets a condition, as it was at one moment; `projection` has what is asked for."""
        if query_of(condition).exact:
            found = await self.find(collection, condition, projection=projection, sort=sort, limit=1)
            return found[0] if found else None
        async with aclosing(self.matching(collection, condition, sort=sort)) as matching:
            async for stored in matching:
                for found_now in await self._by_id(collection, [stored["_id"]], projection):
                    if condition.matches(decode(found_now)):
                        return found_now
        return None

    async def matching(
        self, collection: str, condition: Condition, *, sort: Sequence[tuple[str, int]] = ()
    ) -> AsyncGenerator[Stored]:
        """Id, revision and the fields asked for of each document that meets a condition."""
        projection = {**projection_of(paths_of(condition)), REVISION: 1}
        query = query_of(condition)
        stream = self._database.stream(collection, query.filter, projection=projection, sort=sort)
        async with aclosing(stream) as found:
            async for stored in found:
                if query.exact or condition.matches(decode(stored)):
                    yield stored

    async def count(self, collection: str, condition: Condition) -> int:
        """How many documents meet a condition."""
        query = query_of(condition)
        if query.exact:
            return await self._database.count(collection, query.filter)
        return len([stored async for stored in self.matching(collection, condition)])

    async def grouped(
        self, collection: str, condition: Condition, paths: Sequence[Path]
    ) -> list[tuple[int, list[Any]]]:
        """Numbers of documents that meet a condition, each with the values at the paths that so many share.

        Missing is as null; where a list is on the way, the value is the list of all.
        """
        query = query_of(condition)
        if query.exact and all(len(path) == 1 and _SIMPLE.fullmatch(path[0]) for path in paths):
            fields = {f"f{place}": f"${name_of(path)}" for place, path in enumerate(paths)}
            group = {"$group": {"_id": fields, "documents": {"$sum": 1}}}
            groups = await self._database.aggregate(collection, [{"$match": query.filter}, group])
            return [(group["documents"], [group["_id"].get(field) for field in fields]) for group in groups]
        projection = projection_of([*paths_of(condition), *paths])
        documents = (
            decode(stored) async for stored in self._database.stream(collection, query.filter, projection=projection)
        )
        return [
            (1, [gathered(document, path) for path in paths])
            async for document in documents
            if query.exact or condition.matches(document)
        ]

    async def _by_id(self, collection: str, ids: list[str], projection: Mapping[str, int] | None) -> list[Stored]:
        """The documents with these ids, in this order; without those that are gone."""
        found: dict[str, Stored] = {}
        for start in range(0, len(ids), _CHUNK):
            query = {"_id": {"$in": ids[start : start + _CHUNK]}}
            found |= {
                stored["_id"]: stored for stored in await self._database.find(collection, query, projection=projection)
            }
        return [found[identity] for identity in ids if identity in found]
