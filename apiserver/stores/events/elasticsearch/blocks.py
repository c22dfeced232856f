"""A BlockStore on Elasticsearch: a document a block, routed by owner, so that all blocks of an owner are in one shard.

What is known of a block is in columns of the index (doc values), and so are its smaller columns. The larger ones are
stored binaries, which a search for blocks does not touch (`block_documents.py`). There is no `_source`.

A place is the number that the shard gave to a write (`_seq_no`), and a write has ended once the shard's global
checkpoint has come to it. `find` walks in the order of places, so that it needs no snapshot of the index: a block that
is removed between two pages was replaced by blocks of later places, which the walk still comes to.

A node that got stuck with a request does it when it goes on, though this server has sent it to another node since. So
each write says what it comes over:

    the first put of a block    no such block, nor one that was removed less than `cluster.REMEMBERED` ago
    any other put, a note       the write that a get has found, or no document
    a removal                   the write that is to be removed

What was put again, noted or removed since does not fit, and the node refuses the request. For example:

    put f             node 1 is stuck with it; node 2 writes it at place 3
    put g             at place 4; it overwrites f
    compaction        puts a chunk of both, removes f and g
    node 1 goes on    refused: f was removed just now

The index has three other documents an owner: the last deletion of all, whose place is what counts, the last deletion of
what lies before some place, which it names, and the lease of the server that compacts the owner.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from apiserver.common.answers import reading
from apiserver.common.off_loop import off_loop
from apiserver.events.model import EventType, JsonObject, Owner, Selection
from apiserver.events.queries import EVERYWHERE, Range, SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import NOTHING, Block, Columns, Found, Gone, NewBlock, Refused
from apiserver.stores.events.codec.names import matcher
from apiserver.stores.events.elasticsearch import bulk, names
from apiserver.stores.events.elasticsearch.block_documents import (
    FIELDS,
    NOT_THERE,
    STORED,
    action,
    asking_for,
    blocks_of,
    columns_of,
    deleted_before,
    deletion_before_id,
    deletion_id,
    deletion_ids,
    deletion_of,
    id_of,
    item,
    note,
    note_before,
)
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import BY_HAND_AGAIN
from apiserver.stores.events.elasticsearch.leases import Leases
from apiserver.stores.events.elasticsearch.queries import all_of, any_of, between, inside, of, of_each, without
from apiserver.stores.events.parts import in_parts

#: The types of events that are kept in blocks.
BLOCK_TYPES = (EventType.SCALAR, EventType.LOG)
#: What a search answers of each block.
_BARE = asking_for(FIELDS)
#: Series that are found at once because they have many fragments, and what tells whose they are.
_CROWDED = 1000
_WHOSE = (("index", "_index"), ("owner", "owner"))
#: Owners whose blocks are deleted by one request: a node may allow a thousand conditions.
_AT_ONCE = 300
#: Bytes that one request fetches, about; bytes of a block without its columns, and of a point in each column.
_FETCHED, _BLOCK = 8 * 2**20, 2048
_POINT = {"curve": 12, "details": 12, "sums": 1}
#: From so many bytes a block on, columns are fetched as bytes.
_LARGE = 2 * _BLOCK
#: Seconds between questions whether a write has ended, or what is there, and how often this is asked.
_PAUSE, _QUESTIONS = 0.05, 100


class ElasticsearchBlocks:
    """The blocks of events of one type, of all owners, in an index for each company."""

    def __init__(
        self,
        cluster: Cluster,
        type: EventType = EventType.SCALAR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` tells seconds, for which leases of others are seen."""
        self._cluster = cluster
        self.type = type
        self._copies = uuid.uuid4().hex
        """Searches and fetches that name this go to the same copies of shards, which are not refreshed at once."""
        self._leases = Leases(cluster, clock)

    # --- writing -----------------------------------------------------------------------------------

    async def put(self, blocks: Sequence[NewBlock]) -> None:
        by_index: dict[str, list[NewBlock]] = {}
        for block in blocks:
            by_index.setdefault(self._index(block.owner), []).append(block)
        refused: dict[str, str] = {}
        for index, some in by_index.items():
            if known := await self._put(index, some, [None] * len(some), refused):
                await self._put_again(index, known, refused)
        if refused:
            raise Refused([(block, refused[block.id]) for block in blocks if block.id in refused])

    async def _put(
        self, index: str, blocks: Sequence[NewBlock], over: Sequence[JsonObject | None], refused: dict[str, str]
    ) -> dict[str, NewBlock]:
        """Put each block over what was found of it, or (None) for the first time.

        Return those of which something else is there, by ids. `refused` gets the reasons why the store will never take
        some of them, by ids.
        """
        items: list[str] = await off_loop(sum([one.count for one in blocks]), partial(list, map(item, blocks, over)))
        outcomes = await self._write(index, {block.owner for block in blocks}, items)
        refused.update({id_of(one.item): one.reason for one in outcomes.refused})
        known = {*map(id_of, outcomes.unmet)}
        return {block.id: block for block in blocks if block.id in known}

    async def _put_again(self, index: str, blocks: dict[str, NewBlock], refused: dict[str, str]) -> None:
        """Put blocks anew that are there, or were a while ago.

        One that is to be put `once` stays where it is if no deletion came since; it has ended when this returns.
        Otherwise, the deletion has ended before the block is put anew: if the deletion were undone, the block that was
        there before would count. A get may ask a copy of the shard that another server's write has not come to yet.
        """
        for question in range(_QUESTIONS):
            if question:
                await asyncio.sleep(_PAUSE)
            owners = {block.owner for block in blocks.values()}
            notes = {id: owner for owner in owners for id in deletion_ids(owner)}
            found = await self._get(index, {**notes, **{id: block.owner for id, block in blocks.items()}})
            places = {id: one.get("_seq_no", NOTHING) for id, one in found.items()}
            noted = {owner: max(places[id] for id in deletion_ids(owner)) for owner in owners}
            kept = {id: one for id, one in blocks.items() if one.once and places[id] > noted[one.owner]}
            until = {one.owner: noted[one.owner] for one in blocks.values() if one.once}
            for id, one in kept.items():
                until[one.owner] = max(until[one.owner], places[id])
            for owner, place in until.items():
                await self.until_ended(owner, place)
            blocks = {id: one for id, one in blocks.items() if id not in kept}
            if blocks:
                blocks = await self._put(index, [*blocks.values()], [found[id] for id in blocks], refused)
            if not blocks:
                return
        raise EventStoreBusy("these events are put again and again", overloaded=False, may_be_kept=True)

    async def _get(self, index: str, ids: Mapping[str, Owner]) -> dict[str, JsonObject]:
        """What is known of documents of these owners now, by their ids."""
        docs = [
            {"_index": index, "_id": id, "routing": names.owner_key(owner), "_source": False}
            for id, owner in ids.items()
        ]
        return dict(zip(ids, await self._cluster.get_each(docs), strict=True))

    async def delete(self, owners: Sequence[Owner]) -> dict[Owner, int]:
        """Note that nothing counts any more that the owners have; return the places of these notes."""
        found: dict[Owner, int] = {}
        for index, some in self._by_index(owners).items():
            found |= await self._note(index, {deletion_id(owner): owner for owner in some})
        return found

    async def _note(self, index: str, owners: dict[str, Owner]) -> dict[Owner, int]:
        """Note the deletions with these ids; return the places of the notes.

        Each is written over the one before it. So a note that a node writes late deletes nothing that came since.
        """
        found: dict[Owner, int] = {}
        known: dict[str, JsonObject] = dict.fromkeys(owners, NOT_THERE)
        for question in range(_QUESTIONS):
            if question > 1:  # the first attempt knew nothing; a get may not see yet what others have noted
                await asyncio.sleep(_PAUSE)
            items = {note(owners[id], one): owners[id] for id, one in known.items()}
            outcomes = await self._write_notes(index, items)
            found |= {items[one]: place for one, place in outcomes.done}
            if not outcomes.unmet:
                return found
            known = await self._get(index, {id: owners[id] for id in map(id_of, outcomes.unmet)})
        raise EventStoreBusy("these events are deleted again and again", overloaded=False)

    async def delete_before(self, owner: Owner, place: int) -> None:
        """Note that nothing counts any more that lies before a place, unless such a note says more."""
        index, id = self._index(owner), deletion_before_id(owner)
        for question in range(_QUESTIONS):
            if question:  # others note deletions, too
                await asyncio.sleep(_PAUSE)
            self._cluster.wrote([index], [owner])
            known = [hit async for hit in self._hits([owner], {"ids": {"values": [id]}})]
            if known and deleted_before(known[-1]) >= place:
                await self.until_ended(owner, known[-1]["_seq_no"])
                return
            noting = note_before(owner, place, known[-1] if known else NOT_THERE)
            if (await self._write_notes(index, {noting: owner})).done:
                return
        raise EventStoreBusy("these events are deleted again and again", overloaded=False)

    async def _write_notes(self, index: str, notes: Mapping[str, Owner]) -> bulk.Outcomes:
        """Write notes of deletions. EventStoreBusy: Elasticsearch will never take one of them."""
        outcomes = await self._write(index, notes.values(), notes)
        if outcomes.refused:
            reasons = "; ".join(dict.fromkeys(one.reason for one in outcomes.refused))
            raise EventStoreBusy(f"a deletion cannot be noted: {reasons}", retry_after=BY_HAND_AGAIN, overloaded=False)
        return outcomes

    async def remove_before(self, places: Mapping[Owner, int]) -> None:
        for index, owners in self._by_index(places).items():
            for some in in_parts(owners, lambda owner: 1, _AT_ONCE):
                before = [
                    all_of({"term": {"owner": names.owner_key(one)}}, {"range": {"_seq_no": {"lt": places[one]}}})
                    for one in some
                ]
                routing = names.owner_key(some[0]) if len(some) == 1 else None
                await self._cluster.delete([index], any_of(before), routing=routing)

    async def _write(self, index: str, owners: Iterable[Owner], items: Iterable[str]) -> bulk.Outcomes:
        """Send items of these owners, each of which says what it is written over."""
        await self._cluster.ensure([index])
        try:
            return await bulk.send_on_conditions(self._cluster, index, items)
        finally:
            self._cluster.wrote([index], [*owners])

    async def remove(self, owner: Owner, blocks: Sequence[Block]) -> None:
        for some in in_parts(
            {block.id: block for block in blocks}.values(), lambda block: 1, self._cluster.bounds.page
        ):
            lines = (
                action("delete", one.id, owner, if_seq_no=one.version.place, if_primary_term=one.version.term)
                for one in some
            )
            await self._cluster.bulk(self._index(owner), "".join(lines).encode())

    async def lease(self, owner: Owner, holder: str, seconds: float) -> bool:
        return await self._leases.take(self._index(owner), owner, holder, seconds)

    # --- reading -----------------------------------------------------------------------------------

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
        for some in by_company.values():
            found |= await self._found({series.owner for series in some}, of_each(some))
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
                some = blocks_of(hit, by_key)
                blocks[some[0].id] = some
        found = {owner: _deleted(notes.get(key, ())) for key, owner in by_key.items()}
        for some in blocks.values():
            found[some[0].owner].blocks.extend(some)
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
        found: dict[Owner, int] = {}
        for one in answer.get("aggregations", {}).get("series", {}).get("buckets", ()):
            index, key = (one[name]["buckets"][0]["key"] for name, _ in _WHOSE)
            owner = names.owner_of(names.company_of(prefix, index), key)
            found[owner] = max(found.get(owner, 0), int(one["newest"]["value"]))
        return found

    async def fetch(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        """The named columns of each block, of any owners. Gone: one of them is no longer there, or was put again."""
        found: dict[tuple[str, tuple[str, ...]], Columns] = {}
        for some in in_parts(wanted, _bytes_of, _FETCHED):
            alike: dict[tuple[str, tuple[str, ...]], list[Block]] = {}
            for block, columns in some:
                alike.setdefault((self._index(block.owner), (*columns,)), []).append(block)
            for (index, some_names), blocks in alike.items():
                for id, fetched in (await self._fetch(index, blocks, some_names)).items():
                    found[id, some_names] = fetched
        return [found[block.id, (*columns,)] for block, columns in wanted]

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
        for _ in range(_QUESTIONS):
            if (ended := await self.ended(owner)) >= place:
                return ended
            await asyncio.sleep(_PAUSE)
        raise EventStoreBusy("a copy of the owner's blocks is behind", overloaded=False, may_be_kept=True)

    def _by_index(self, owners: Iterable[Owner]) -> dict[str, list[Owner]]:
        by_index: dict[str, list[Owner]] = {}
        for owner in owners:
            by_index.setdefault(self._index(owner), []).append(owner)
        return by_index

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
