"""Reads blocks in Elasticsearch: which there are, their columns, and up to which place all writes have ended.

What is known of a block is in columns of the index (doc values), and so are its smaller columns. The larger ones are
stored binaries, which a search for blocks does not touch (`block_documents.py`).

A place is the number that the shard gave to a write (`_seq_no`), and a write has ended once the shard's global
checkpoint has come to it. `find` walks in the order of places, so it needs no snapshot of the index: a block that is
removed between two pages was replaced by blocks of later places, which the walk still comes to.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Collection, Iterable, Sequence

from apiserver.common.answers import reading
from apiserver.events.model import EventType, JsonObject, Owner, Selection
from apiserver.events.queries import EVERYWHERE, Range, SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import Block, Columns, Found, Gone
from apiserver.stores.events.codec.names import matcher
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.block_documents import (
    FIELDS,
    STORED,
    asking_for,
    blocks_of,
    columns_of,
    deleted_before,
    deletion_ids,
    deletion_of,
)
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import any_of, between, inside, of, of_each, without
from apiserver.stores.events.parts import in_parts

#: Seconds between questions whether a write has ended, or what is there, and how often this is asked.
PAUSE, QUESTIONS = 0.05, 100

#: What a search answers of each block.
_BARE = asking_for(FIELDS)
#: Series that are found at once because they have many fragments, and what tells whose they are.
_CROWDED = 1000
_WHOSE = (("index", "_index"), ("owner", "owner"))
#: Bytes that one request fetches, about; bytes of a block without its columns, and of a point in each column.
_FETCHED, _BLOCK = 8 * 2**20, 2048
_POINT = {"curve": 12, "details": 12, "sums": 1}
#: From so many bytes a block on, columns are fetched as bytes.
_LARGE = 2 * _BLOCK


class BlockReads:
    """The methods of `BlockStore` that read; it says what each of them answers."""

    def __init__(self, cluster: Cluster, type: EventType) -> None:
        self._cluster = cluster
        self.type = type
        self._copies = uuid.uuid4().hex
        """Searches and fetches that name this go to the same copies of shards, which are not refreshed at once."""

    async def find(self, series: SeriesQuery, range: Range = EVERYWHERE, place: int = 0) -> Found:
        conditions = [*_with_something_in(range), *(between("_seq_no", place, None) if place else ())]
        index = self._index(series.owner)

        async def search(see_all: bool) -> Found:
            if see_all:
                self._cluster.is_behind([index])
            found = await self._found([series.owner], of(series, *conditions))
            return _selected(found[series.owner], series.selection, range)

        if range != EVERYWHERE:
            return await search(False)
        return await self._cluster.looks.find(series, place, index, search)

    async def find_of_each(self, queries: Sequence[SeriesQuery]) -> list[Found]:
        """As `find` of each query, in order. One search finds the blocks of all owners of a company."""
        by_company: dict[str, list[SeriesQuery]] = {}
        for series in queries:
            by_company.setdefault(series.owner.company, []).append(series)
        found: dict[Owner, Found] = {}
        for of_company in by_company.values():
            found |= await self._found({series.owner for series in of_company}, of_each(of_company))
        return [_selected(found[series.owner], series.selection) for series in queries]

    async def _found(self, owners: Collection[Owner], query: JsonObject) -> dict[Owner, Found]:
        """The blocks of these owners of one company that match the query, and their deletions."""
        by_key = {names.owner_key(owner): owner for owner in owners}
        notes: dict[str, list[JsonObject]] = {}
        blocks: dict[str, list[Block]] = {}  # if a block was put again between two pages, it is there twice
        ids = [id for owner in owners for id in deletion_ids(owner)]
        async for hit in self._hits(owners, any_of([query, {"ids": {"values": ids}}])):
            if (key := deletion_of(hit)) is not None:
                notes.setdefault(key, []).append(hit)
            else:
                of_hit = blocks_of(hit, by_key)
                blocks[of_hit[0].id] = of_hit
        found = {owner: _deleted(notes.get(key, ())) for key, owner in by_key.items()}
        for of_hit in blocks.values():
            found[of_hit[0].owner].blocks.extend(of_hit)
        return found

    async def _hits(self, owners: Collection[Owner], query: JsonObject) -> AsyncIterator[JsonObject]:
        """The hits in the order of their places, perhaps some of them twice.

        Each shard has places of its own. So a page begins with the place that ended the page before, as other shards
        may have it, too. If a node fails, another copy answers the next page. It has to see what replaced blocks that
        were removed before the first page, so it is refreshed.
        """
        (index,) = {self._index(owner) for owner in owners}
        page = self._cluster.bounds.page
        body: JsonObject = {**_BARE, "size": page, "query": query, "sort": [{"_seq_no": "asc"}]}
        routing = names.owner_key(next(iter(owners))) if len(owners) == 1 else None
        while True:
            answer = await self._cluster.search(index, body, routing=routing, preference=self._copies)
            hits = answer["hits"]["hits"]
            for hit in hits:
                yield hit
            if len(hits) < page:
                return
            body["search_after"] = [hits[-1]["sort"][0] - 1]
            self._cluster.is_behind([index])

    async def crowded(self, fragments: int) -> dict[Owner, int]:
        """Owners that have a series with so many fragments; if there are many such series, those of long ago."""
        owner_of_each = {name: {"terms": {"field": field, "size": 1}} for name, field in _WHOSE}
        newest = {"newest": {"max": {"field": "_seq_no"}}}
        series = {
            "field": "series",
            "min_doc_count": fragments,
            "shard_min_doc_count": fragments,
            "size": _CROWDED,
            "order": {"newest": "asc"},
        }
        body = {
            "size": 0,
            "track_total_hits": False,
            "query": without({"exists": {"field": "up_to"}}),
            "aggs": {"series": {"terms": series, "aggs": {**owner_of_each, **newest}}},
        }
        prefix = self._cluster.prefix
        indices = names.blocks_of_all(prefix, self.type)
        self._cluster.wrote([indices])  # as all servers may have
        answer = await self._cluster.search(indices, body)
        places: dict[Owner, int] = {}
        for bucket in answer.get("aggregations", {}).get("series", {}).get("buckets", ()):
            index, key = (bucket[name]["buckets"][0]["key"] for name, _ in _WHOSE)
            owner = names.owner_of(names.company_of(prefix, index), key)
            places[owner] = max(places.get(owner, 0), int(bucket["newest"]["value"]))
        return places

    async def fetch(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        """The named columns of each block, of any owners. Gone: one of them is no longer there, or was put again."""
        fetched: dict[tuple[str, tuple[str, ...]], Columns] = {}
        for part in in_parts(wanted, _bytes_of, _FETCHED):
            alike: dict[tuple[str, tuple[str, ...]], list[Block]] = {}
            for block, columns in part:
                alike.setdefault((self._index(block.owner), (*columns,)), []).append(block)
            for (index, named), blocks in alike.items():
                for id, of_block in (await self._fetch(index, blocks, named)).items():
                    fetched[id, named] = of_block
        return [fetched[block.id, (*columns,)] for block, columns in wanted]

    async def _fetch(self, index: str, blocks: Sequence[Block], columns: Sequence[str]) -> dict[str, Columns]:
        """The columns of the blocks, by their ids. Large stored ones come as bytes, as base64 takes much longer."""
        places = {block.id: block.version.place for block in blocks}
        body = {**asking_for(columns), "query": {"ids": {"values": [*places]}}, "size": len(places), "sort": ["_doc"]}
        owners = {names.owner_key(block.owner) for block in blocks}
        are_large = sum([_bytes_of((block, columns)) for block in blocks]) > len(blocks) * _LARGE
        with reading():  # the answer is in memory no longer than that
            answer = await self._cluster.visible(
                index,
                body,
                routing=owners.pop() if len(owners) == 1 else None,
                preference=self._copies,
                binary=are_large and not STORED.isdisjoint(columns),
            )
        hits = {hit["fields"]["id"][0]: hit for hit in answer["hits"]["hits"]}
        if {id: hit["_seq_no"] for id, hit in hits.items()} != places:
            self._cluster.looks.changed({block.owner for block in blocks})
            raise Gone
        return {id: columns_of(hit, columns) for id, hit in hits.items()}

    async def ended(self, owner: Owner) -> int:
        """The global checkpoint of the owner's shard. A `find` after this sees all up to there."""
        index = self._index(owner)
        shards = (await self._cluster.shard_stats([index])).get(index, {"shards": {}})["shards"]
        self._cluster.wrote([index], [owner])  # as other servers may have
        if shards and not await self._cluster.has_one_shard(index):  # one that is away is not among these
            number = str(await self._cluster.shard_of(index, names.owner_key(owner)))
            shards = {number: shards.get(number, [])}
        ended = [
            copy.get("seq_no", {}).get("global_checkpoint", -1)
            for copies in shards.values()
            for copy in copies
            if copy["routing"]["primary"]
        ]
        return max(ended, default=-1)

    async def until_ended(self, owner: Owner, place: int) -> int:
        for _ in range(QUESTIONS):
            if (ended := await self.ended(owner)) >= place:
                return ended
            await asyncio.sleep(PAUSE)
        raise EventStoreBusy("a copy of the owner's blocks is behind", overloaded=False, may_be_kept=True)

    def _index(self, owner: Owner) -> str:
        return names.blocks(self._cluster.prefix, self.type, owner.company)


def _with_something_in(range: Range) -> list[JsonObject]:
    return [*inside("last", Range(least=range.least)), *inside("first", Range(greatest=range.greatest))]


def _deleted(notes: Iterable[JsonObject]) -> Found:
    """What the hits of an owner's notes say together. No blocks were found yet."""
    found = Found([], 0, 0)
    for hit in notes:
        found = Found([], max(found.deleted, deleted_before(hit)), max(found.noted, hit["_seq_no"]))
    return found


def _selected(found: Found, selection: Selection, range: Range = EVERYWHERE) -> Found:
    """Only what was asked for: others are in the same bundles, or were found for another query."""
    matches = matcher(selection)
    blocks = [
        block
        for block in found.blocks
        if block.first <= range.greatest and range.least <= block.last and matches(*block.series)
    ]
    return found._replace(blocks=blocks)


def _bytes_of(wanted: tuple[Block, Sequence[str]]) -> int:
    """About how many bytes the named columns of a block have."""
    block, columns = wanted
    of_lines = block.size if "lines" in columns else 0
    points = block.count if block.in_bundle is None else block.in_bundle.points
    return _BLOCK + of_lines + points * sum([_POINT.get(name, 0) for name in columns])
