"""Whole logs for copies: answers all lines of an owner, and keeps such lines as chunks at once.

Lines that are put have positions: their sequences are numbers of lines of the log that they come from. So they come
before lines that are added to the owner later, as those have the places of fragments in their sequences
(`log_blocks.py`). A chunk of lines that are put has everything up to the place that the store named before, if nothing
was found where it is. If something was, it is put together with these lines, as compaction would do: most often, an
interrupted copy was begun again, and all of them are there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from apiserver.events.model import EventType, Owner
from apiserver.events.queries import Range, SeriesQuery
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.columnar.blocks import NO_SERIES
from apiserver.stores.events.columnar.compaction import LEASE
from apiserver.stores.events.columnar.loading import Loaded
from apiserver.stores.events.columnar.log_batches import Batches, joined
from apiserver.stores.events.columnar.log_blocks import BATCHES, LINES, chunks_of, on_axis, place_of
from apiserver.stores.events.columnar.log_compaction import LinesMaker, batches_in
from apiserver.stores.events.columnar.log_reading import LogLoader, blocks_of, cut, lines_in
from apiserver.stores.events.columnar.stretches import Stretch, size_of, stretches
from apiserver.stores.events.columnar.whole_points import ended
from apiserver.stores.events.columns.lines import Lines
from apiserver.stores.events.columns.lines import joined as lines_of_all


async def whole_lines(loader: LogLoader, owner: Owner) -> AsyncIterator[Lines]:
    """All lines of the owner in their order, some at a time."""
    async for some, loaded in loader.walk(owner, None, lines=0):
        lines = await off_loop(size_of(some), partial(_lines, some, loaded))
        if len(lines):
            yield lines


def _lines(some: Sequence[Stretch], loaded: Loaded) -> Lines:
    return lines_of_all([lines_in(one, loaded) for one in some])


async def put_lines(loader: LogLoader, holder: str, owner: Owner, lines: Lines) -> None:
    """Keep lines of the owner at their positions, as `EventStore.put_lines` says."""
    store, first, last = loader.store, lines.position(0), lines.position(len(lines) - 1)
    up_to, ends = await ended(store, holder, owner), (place_of(first), place_of(last))
    found = await store.find(SeriesQuery(owner, EventType.LOG), Range(first.timestamp, last.timestamp))
    there = [on_axis(one) for one in found.blocks if one.series == NO_SERIES and one.reaches >= found.deleted]
    if any(one.first <= ends[1] and ends[0] <= one.last for one in there):
        await _put_among_others(loader, holder, owner, lines, ends)
        return
    nothing = Batches.of([])
    await store.put(await off_loop(len(lines), lambda: chunks_of(owner, ends, lines, nothing, up_to, None)))


async def _put_among_others(loader: LogLoader, holder: str, owner: Owner, lines: Lines, ends: tuple[int, int]) -> None:
    """Put chunks with these lines and those that are there between the same positions."""
    store, maker = loader.store, LinesMaker(loader)
    if not await store.lease(owner, holder, LEASE):
        raise EventStoreBusy("another server compacts this log, or deletes lines of it", overloaded=False)
    up_to = await store.ended(owner)
    found = await store.find(SeriesQuery(owner, EventType.LOG))
    if found.deleted > up_to or not await maker.may_begin(found, up_to):
        raise EventStoreBusy("lines of this log are being deleted", overloaded=False)
    seen, _ = await maker.seen(found, up_to)
    some = [one for each in stretches(seen).get(NO_SERIES, ()) if (one := cut(each, *ends)).parts]
    loaded = await loader.load(blocks_of(some), LINES)
    of_chunks = await loader.load([one for one in blocks_of(some) if one.statement is not None], BATCHES)
    there = [lines_of for one in some if len(lines_of := lines_in(one, loaded))]
    others = lines_of_all(there) if there else lines.slice(0, 0)
    fresh = lines.without(others)
    if len(fresh):
        batches = joined([Batches.of([]), *(batches_in(part, of_chunks) for one in some for part in one.parts)])
        all_of_them = lines_of_all([others, fresh])
        await store.put(chunks_of(owner, ends, all_of_them, batches, up_to, None))
    await store.lease(owner, holder, 0)
