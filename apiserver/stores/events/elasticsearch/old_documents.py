"""Points and log lines that older versions kept, a document each, as blocks of an owner beside those that were put.

Older versions had an index for each company and type, which is closed to writes now (`old_indices.py`). So documents
never change, and what is known of them stays true. A server of an older version that still runs is refused. It answers
its clients that they may try again, and they come to a server of this version.

Old documents are fragments of place 0, so all that was put is newer. That is all there is to it, as `precedence.py`
says which blocks count:

    old documents    iterations 0 to 99, place 0
    fragment f       iterations 90 to 120, place 5: its points replace old ones
    chunk a          iterations 0 to 120, up to place 9: compaction made it of both, and old documents count nowhere
    a deletion       at place 12: old documents of the owner do not count any more, nor does the chunk

So compaction moves old documents: all that an owner has, however few blocks they are. Several servers may do so at
once, and a server that stops half-way has done no harm. Nobody deletes the documents one by one. When those of all
owners have been moved, the index goes (`moving.py`).

A deletion of place 0, the first write of a shard, would be taken for none. So it is noted again. Chunks have
everything up to place 0 at least, as whoever compacts has written a lease before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from apiserver.events.model import EventBatch, EventType, LogColumns, Owner, Selection
from apiserver.events.queries import EVERYWHERE, GREATEST, LEAST, Range, SeriesQuery
from apiserver.stores.events.bounded import Bounded
from apiserver.stores.events.columnar.blocks import OLD, Block, Columns, Found, Gone
from apiserver.stores.events.columnar.log_blocks import on_axis
from apiserver.stores.events.columnar.stretches import stretches
from apiserver.stores.events.columns.names import matcher
from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.old_indices import OldIndices, State
from apiserver.stores.events.elasticsearch.old_logs import OldLogs
from apiserver.stores.events.elasticsearch.old_owners import OldOwners, owners_in
from apiserver.stores.events.elasticsearch.old_scalars import OldScalars

#: A range without blocks: only deletions are looked for.
NOWHERE = Range(GREATEST, LEAST)
#: Owners and blocks of owners that a server remembers.
_REMEMBERED = 200_000

T = TypeVar("T")


class _Left(NamedTuple):
    """The old blocks of an owner that may still count, and whether some others do not any more."""

    blocks: list[Block]
    some_are_gone: bool


class WithOldDocuments(ElasticsearchBlocks):
    """The blocks of events of one type, and the old documents of this type."""

    def __init__(self, cluster: Cluster, old: OldScalars | OldLogs) -> None:
        super().__init__(cluster, old.type)
        self._old = old
        self.indices = OldIndices(cluster, old.type)
        self._old_owners = OldOwners(cluster, old.type, self.indices, self.left)
        self._known: Bounded[Owner, _Left] = Bounded(_REMEMBERED, lambda _, left: 1 + len(left.blocks))

    # --- old documents -----------------------------------------------------------------------------

    async def _has_old(self, company: str) -> bool:
        return await self.indices.state(company) is State.EVERYTHING

    async def _old_blocks(self, owners: Collection[Owner]) -> dict[Owner, list[Block]]:
        """The old blocks of each owner that may still count."""
        found: dict[Owner, list[Block]] = {}
        unknown: dict[str, list[Owner]] = {}
        for owner in owners:
            if not await self._has_old(owner.company):
                found[owner] = []
            elif (known := self._known.get(owner)) is not None:
                found[owner] = known.blocks
            else:
                unknown.setdefault(owner.company, []).append(owner)
        for some in unknown.values():
            of_each: dict[Owner, list[Block]] = {owner: [] for owner in some}
            for block in await self._old.blocks(some):
                of_each[block.owner].append(block)
            for owner, blocks in of_each.items():
                self._known.put(owner, _Left(blocks, some_are_gone=False))
            found |= of_each
        return found

    async def left(self, owner: Owner) -> int:
        """How many events are in old blocks of the owner that count: 0 if all have been moved, or deleted."""
        if not (await self._old_blocks([owner]))[owner]:
            return 0
        await self.ended(owner)
        found = await self.find(SeriesQuery(owner, self.type))
        of_series = stretches(found._replace(blocks=[self._in_order(block) for block in found.blocks]))
        parts = [part for some in of_series.values() for one in some for part in one.parts]
        return sum([block.count for block in {part.block for part in parts} if block.version == OLD])

    async def old_owners(self) -> AsyncIterator[Owner]:
        """The owners of old documents that count."""
        for company in await self.indices.companies():
            async for owner, _ in owners_in(self._cluster, self.type, company):
                if await self.left(owner):
                    yield owner

    def _in_order(self, block: Block) -> Block:
        """The block with the ends by which `precedence.py` compares blocks."""
        return block

    # --- the protocol ------------------------------------------------------------------------------

    async def find(self, series: SeriesQuery, range: Range = EVERYWHERE, place: int = 0) -> Found:
        """The blocks of the series with iterations in the range. Old documents lie before any other place."""
        if place:
            return await super().find(series, range, place)
        old = await self._old_blocks([series.owner])  # before others, as they may be moved meanwhile
        return _with(await super().find(series, range), old[series.owner], series.selection, range)

    async def find_of_each(self, queries: Sequence[SeriesQuery]) -> list[Found]:
        old = await self._old_blocks({series.owner for series in queries})
        found = await super().find_of_each(queries)
        return [_with(one, old[series.owner], series.selection) for one, series in zip(found, queries, strict=True)]

    async def fetch(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        is_old = [block.version == OLD for block, _ in wanted]
        new = iter(await super().fetch([one for one, old in zip(wanted, is_old, strict=True) if not old]))
        old = iter(await self._old_columns([one for one, old in zip(wanted, is_old, strict=True) if old]))
        return [next(old) if one else next(new) for one in is_old]

    async def _old_columns(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        try:
            return await self._old.columns(wanted)
        except Gone:  # all of the company was moved, and its index is gone
            for block, _ in wanted:
                self.indices.forget(block.owner.company)
            raise

    async def remove(self, owner: Owner, blocks: Sequence[Block]) -> None:
        """Remove the blocks. Old ones count nowhere: they need not be found again."""
        useless = {block.id for block in blocks if block.version == OLD}
        known = self._known.get(owner)
        if known is not None and useless:
            left = [block for block in known.blocks if block.id not in useless]
            self._known.put(owner, _Left(left, some_are_gone=True))
        await super().remove(owner, [block for block in blocks if block.version != OLD])

    async def delete(self, owners: Sequence[Owner]) -> dict[Owner, int]:
        """Note that nothing counts any more that the owners have."""
        places = await super().delete(owners)
        again = [owner for owner in owners if not places[owner] and await self._has_old(owner.company)]
        return {**places, **await super().delete(again)} if again else places

    async def crowded(self, fragments: int) -> dict[Owner, int]:
        """Owners that have a series with so many fragments, and some that have old documents."""
        return {**dict.fromkeys(await self._old_owners.next(), OLD.place), **await super().crowded(fragments)}


class LogsWithOldDocuments(WithOldDocuments):
    """Log lines, of which the same batch may come again that an older version kept, or a part of it."""

    def __init__(self, cluster: Cluster) -> None:
        self._lines = OldLogs(cluster)
        super().__init__(cluster, self._lines)

    def _in_order(self, block: Block) -> Block:
        return on_axis(block)

    async def new_lines(self, batch: EventBatch) -> EventBatch:
        """The batch without the lines that are old documents."""
        logs: list[LogColumns] = []
        sent: Counter[tuple[Owner, bytes]] = Counter()
        for columns in batch.logs:
            known: set[int] = set()
            if columns.digest is not None and await self._had_old(columns.owner):
                body = columns.owner, columns.digest
                numbers = range(sent[body], sent[body] + len(columns.messages))
                sent[body] = numbers.stop
                known = await self._lines.known(*body, numbers)
            if known and not (await self.find(SeriesQuery(columns.owner, EventType.LOG), NOWHERE)).deleted:
                left = [at for at, number in enumerate(numbers) if number not in known]
                logs += [_take(columns, left)] if left else []
            else:
                logs.append(columns)
        return replace(batch, logs=logs)

    async def _had_old(self, owner: Owner) -> bool:
        """Whether the owner may have old documents, also such as have been moved."""
        if await self.indices.state(owner.company) is State.IDS:
            return True
        has_some = bool((await self._old_blocks([owner]))[owner])
        known = self._known.get(owner)
        return has_some or (known is not None and known.some_are_gone)


def _take(columns: LogColumns, which: Sequence[int]) -> LogColumns:
    """Some of the lines."""

    def some(column: Sequence[T]) -> list[T]:
        return [column[number] for number in which]

    return LogColumns(
        columns.owner,
        columns.timestamps[which],
        some(columns.levels),
        some(columns.workers),
        some(columns.messages),
        some(columns.iters),
        some(columns.metrics),
        some(columns.variants),
        columns.digest,
        {at: columns.extras[number] for at, number in enumerate(which) if number in columns.extras},
    )


def _with(found: Found, old: Sequence[Block], selection: Selection, range: Range = EVERYWHERE) -> Found:
    """The old blocks that are selected and have something in the range, and what was found.

    Old ones come first, as the first write of a shard has place 0, too: of blocks of one place, the last one wins.
    """
    if not old or found.deleted:
        return found
    matches = matcher(selection)
    wanted = [
        block for block in old if block.first <= range.greatest and range.least <= block.last and matches(*block.series)
    ]
    return found._replace(blocks=[*wanted, *found.blocks])
