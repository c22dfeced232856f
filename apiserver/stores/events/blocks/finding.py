"""Finds blocks, and remembers those of queries that come again: then the store is asked only for what came since.

A query with many blocks is answered so:

1. The first time, the store is asked for all blocks.
2. The second time, too, but for a place first up to which all writes have ended. The blocks up to this place are
   remembered.
3. From then on, the store is asked for blocks from the place of the last one that is remembered. They have to begin
   with this one. If they do not, its place is not what it was, and everything is asked anew, as the second time. So it
   is if they have become many.

For example, writes have ended up to place 9, and blocks a, b and c of places 3, 5 and 8 are found and remembered. Then
a chunk d of all of them is put at place 12, and a and b are removed:

    asked from place 8        c and d
    the answer                a, b, c and d, of which only d counts
    c is removed
    asked from place 8        d: c is missing, so all blocks are asked for

A server that compacts an owner remembers at once which blocks are left, as compaction, too, asks first for a place up
to which all writes have ended. Then it asks for what it has put itself. So who reads the owner first waits for neither.

Blocks never change, and those that were removed do no harm beside those that replaced them. Blocks that replace others
are put later, and so are deletions: the store tells of both when it is asked for what came since. A write that has not
ended may be undone, and other writes may come to lie before it. So it is not remembered.

What is remembered is bounded, however many queries there are and however many series they name.

What readers make of the blocks is remembered, too: if nothing has come since, it is what it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from apiserver.events.model import EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.blocks.blocks import Block, BlockStore, Found
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.blocks.stretches import OfSeries
from apiserver.stores.events.bounded import Bounded
from apiserver.stores.events.codec.names import Name

#: Characters of names in queries that count as a block (`remembered_blocks`).
_CHARACTERS = 128

#: A query of one owner: its type, and the series that it asks for.
Key = tuple[Owner, EventType, tuple[tuple[str, tuple[str, ...]], ...]]


@dataclass(slots=True)
class _Known:
    """What is known of a query that found many blocks."""

    blocks: Mapping[tuple[str, Name], Block]
    """By their keys."""
    last: Block | None
    """The one of the last place. None: nothing is remembered yet."""
    newer: Found | None = None
    """What came since, when this was asked last."""
    found: Found | None = None
    """All that was answered then."""
    series: OfSeries | None = None
    """The series in that."""


class Finder:
    """Finds blocks of a store for readers, and the series in all blocks of a query, as `series_in` tells them.

    Nobody may change what is answered.
    """

    def __init__(
        self, store: BlockStore, series_in: Callable[[Found], Awaitable[OfSeries]], bounds: ColumnarBounds = BOUNDS
    ) -> None:
        self._many = bounds.many_blocks
        self._store = store
        self._series_in = series_in
        self._known = Bounded(bounds.remembered_blocks, _size)
        """The queries that were asked last."""

    async def series(self, query: SeriesQuery) -> OfSeries:
        """The series that are found for a query."""
        found = await self.find(query)
        known = self._known.get(key_of(query))
        if known is None or known.found is not found:
            return await self._series_in(found)
        if known.series is not None:
            return known.series
        series = await self._series_in(found)
        if known.found is found:  # else more was found meanwhile
            known.series = series
        return series

    async def series_of_each(self, queries: Sequence[SeriesQuery]) -> list[OfSeries]:
        """The series of each query, in order. Only those of a single query are remembered."""
        if len(queries) == 1:
            return [await self.series(queries[0])]
        return [await self._series_in(found) for found in await self._store.find_of_each(queries)]

    async def find(self, series: SeriesQuery) -> Found:
        """All blocks of the series. There may be blocks that were removed, beside those that replaced them.

        What is remembered is the same object again if nothing has come since.
        """
        key = key_of(series)
        known = self._known.get(key)
        if known is None:
            found = await self._store.find(series)
            if len(found.blocks) >= self._many and self._known.get(key) is None:
                self._known.put(key, _Known({}, None))
            return found
        if known.last is not None:
            newer = await self._store.find(series, place=known.last.version.place)
            if known.found is not None and newer == known.newer:
                return known.found
            if any(one.id == known.last.id and one.version == known.last.version for one in newer.blocks):
                both = newer._replace(blocks=[*{**known.blocks, **{one.key: one for one in newer.blocks}}.values()])
                if len(newer.blocks) > self._many + len(known.blocks) // 4:
                    self._known.put(key, _Known({}, None))
                else:
                    known.newer, known.found, known.series = newer, both, None
                return both
        ended = await self._store.ended(series.owner)
        found = await self._store.find(series)
        lasting = [one for one in found.blocks if one.version.place <= ended]
        self._remember_lasting(key, lasting)
        return found

    async def compacted(self, series: SeriesQuery, left: Sequence[Block], put: int, up_to: int) -> None:
        """Remember for a query the blocks that compaction has `left`, and those that it has put, if they are many.

        All writes up to a place had ended before compaction put its blocks.
        """
        if len(left) + put < self._many:
            return
        ended = await self._store.ended(series.owner)
        newer = await self._store.find(series, place=up_to + 1)
        self._remember_lasting(key_of(series), [*left, *(one for one in newer.blocks if one.version.place <= ended)])

    def forget(self) -> None:
        """Remember nothing any more: a block that counts is not there."""
        self._known.clear()

    def _remember_lasting(self, key: Key, lasting: Sequence[Block]) -> None:
        last = max(lasting, key=lambda one: one.version, default=None)
        if last is not None:
            self._known.put(key, _Known({one.key: one for one in lasting}, last))
        else:
            self._known.drop(key)


def key_of(series: SeriesQuery) -> Key:
    """The query as a key."""
    return series.owner, series.type, tuple((one.metric, tuple(one.variants)) for one in series.selection)


def size_of(key: Key) -> int:
    """How many blocks a query counts as, which may have long names."""
    *_, selection = key
    names = [name for metric, variants in selection for name in (metric, *variants)]
    return 1 + len(names) + sum(map(len, names)) // _CHARACTERS


def _size(key: Key, known: _Known) -> int:
    return size_of(key) + len(known.blocks)
