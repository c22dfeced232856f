"""Reads the log of an owner: finds blocks, leaves out fragments that were sent again, walks over stretches of lines.

A walk reads as many stretches as its reader needs. If lines of some series or workers are wanted, it asks some blocks
at a time whether they may have any, a few at first.

A fragment was sent again if a chunk names one with its id, but of another place (`log_batches.py`). Lines that are sent
again have their old timestamps, so only chunks of these times are asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from apiserver.events.model import EventType, LogPosition, Owner
from apiserver.events.queries import EVERYWHERE, SeriesQuery
from apiserver.stores.events.blocks.blocks import NO_SERIES, Block, Columns, Found
from apiserver.stores.events.blocks.loading import Loaded, Loader
from apiserver.stores.events.blocks.log_blocks import (
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
from apiserver.stores.events.blocks.precedence import BlockPart
from apiserver.stores.events.blocks.stretches import OfSeries, Stretch, stretches
from apiserver.stores.events.codec.lines import Lines, Texts, joined
from apiserver.stores.events.parts import in_parts
from apiserver.stores.events.sizes import PAGE_BYTES

#: Stretches that are asked at first whether they may have wanted lines, how many times as many then, and at most.
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
        places: dict[bytes, int] = {}
        if asked := _of_same_times([block for block in counting if block.statement is not None], fragments):
            for columns in (await self.column(BATCHES, asked)).values():
                batches = batches_of(columns)
                places |= zip(batches.ids.tolist(), batches.places.tolist(), strict=True)
        again = [
            block for block in fragments if places.get(batch_id(block), block.version.place) != block.version.place
        ]
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
        log: Sequence[Stretch],
        after: LogPosition | None,
        *,
        lines: int,
        descending: bool = False,
        may_be_in: Callable[[Columns], bool] | None = None,
    ) -> AsyncIterator[tuple[list[Stretch], Loaded]]:
        """The stretches of a log behind a position in walking order, cut there, some at a time; first so many `lines`.

        `may_be_in` says by the column `about` of a block whether it may have any lines that are wanted.
        """
        first, last = places_of(EVERYWHERE).least, places_of(EVERYWHERE).greatest
        if after is not None:
            first, last = (first, place_of(after) - 1) if descending else (place_of(after) + 1, last)
        left = [
            part
            for stretch in log
            if stretch.first <= last and first <= stretch.last and (part := cut(stretch, first, last)).parts
        ]
        left = left[::-1] if descending else left
        parts: Iterable[Sequence[Stretch]] = [left] if may_be_in is None else _more_and_more(left)
        for part_of_log in parts:
            if may_be_in is not None:
                about = await self.column(ABOUT, blocks_of(part_of_log))
                part_of_log = [
                    stretch for stretch in part_of_log if any(may_be_in(about[part.block.id]) for part in stretch.parts)
                ]
            enough = bisect_left([*accumulate(stretch.size for stretch in part_of_log)], lines) + 1 if lines > 0 else 0
            for those in (part_of_log[:enough], part_of_log[enough:]):
                for taken in in_parts(those, bytes_of, PAGE_BYTES):
                    yield taken, await self.column(LINES, blocks_of(taken))
                    lines -= sum([stretch.size for stretch in taken])


def _more_and_more(stretches: Sequence[Stretch]) -> Iterator[Sequence[Stretch]]:
    """The stretches in parts, of which each is larger than the one before."""
    start, count = 0, _FIRST
    while start < len(stretches):
        yield stretches[start : start + count]
        start, count = start + count, min(count * _TIMES, _MOST)


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
    for fragment in sorted(fragments, key=lambda fragment: fragment.first):
        if spans and fragment.first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], fragment.last)
        else:
            spans.append((fragment.first, fragment.last))
    chunks_there, left = [], iter(spans)
    span = next(left, None)
    for chunk in sorted(chunks, key=lambda chunk: chunk.first):
        while span is not None and span[1] < chunk.first:
            span = next(left, None)
        if span is None:
            break
        if span[0] <= chunk.last:
            chunks_there.append(chunk)
    return chunks_there


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
