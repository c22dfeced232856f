"""Whole logs for copies: answers all lines of an owner, and keeps such lines as chunks at once.

Lines that are put have positions: their sequences are numbers of lines of the log that they come from. So they come
before lines that are added to the owner later, as those have the places of fragments in their sequences
(`log_blocks.py`). Lines whose positions are taken are left out: most often, an interrupted copy was begun again, and
all of them are there. Lines of a write that may be undone are put again. A chunk of the lines that are left has
everything up to the place that the store named before, if no block was found there. If one was, the chunk states
NOTHING, and only brings its lines, as a fragment does.

For example, of lines at positions 1 to 9, the store has 1 to 3 and 5:

    put       4 and 6 to 9: a chunk of 4 to 9, which leaves 5 where it is
    put       6 to 9 if 4 is there, too: a chunk that has everything from 6 to 9 up to that place
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from apiserver.common.off_loop import off_loop
from apiserver.events.model import EventType, LogPosition, Owner
from apiserver.events.queries import Range, SeriesQuery
from apiserver.stores.events.blocks.blocks import NO_SERIES, NOTHING
from apiserver.stores.events.blocks.loading import Loaded, begins_again
from apiserver.stores.events.blocks.log_batches import Batches
from apiserver.stores.events.blocks.log_blocks import LINES, NO_LINES, chunks_of, place_of, position_at
from apiserver.stores.events.blocks.log_reading import LogLoader, blocks_of, cut, lines_in, of_lasting
from apiserver.stores.events.blocks.stretches import Stretch, size_of, stretches
from apiserver.stores.events.blocks.whole_points import ended
from apiserver.stores.events.codec.lines import Lines
from apiserver.stores.events.codec.lines import joined as lines_of_all


async def whole_lines(loader: LogLoader, owner: Owner) -> AsyncIterator[Lines]:
    """All lines of the owner in their order, some at a time."""
    after: LogPosition | None = None
    while (lines := await _behind(loader, owner, after)) is not None:
        yield lines
        after = lines.position(len(lines) - 1)


@begins_again()
async def _behind(loader: LogLoader, owner: Owner, after: LogPosition | None) -> Lines | None:
    """The next lines behind a position; None: there are none."""
    async for some, loaded in loader.walk(await loader.stretches(owner), after, lines=0):
        lines = await off_loop(size_of(some), partial(_lines, some, loaded))
        if len(lines):
            return lines
    return None


def _lines(some: Sequence[Stretch], loaded: Loaded) -> Lines:
    return lines_of_all([lines_in(one, loaded) for one in some])


@begins_again()
async def put_lines(loader: LogLoader, owner: Owner, lines: Lines) -> None:
    """Keep lines of the owner at their positions, as `CopyStore.put_lines` says."""
    up_to = await ended(loader.store, owner, loader.bounds)
    some, there = await _between(loader, owner, _ends(lines), up_to)
    fresh = lines.without(there)
    if not len(fresh):
        return
    ends, nothing = _ends(fresh), Batches.of([])
    if any(one.first <= ends[1] and ends[0] <= one.last for one in some):
        up_to = NOTHING
    made = await off_loop(len(fresh), partial(chunks_of, owner, ends, fresh, nothing, up_to, None, loader.bounds))
    await loader.store.put(made)


def _ends(lines: Lines) -> tuple[int, int]:
    return place_of(lines.position(0)), place_of(lines.position(len(lines) - 1))


async def _between(loader: LogLoader, owner: Owner, ends: tuple[int, int], up_to: int) -> tuple[list[Stretch], Lines]:
    """The stretches between two places, and their lines. Writes up to a place have ended; others are left out."""
    times = Range(position_at(ends[0]).timestamp, position_at(ends[1]).timestamp)
    found = await loader.store.find(SeriesQuery(owner, EventType.LOG), times)
    found, _ = await loader.seen(of_lasting(found, up_to))
    some = [one for each in stretches(found).get(NO_SERIES, ()) if (one := cut(each, *ends)).parts]
    loaded = await loader.column(LINES, blocks_of(some))
    lines = [lines for one in some if len(lines := lines_in(one, loaded))]
    return some, lines_of_all(lines) if lines else NO_LINES
