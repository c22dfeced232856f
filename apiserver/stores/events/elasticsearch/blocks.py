"""A BlockStore on Elasticsearch: a document a block, routed by owner, so that all blocks of an owner are in one shard.

Reads are in `block_reads.py`. Here are the writes, and the rule that makes a late one harmless: **each write names what
it is written over, and a node refuses it if something else is there.** For a node that got stuck with a request does it
when it goes on, though this server has sent it to another node since.

    the first put of a block    no such block, nor one that was removed less than `cluster.REMEMBERED` ago
    any other put, a note       the write that a get has found, or no document
    a removal                   the write that is to be removed

For example, node 1 is stuck with a put of f. It must not bring f back:

    put f             sent to node 1, then to node 2, which writes it at place 3
    compaction        puts a chunk, removes f
    node 1 goes on    it is to put f where no f was; f was removed just now, so the node refuses

    put f again       its client sends it again: a get finds nothing, so this put is for "no document", and is done
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from apiserver.common.off_loop import off_loop
from apiserver.events.model import EventType, JsonObject, Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import NOTHING, Block, NewBlock, Refused
from apiserver.stores.events.elasticsearch import bulk, names
from apiserver.stores.events.elasticsearch.block_documents import (
    NOT_THERE,
    action,
    deleted_before,
    deletion_before_id,
    deletion_id,
    deletion_ids,
    id_of,
    item,
    note,
    note_before,
)
from apiserver.stores.events.elasticsearch.block_reads import PAUSE, QUESTIONS, BlockReads
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import BY_HAND_AGAIN
from apiserver.stores.events.elasticsearch.leases import Leases
from apiserver.stores.events.elasticsearch.queries import all_of, any_of
from apiserver.stores.events.parts import in_parts

#: The types of events that are kept in blocks.
BLOCK_TYPES = (EventType.SCALAR, EventType.LOG)
#: Owners whose blocks are deleted by one request: a node may allow a thousand conditions.
_AT_ONCE = 300


class _Put(NamedTuple):
    """What came of a put of several blocks. All others are kept."""

    unmet: list[NewBlock]
    """Blocks over something else than what is there."""
    refused: dict[str, str]
    """Why Elasticsearch will never take some of the blocks, by their ids."""


class _There(NamedTuple):
    """What gets have found of blocks and of the notes of their owners' deletions, by ids."""

    documents: Mapping[str, JsonObject]

    def place(self, id: str) -> int:
        """The place of a document; NOTHING if it is not there."""
        place: int = self.documents[id].get("_seq_no", NOTHING)
        return place

    def deletion(self, owner: Owner) -> int:
        """The place of the owner's last deletion; NOTHING if there was none."""
        return max(map(self.place, deletion_ids(owner)))


class ElasticsearchBlocks(BlockReads):
    """The blocks of events of one type, of all owners, in an index for each company."""

    def __init__(
        self,
        cluster: Cluster,
        type: EventType = EventType.SCALAR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` tells seconds, for which leases of others are seen."""
        super().__init__(cluster, type)
        self._leases = Leases(cluster, clock)

    # --- blocks ------------------------------------------------------------------------------------

    async def put(self, blocks: Sequence[NewBlock]) -> None:
        by_index: dict[str, list[NewBlock]] = {}
        for block in blocks:
            by_index.setdefault(self._index(block.owner), []).append(block)
        refused: dict[str, str] = {}
        for index, of_index in by_index.items():
            refused |= await self._put(index, of_index)
        if refused:
            raise Refused([(block, refused[block.id]) for block in blocks if block.id in refused])

    async def _put(self, index: str, blocks: Sequence[NewBlock]) -> dict[str, str]:
        """Put blocks for the first time, and those that are there over what is there, until all are kept.

        Returns why Elasticsearch will never take some of them, by their ids.
        """
        unmet, refused = await self._put_over(index, blocks, [None] * len(blocks))
        for question in range(QUESTIONS):
            if not unmet:
                return refused
            if question:  # a get may ask a copy of the shard that another server's write has not come to yet
                await asyncio.sleep(PAUSE)
            unmet, refused_now = await self._put_again(index, unmet)
            refused |= refused_now
        if unmet:
            raise EventStoreBusy("these events are put again and again", overloaded=False, may_be_kept=True)
        return refused

    async def _put_again(self, index: str, blocks: Sequence[NewBlock]) -> _Put:
        """Put blocks that are there, or were a while ago, over what is there now.

        A block that is to be put `once` stays where it is if no deletion came since. It has ended when this returns.
        Otherwise, the deletion has ended before the block is put anew: if the deletion were undone, the block that was
        there before would count.
        """
        there = await self._there(index, blocks)
        until: dict[Owner, int] = {}
        for block in blocks:
            if block.once:
                last = max(there.place(block.id), there.deletion(block.owner))
                until[block.owner] = max(until.get(block.owner, NOTHING), last)
        for owner, place in until.items():
            await self.until_ended(owner, place)
        due = [block for block in blocks if not (block.once and there.place(block.id) > there.deletion(block.owner))]
        return await self._put_over(index, due, [there.documents[block.id] for block in due])

    async def _put_over(self, index: str, blocks: Sequence[NewBlock], over: Sequence[JsonObject | None]) -> _Put:
        """Put each block over what a get has found of it, or (None) for the first time."""
        if not blocks:
            return _Put([], {})
        points = sum([block.count for block in blocks])
        items: list[str] = await off_loop(points, partial(list, map(item, blocks, over)))
        outcomes = await self._write(index, {block.owner for block in blocks}, items)
        unmet = {*map(id_of, outcomes.unmet)}
        refused = {id_of(refusal.item): refusal.reason for refusal in outcomes.refused}
        return _Put([*{block.id: block for block in blocks if block.id in unmet}.values()], refused)

    async def _there(self, index: str, blocks: Sequence[NewBlock]) -> _There:
        """What is there now of the blocks, and of their owners' deletions."""
        owners = {block.owner for block in blocks}
        notes = {id: owner for owner in owners for id in deletion_ids(owner)}
        return _There(await self._get(index, {**notes, **{block.id: block.owner for block in blocks}}))

    async def _get(self, index: str, ids: Mapping[str, Owner]) -> dict[str, JsonObject]:
        """What is known of documents of these owners now, by their ids."""
        docs = [
            {"_index": index, "_id": id, "routing": names.owner_key(owner), "_source": False}
            for id, owner in ids.items()
        ]
        return dict(zip(ids, await self._cluster.get_each(docs), strict=True))

    async def remove(self, owner: Owner, blocks: Sequence[Block]) -> None:
        by_id = {block.id: block for block in blocks}  # the blocks of a bundle have one id
        for part in in_parts(by_id.values(), lambda block: 1, self._cluster.bounds.page):
            lines = (
                action("delete", block.id, owner, if_seq_no=block.version.place, if_primary_term=block.version.term)
                for block in part
            )
            await self._cluster.bulk(self._index(owner), "".join(lines).encode())

    async def remove_before(self, places: Mapping[Owner, int]) -> None:
        for index, owners in self._by_index(places).items():
            for part in in_parts(owners, lambda owner: 1, _AT_ONCE):
                before = [
                    all_of({"term": {"owner": names.owner_key(owner)}}, {"range": {"_seq_no": {"lt": places[owner]}}})
                    for owner in part
                ]
                routing = names.owner_key(part[0]) if len(part) == 1 else None
                await self._cluster.delete([index], any_of(before), routing=routing)

    async def lease(self, owner: Owner, holder: str, seconds: float) -> bool:
        return await self._leases.take(self._index(owner), owner, holder, seconds)

    # --- deletions ---------------------------------------------------------------------------------

    async def delete(self, owners: Sequence[Owner]) -> dict[Owner, int]:
        """Note that nothing counts any more that the owners have; return the places of these notes."""
        places: dict[Owner, int] = {}
        for index, of_index in self._by_index(owners).items():
            places |= await self._note(index, {deletion_id(owner): owner for owner in of_index})
        return places

    async def _note(self, index: str, owners: Mapping[str, Owner]) -> dict[Owner, int]:
        """Note the deletions with these ids; return the places of the notes.

        Each is written over the one before it. So a note that a node writes late deletes nothing that came since.
        """
        places: dict[Owner, int] = {}
        earlier: Mapping[str, JsonObject] = dict.fromkeys(owners, NOT_THERE)
        for question in range(QUESTIONS):
            if question > 1:  # the first attempt knew nothing; a get may not see yet what others have noted
                await asyncio.sleep(PAUSE)
            items = {note(owners[id], known): owners[id] for id, known in earlier.items()}
            outcomes = await self._write_notes(index, items)
            places |= {items[written]: place for written, place in outcomes.done}
            if not outcomes.unmet:
                return places
            earlier = await self._get(index, {id: owners[id] for id in map(id_of, outcomes.unmet)})
        raise EventStoreBusy("these events are deleted again and again", overloaded=False)

    async def delete_before(self, owner: Owner, place: int) -> None:
        """Note that nothing counts any more that lies before a place, unless such a note says more."""
        index, id = self._index(owner), deletion_before_id(owner)
        for question in range(QUESTIONS):
            if question:  # others note deletions, too
                await asyncio.sleep(PAUSE)
            self._cluster.wrote([index], [owner])
            hits = [hit async for hit in self._hits([owner], {"ids": {"values": [id]}})]
            earlier = hits[-1] if hits else NOT_THERE
            if hits and deleted_before(earlier) >= place:
                await self.until_ended(owner, earlier["_seq_no"])
                return
            if (await self._write_notes(index, {note_before(owner, place, earlier): owner})).done:
                return
        raise EventStoreBusy("these events are deleted again and again", overloaded=False)

    async def _write_notes(self, index: str, notes: Mapping[str, Owner]) -> bulk.Outcomes:
        """Write notes of deletions. EventStoreBusy: Elasticsearch will never take one of them."""
        outcomes = await self._write(index, notes.values(), notes)
        if outcomes.refused:
            reasons = "; ".join(dict.fromkeys(refusal.reason for refusal in outcomes.refused))
            raise EventStoreBusy(f"a deletion cannot be noted: {reasons}", retry_after=BY_HAND_AGAIN, overloaded=False)
        return outcomes

    async def _write(self, index: str, owners: Iterable[Owner], items: Iterable[str]) -> bulk.Outcomes:
        """Send items of these owners, each of which says what it is written over."""
        await self._cluster.ensure([index])
        try:
            return await bulk.send_on_conditions(self._cluster, index, items)
        finally:
            self._cluster.wrote([index], [*owners])

    def _by_index(self, owners: Iterable[Owner]) -> dict[str, list[Owner]]:
        by_index: dict[str, list[Owner]] = {}
        for owner in owners:
            by_index.setdefault(self._index(owner), []).append(owner)
        return by_index
