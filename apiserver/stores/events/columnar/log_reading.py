"""Reads the log of an owner: finds blocks, leaves out fragments that were sent again, walks over stretches of lines.

A walk asks the store for the blocks at one end of what it has not seen yet, a few at first, and reads as many stretches
as its reader needs. If a block is gone, the walk asks again from where it stands: what it has passed stays as it was.

A fragment was sent again if a chunk names one with its id, but of another place (`log_batches.py`). Lines that are sent
again have their old timestamps, so only chunks of these times are asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain

import numpy as np

from apiserver.events.model import EventType, LogPosition, Owner
from apiserver.events.queries import EVERYWHERE, Range, SeriesQuery
from apiserver.stores.events.base import PAGE_BYTES, EventStoreBusy
from apiserver.stores.events.columnar.blocks import NO_SERIES, Block, Columns, Found, Gone
from apiserver.stores.events.columnar.loading import TRIES, Loaded, Loader
from apiserver.stores.events.columnar.log_blocks import (
    ABOUT,
    BATCHES,
    LINES,
    NO_LINES,
    batch_id,
    batches_of,
    lines_of,
    on_axis,
    place_of,
    places_of,
    position_at,
    texts_of,
)
from apiserver.stores.events.columnar.precedence import BlockPart
from apiserver.stores.events.columnar.stretches import OfSeries, Stretch, stretches
from apiserver.stores.events.columns.lines import Lines, Texts, joined
from apiserver.stores.events.parts import in_parts

#: Blocks that a walk asks for at first, how many times as many it asks for next, and at most.
_FIRST, _TIMES, _MOST = 20, 5, 2500


class LogLoader(Loader):
    """Loads blocks of the logs of a store."""

    async def column(self, name: str, blocks: Iterable[Block]) -> Loaded:
        """A column of each of the blocks."""
        return await self.load((block, (name,)) for block in blocks)

    async def seen(self, found: Found) -> tuple[Found, list[Block]]:
        """The blocks of lines on the axis of logs, without fragments that were sent again; and these."""
        found = found._replace(blocks=[block for block in found.blocks if block.series == NO_SERIES])
        counting = found.counting
        fragments = [block for block in counting if not block.lasts]
        known: dict[bytes, int] = {}
        if asked := _of_same_times([block for block in counting if block.statement is not None], fragments):
            for columns in (await self.column(BATCHES, asked)).values():
                batches = batches_of(columns)
                known |= zip(batches.ids.tolist(), batches.places.tolist(), strict=True)
        again = [block for block in fragments if known.get(batch_id(block), block.version.place) != block.version.place]
        left_out = {block.id for block in again}
        return found._replace(blocks=[on_axis(block) for block in found.blocks if block.id not in left_out]), again

    async def stretches(self, owner: Owner) -> Sequence[Stretch]:
        """All stretches of the owner's log, ascending."""
        return (await self.finder.series(SeriesQuery(owner, EventType.LOG))).get(NO_SERIES, ())

    async def series_in(self, found: Found) -> OfSeries:
        """The lines of the blocks that were found."""
        seen, _ = await self.seen(found)
        return stretches(seen)

    async def walk(
        self,
        owner: Owner,
        after: LogPosition | None,
        *,
        lines: int,
        descending: bool = False,
        may_be_in: Callable[[Columns], bool] | None = None,
        whole: Sequence[Stretch] | None = None,
    ) -> AsyncIterator[tuple[list[Stretch], Loaded]]:
        """The stretches behind a position in walking order, cut there, some at a time; first so many `lines`.

        `may_be_in` says by the column `about` of a block whether it may have any lines that are wanted. If all
        stretches of the log are known, they are `whole`. Then Gone is raised if one of their blocks is not there.
        """
        first, last = places_of(EVERYWHERE).least, places_of(EVERYWHERE).greatest
        if after is not None:
            first, last = (first, place_of(after) - 1) if descending else (place_of(after) + 1, last)
        if whole is not None:
            async for some, loaded in self._loaded(whole, first, last, lines, descending, may_be_in):
                yield some, loaded
            return
        most, tries = _FIRST, 0
        while first <= last and tries < TRIES:
            rest = Range(position_at(first).timestamp, position_at(last).timestamp)
            near, known = await self._near(owner, rest, most, descending=descending)
            most = min(most * _TIMES, _MOST)
            begin, end = max(first, places_of(known).least), min(last, places_of(known).greatest)
            try:
                found, _ = await self.seen(near)
                inside = stretches(found).get(NO_SERIES, ())
                async for some, loaded in self._loaded(inside, begin, end, lines, descending, may_be_in):
                    yield some, loaded
                    first, last, tries = (first, some[-1].first - 1, 0) if descending else (some[-1].last + 1, last, 0)
                    lines -= sum([one.size for one in some])
            except Gone:
                tries += 1
                continue
            first, last = (first, begin - 1) if descending else (end + 1, last)
        if tries == TRIES:
            raise EventStoreBusy("this log is compacted again and again", overloaded=False)

    async def _near(self, owner: Owner, times: Range, most: int, *, descending: bool) -> tuple[Found, Range]:
        """Blocks at one end of a range of times, and a range at this end in which these are all."""
        near = await self.store.near(owner, times, most, descending=descending)
        if near.known is not None:
            return near.found, near.known
        end = times.greatest if descending else times.least
        only = Range(end, end)
        return await self.store.find(SeriesQuery(owner, EventType.LOG), only), only

    async def _loaded(
        self,
        inside: Sequence[Stretch],
        first: int,
        last: int,
        lines: int,
        descending: bool,
        may_be_in: Callable[[Columns], bool] | None,
    ) -> AsyncIterator[tuple[list[Stretch], Loaded]]:
        """The stretches between two places, cut there, with their columns: first those that have so many lines."""
        left = [
            part for one in inside if one.first <= last and first <= one.last and (part := cut(one, first, last)).parts
        ]
        if may_be_in is not None:
            about = await self.column(ABOUT, blocks_of(left))
            left = [one for one in left if any(may_be_in(about[part.block.id]) for part in one.parts)]
        left = left[::-1] if descending else left
        enough = bisect_left([*accumulate(one.size for one in left)], lines) + 1 if lines > 0 else 0
        for some in chain(in_parts(left[:enough], bytes_of, PAGE_BYTES), in_parts(left[enough:], bytes_of, PAGE_BYTES)):
            yield some, await self.column(LINES, blocks_of(some))


def of_lasting(found: Found, up_to: int) -> Found:
    """The blocks that cannot be undone: those of writes up to a place, which have ended, and chunks, made of such."""
    lasting = [
        block
        for block in found.blocks
        if block.version.place <= up_to or (block.statement is not None and not block.brings)
    ]
    return found._replace(blocks=lasting)


def _of_same_times(chunks: Sequence[Block], fragments: Sequence[Block]) -> list[Block]:
    """The chunks that have times in common with fragments."""
    spans: list[tuple[int, int]] = []
    for one in sorted(fragments, key=lambda one: one.first):
        if spans and one.first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], one.last)
        else:
            spans.append((one.first, one.last))
    found, left = [], iter(spans)
    span = next(left, None)
    for chunk in sorted(chunks, key=lambda one: one.first):
        while span is not None and span[1] < chunk.first:
            span = next(left, None)
        if span is None:
            break
        if span[0] <= chunk.last:
            found.append(chunk)
    return found


def blocks_of(some: Iterable[Stretch]) -> Iterator[Block]:
    """All blocks of the stretches."""
    return (part.block for one in some for part in one.parts)


def bytes_of(stretch: Stretch) -> int:
    """About how many bytes of memory the lines of a stretch take."""
    return sum([part.block.size for part in stretch.parts])


def cut(stretch: Stretch, first: int, last: int) -> Stretch:
    """What of a stretch lies between two places; it may have no parts."""
    if first <= stretch.first and stretch.last <= last:
        return stretch
    parts = [BlockPart(part.block, max(part.first, first), min(part.last, last)) for part in stretch.parts]
    return Stretch(max(stretch.first, first), min(stretch.last, last), [one for one in parts if one.first <= one.last])


def is_whole(stretch: Stretch) -> bool:
    """Whether all lines of its blocks count. Of chunks that bring lines, several may have the same ones."""
    if len(stretch.parts) > 1 and any(part.block.brings for part in stretch.parts):
        return False
    return all(map(_is_whole, stretch.parts))


def _is_whole(part: BlockPart) -> bool:
    return (part.first, part.last) == (part.block.first, part.block.last)


def lines_in(stretch: Stretch, loaded: Loaded) -> Lines:
    """The lines of a stretch, ascending, one at each position. Their columns `lines` are loaded."""
    found = [_lines_of(part, loaded) for part in stretch.parts]
    some = [lines for lines in found if len(lines)]
    if not some:
        return NO_LINES
    lines = joined(some)
    is_first = np.ones(len(lines), bool)
    is_first[1:] = (np.diff(lines.timestamps) != 0) | (np.diff(lines.sequences) != 0)
    return lines if is_first.all() else lines.take(np.flatnonzero(is_first))


def texts_in(stretch: Stretch, loaded: Loaded) -> Texts:
    """What searches look at, of the lines of a stretch."""
    if stretch.alone is not None and stretch.alone.count:
        return texts_of(loaded[stretch.alone.id])
    return lines_in(stretch, loaded).texts


def _lines_of(part: BlockPart, loaded: Loaded) -> Lines:
    lines = lines_of(part.block, loaded[part.block.id])
    if _is_whole(part):
        return lines
    return lines.slice(lines.before(position_at(part.first)), lines.before(position_at(part.last), "right"))
