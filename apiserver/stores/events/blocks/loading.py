"""Fetches columns of blocks, and makes points of stretches.

Columns of blocks are cached in a bounded memory, as they never change. Those of fragments are soon of no use. But the
last fragment of a log may stay for long, and readers of its newest lines come again and again. A server that makes
chunks forgets the columns of the blocks that they replace, and caches those columns of the chunks that charts and
summaries are made of. So it need not fetch what it has just written.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from apiserver.common.off_loop import off_loop
from apiserver.events.model import Int64Array
from apiserver.events.queries import EVERYWHERE, Range
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import Block, BlockStore, Columns, Found, Gone, NewBlock
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.blocks.encoding import (
    COLUMNS,
    CURVE,
    OF_CHARTS,
    SPANS,
    WHOLE,
    curve_of,
    points_of,
    spans_of,
)
from apiserver.stores.events.blocks.finding import Finder
from apiserver.stores.events.blocks.precedence import BlockPart
from apiserver.stores.events.blocks.stretches import Numbered, OfSeries, Stretch, stretches
from apiserver.stores.events.bounded import Bounded
from apiserver.stores.events.codec.points import NO_CURVE, NO_POINTS, Curve, Points, Workers, by_series, overlay, take
from apiserver.stores.events.codec.points import Columns as Made
from apiserver.stores.events.codec.reports import Span
from apiserver.stores.events.parts import in_parts

#: How often a read begins again.
TRIES = 10
#: Of how many parts the columns are loaded while those of an earlier part are decoded.
AHEAD = 2

Part = TypeVar("Part")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
#: A block, and the names of its columns that are wanted.
Wanted = tuple[Block, Sequence[str]]
#: The span of each worker's points in chunks, by the chunks' ids.
Spans = dict[str, list[tuple[str, Span]]]


class Loaded(dict[str, Columns]):
    """Columns of blocks by their ids, and what was decoded of the bundles among these."""

    def __init__(self) -> None:
        super().__init__()
        self._curves: dict[str, Curve] = {}
        self._points: dict[str, Points] = {}

    def curve(self, part: BlockPart) -> Curve:
        """Iterations and values of a part of a block."""
        return curve_of(part, self[part.block.id], self._curves)

    def points(self, part: BlockPart, workers: Workers) -> Points:
        """The points of a part of a block; `workers` gives numbers to their workers."""
        return points_of(part, self[part.block.id], workers, self._points)


class Loader:
    """Finds the blocks of a store, fetches their columns, and caches these, up to `most` bytes."""

    def __init__(self, store: BlockStore, most: int, bounds: ColumnarBounds = BOUNDS) -> None:
        self.store = store
        self.bounds = bounds
        self.finder = Finder(store, self.series_in, bounds)
        self._cached: Bounded[tuple[str, str], bytes] = Bounded(most, lambda _, column: len(column))
        """By what blocks are cached as, and the names of columns."""

    async def series_in(self, found: Found) -> OfSeries:
        """The series of the blocks that were found."""
        return stretches(found)

    async def load(self, wanted: Iterable[Wanted]) -> Loaded:
        """The named columns of each block, which may be named several times. Gone is raised if a block is not there."""
        loaded = Loaded()
        missing: dict[str, Wanted] = {}
        for block, names in wanted:
            if (columns := self._known(_cached_as(block), names)) is not None:
                loaded[block.id] = columns
            else:
                missing[block.id] = (block, names)
        fetched = await self.store.fetch([*missing.values()]) if missing else []
        for (block, _), columns in zip(missing.values(), fetched, strict=True):
            loaded[block.id] = columns
            self._keep(_cached_as(block), columns)
        return loaded

    def _known(self, id: str, names: Sequence[str]) -> Columns | None:
        """The named columns of a block if all of them are cached."""
        found = {name: column for name in names if (column := self._cached.get((id, name))) is not None}
        return found if len(found) == len(names) else None

    def _keep(self, id: str, columns: Columns) -> None:
        for name, column in columns.items():
            self._cached.put((id, name), column)

    def replaced(self, blocks: Iterable[Block], chunks: Iterable[NewBlock]) -> None:
        """Cache columns of chunks that were just made, and none of the blocks that they are made of."""
        self.forget(blocks, COLUMNS)
        for chunk in chunks:
            self._keep(chunk.id, {name: chunk.columns[name] for name in OF_CHARTS})

    def forget(self, blocks: Iterable[Block], names: Sequence[str]) -> None:
        """Cache the named columns of these blocks no longer."""
        for block in blocks:
            for name in names:
                self._cached.drop((_cached_as(block), name))

    async def curves(self, some: Iterable[Stretch]) -> Loaded:
        """The columns that have iterations and values, of all blocks of the stretches."""
        return await self.load(_columns_of(some, (CURVE,)))

    async def whole(self, some: Iterable[Stretch]) -> Loaded:
        """The columns that have whole points, of all blocks of the stretches."""
        return await self.load(whole_of(some))

    async def spans(self, some: Iterable[Stretch]) -> Spans:
        """What each worker reported, of those stretches that are a chunk alone."""
        loaded = await self.load((chunk, (SPANS,)) for stretch in some if (chunk := stretch.chunk) is not None)
        return await off_loop(len(loaded), lambda: {id: spans_of(columns) for id, columns in loaded.items()})

    async def load_ahead(
        self, parts: Iterable[Part], wanted: Callable[[Part], Iterable[Wanted]]
    ) -> AsyncGenerator[tuple[Part, Loaded], None]:
        """Each part, with the columns of the blocks that it wants. Those of the next parts are loaded meanwhile.

        So the store reads while this server decodes. For example, with AHEAD = 2:

            part 1 is decoded     parts 2 and 3 are being loaded
            part 2 is decoded     parts 3 and 4
        """
        waiting: deque[tuple[Part, asyncio.Task[Loaded]]] = deque()
        try:
            for part in parts:
                waiting.append((part, asyncio.create_task(self.load(wanted(part)))))
                if len(waiting) > AHEAD:
                    yield await _first(waiting)
            while waiting:
                yield await _first(waiting)
        finally:  # an error, or a reader that has enough
            tasks = [task for _, task in waiting]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def read(
        self, stretches: Iterable[Numbered], work: Callable[[Iterator[tuple[int, Points]]], Result], workers: Workers
    ) -> list[Result]:
        """What `work` makes of the points of the stretches, in threads, some stretches at a time."""
        made = []
        parts = in_parts(stretches, lambda one: one.stretch.size, self.bounds.points_at_a_time)
        async for part, loaded in self.load_ahead(parts, lambda part: whole_of(one.stretch for one in part)):
            size = sum([one.stretch.size for one in part])
            made.append(await off_loop(size, partial(_work_on, work, part, loaded, workers)))
        return made


def begins_again(
    loader_of: Callable[[Any], Loader] = lambda loader: loader,
) -> Callable[[Callable[Arguments, Awaitable[Result]]], Callable[Arguments, Coroutine[Any, Any, Result]]]:
    """A decorator of what reads blocks: it begins again when a block is gone that was found.

    `loader_of` tells, by its first argument, which loader finds the blocks.
    """

    def decorated(read: Callable[Arguments, Awaitable[Result]]) -> Callable[Arguments, Coroutine[Any, Any, Result]]:
        @wraps(read)
        async def reads(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
            for _ in range(TRIES):
                try:
                    return await read(*arguments, **named)
                except Gone:
                    loader_of(arguments[0]).finder.forget()
            raise EventStoreBusy("these events are compacted again and again", overloaded=False)

        return reads

    return decorated


def _cached_as(block: Block) -> str:
    """The id of a chunk. A fragment that is put again has the same id, and another time of receipt."""
    return block.id if block.lasts else f"{block.id} {block.version.place}"


def whole_of(some: Iterable[Stretch]) -> Iterator[Wanted]:
    """All blocks of the stretches, and the columns that have whole points."""
    return _columns_of(some, WHOLE)


def _columns_of(some: Iterable[Stretch], names: Sequence[str]) -> Iterator[Wanted]:
    return ((part.block, names) for stretch in some for part in stretch.parts)


def _work_on(
    work: Callable[[Iterator[tuple[int, Points]]], Result], some: Sequence[Numbered], loaded: Loaded, workers: Workers
) -> Result:
    return work((number, points_in(one, loaded, EVERYWHERE, workers)) for number, one in some)


async def _first(waiting: deque[tuple[Part, asyncio.Task[Loaded]]]) -> tuple[Part, Loaded]:
    """The part that has waited longest, once its columns are loaded."""
    part, task = waiting[0]
    loaded = await task
    waiting.popleft()
    return part, loaded


def times_of(spans: Iterable[tuple[str, Span]]) -> Range:
    """The least and the greatest timestamp; there must be one span at least."""
    _, of_each = zip(*spans, strict=True)
    return Range(min([span.first for span in of_each]), max([span.last for span in of_each]))


def curve_in(stretch: Stretch, loaded: Loaded, range: Range) -> Curve:
    """Iterations and values of a stretch in a range."""
    return _in_range(stretch, range, loaded.curve, NO_CURVE)


def points_in(stretch: Stretch, loaded: Loaded, range: Range, workers: Workers) -> Points:
    """The points of a stretch in a range."""
    return _in_range(stretch, range, lambda part: loaded.points(part, workers), NO_POINTS)


def _in_range(stretch: Stretch, range: Range, decoded: Callable[[BlockPart], Made], nothing: Made) -> Made:
    cut = [
        BlockPart(part.block, max(part.first, range.least), min(part.last, range.greatest)) for part in stretch.parts
    ]
    found = [decoded(part) for part in cut if part.first <= part.last]
    return overlay(found) if found else nothing


def in_all(
    stretches: Iterable[tuple[int, Stretch]], loaded: Loaded, decoded: Callable[[Sequence[tuple[Block, Columns]]], Made]
) -> tuple[Int64Array, Made, npt.NDArray[np.intp]]:
    """The points of many stretches at once, which come with numbers: sorted by these, then by iteration.

    `decoded` makes points of blocks. Returns the numbers that have points, all points, and where those of each begin.
    """
    parts = [(number, part) for number, stretch in stretches for part in stretch.parts]
    points = decoded([(part.block, loaded[part.block.id]) for _, part in parts])
    counts = [part.block.count for _, part in parts]
    columns = zip(*((number, part.first, part.last) for number, part in parts), strict=True)
    numbers, firsts, lasts = (np.repeat(np.array(column, np.int64), counts) for column in columns)
    counting = (firsts <= points.iters) & (points.iters <= lasts)
    if not counting.all():
        numbers, points = numbers[counting], take(points, counting)
    if not len(numbers):
        return numbers, points, np.empty(0, np.intp)
    points, starts = by_series(numbers, points)
    return np.flatnonzero(np.bincount(numbers)), points, starts
