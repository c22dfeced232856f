"""Reads log lines that are a document each as blocks of lines. Lines keep their positions: timestamp and sequence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from apiserver.events.model import EventType, JsonObject, Owner
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import EVENT_BYTES
from apiserver.stores.events.columnar.blocks import NO_SERIES, OLD, Block, Columns, Gone
from apiserver.stores.events.columnar.log_blocks import LAST_OLD, columns_of
from apiserver.stores.events.columns.lines import Column, Lines
from apiserver.stores.events.elasticsearch import names, paging
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.old_parts import Part, cut, far, measures, near, part
from apiserver.stores.events.elasticsearch.queries import BARE, all_of, between, of_owners, ordered

_POSITION = ("timestamp", "sequence")
_FIELDS = ("level", "worker", "iter", "metric", "variant", "received")
#: A line has the field `large`, with its size, if its text in a node's answer has so many bytes.
LARGE_LINE = 16 * 2**10
#: Lines of one answer.
WINDOW = paging.AN_ANSWER // LARGE_LINE


class OldLogs:
    """The log lines of one prefix."""

    type = EventType.LOG

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def index(self, company: str) -> str:
        """The index of a company."""
        return names.index(self._cluster.prefix, self.type, company)

    async def blocks(self, owners: Sequence[Owner]) -> list[Block]:
        """Blocks with all lines of owners of one company, which do not overlap."""
        return [block for owner in owners for block in await self._blocks(owner)]

    async def _blocks(self, owner: Owner) -> list[Block]:
        index, key, query = self.index(owner.company), names.owner_key(owner), of_owners([owner])
        blocks = []
        exact = all_of(query, near("timestamp"))
        buckets = self._cluster.composite(index, exact, ["owner"], routing=key, aggs=measures("timestamp"))
        whole = [part(bucket) async for bucket in buckets]
        for parts in await cut(self._cluster, index, key, "timestamp", [(exact, one) for one in whole]):
            for one in parts:
                if one.filled(self._cluster.bounds) <= 1:
                    blocks.append(_block(owner, one))
                else:
                    at = all_of(query, *between("timestamp", one.first, one.first))
                    blocks += await self._listed(owner, at, one.size // one.events)
        for those in far("timestamp"):
            blocks += await self._listed(owner, all_of(query, those), EVENT_BYTES)
        return blocks

    async def _listed(self, owner: Owner, query: JsonObject, size: int) -> list[Block]:
        """Blocks of lines of this size that match. Each has lines of one timestamp, as there are many of it."""
        index, key, blocks = self.index(owner.company), names.owner_key(owner), []
        positions = [
            (*bucket["key"].values(), bucket["doc_count"])
            async for bucket in self._cluster.composite(index, query, _POSITION, routing=key)
        ]
        for timestamp, same in groupby(positions, key=lambda row: row[0]):
            rows = [*same]
            bounds = self._cluster.bounds
            most = max(1, min(bounds.part_events, bounds.large_together // size))
            for start in range(0, len(rows), most):
                some = rows[start : start + most]
                count = sum([row[2] for row in some])
                one = Part(timestamp, timestamp, count, size * count)
                blocks.append(_block(owner, one, begin=some[0][1], end=some[-1][1]))
        return blocks

    async def columns(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        """The named columns of each block. Gone: some of the lines are not there."""
        return [await self._columns(block, columns) for block, columns in wanted]

    async def _columns(self, block: Block, wanted: Sequence[str]) -> Columns:
        first, last, begin, end = _ends(block)
        of_block = between("timestamp", first, last)
        if first == last:
            of_block += between("sequence", begin, end)
        pages = paging.texts(
            self._cluster,
            self.index(block.owner.company),
            names.owner_key(block.owner),
            all_of(of_owners([block.owner]), *of_block),
            ordered(_POSITION),
            fields=_FIELDS,
            stored=["message", "extra"],
            window=WINDOW,
        )
        hits = [hit async for some in pages for hit in some]
        if len(hits) != block.count:
            raise Gone
        made = await off_loop(block.count, lambda: columns_of(block.id, _lines(hits)))
        return {name: made[name] for name in wanted}

    async def known(self, owner: Owner, body: bytes, numbers: range) -> set[int]:
        """Which lines of a body there are; `body` is the digest, and lines are numbered in the order they were sent."""
        key = names.owner_key(owner)
        hashed = names.series_hash(key, body.hex())
        found: set[int] = set()
        for start in range(0, len(numbers), paging.WINDOW):
            some = {names.id_of(hashed, number): number for number in numbers[start : start + paging.WINDOW]}
            search = {**BARE, "stored_fields": [], "query": {"ids": {"values": [*some]}}, "size": len(some)}
            answer = await self._cluster.search(self.index(owner.company), search, routing=key)
            found.update(some[hit["_id"]] for hit in answer["hits"]["hits"])
        return found


def _block(owner: Owner, part: Part, *, begin: int = 0, end: int = LAST_OLD) -> Block:
    id = f"old {owner.company} {names.owner_key(owner)} {part.first} {part.last} {begin} {end}"
    size = part.size
    return Block(owner, NO_SERIES, id, OLD, part.first, part.last, part.events, begin=begin, end=end, size=size)


def _ends(block: Block) -> tuple[int, ...]:
    """First and last timestamp, and sequence, of a block; `first` and `last` may be places on the axis of logs."""
    return tuple(map(int, block.id.split(" ")[-4:]))


def _lines(hits: Sequence[JsonObject]) -> Lines:
    fields = [hit["fields"] for hit in hits]

    def column(name: str) -> list[Any]:
        return [one[name][0] if name in one else None for one in fields]

    extras = [None if extra is None else extra.encode() for extra in column("extra")]
    timestamps, sequences = np.array([hit["sort"] for hit in hits], np.int64).T
    return Lines(
        timestamps=timestamps,
        sequences=sequences,
        received=np.array(column("received"), np.int64),
        levels=Column.of(column("level")),
        workers=Column.of(column("worker")),
        messages=column("message"),
        iters=Column.of(column("iter")),
        names=Column.of(column("metric")).with_column(Column.of(column("variant"))),
        extras=Column.of(extras),
    )
