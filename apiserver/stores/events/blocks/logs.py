"""Log lines over a block store: writes fragments, reads pages of fragments and chunks, counts, searches, numbers.

The methods are those of `LogStore` (`protocols/logs.py`) with the same names. An event store inherits the reads.

A *fragment* has the lines of one owner that came with one batch, in columns. Compaction makes *chunks* of fragments.
Chunks have about a megabyte of lines. `precedence.py` says which block counts where, as for scalars: a chunk has all
lines between two positions that were written up to a place. Nothing depends on clocks or locks of servers.

**Order.** Lines are in the order of their timestamps. Lines with the same timestamp are in the order in which the store
took their fragments: a line's sequence is the place of its fragment, and the line's number there. All servers see the
same places, and chunks keep the sequences. So a line keeps its position for ever, and pages neither skip nor repeat,
whoever compacts meanwhile. Only fragments that have ended get into chunks. Others may be undone, and then the store may
give their places to others.

**Resends.** The id of a fragment is made of the digest of the body that its lines came in, and the fragment is put
`once`. So a body that is sent again changes nothing while its fragment is there. After compaction, the fragment is put
anew, at another place. But chunks know the ids and places of the fragments that their lines came with. Whoever reads or
compacts leaves out a fragment whose id a chunk has with another place. Its lines are in chunks already, all of them,
because a fragment is removed only then.

**Deletions.** A deletion has a place, and what was written before does not count. A body that is sent again behind a
deletion is new: the store puts its fragment anew, even if the old one has not been removed yet. `log_deletion.py` says
how some lines of a log are deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial
from itertools import accumulate

import numpy as np

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import EventBatch, EventType, LogLine, LogPosition, LogSize, Owner, Selection, SeriesName
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.blocks.blocks import BlockStore, Columns
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.blocks.compaction import compact
from apiserver.stores.events.blocks.loading import Loaded, begins_again
from apiserver.stores.events.blocks.log_blocks import ABOUT, LINES, about_of, fragments, place_of, position_at
from apiserver.stores.events.blocks.log_bodies import KnownBodies, know_bodies, known_bodies
from apiserver.stores.events.blocks.log_compaction import LinesMaker
from apiserver.stores.events.blocks.log_deletion import delete_lines
from apiserver.stores.events.blocks.log_reading import LogLoader, blocks_of, bytes_of, is_whole, lines_in, texts_in
from apiserver.stores.events.blocks.stretches import Stretch, size_of
from apiserver.stores.events.blocks.whole_lines import put_lines, whole_lines
from apiserver.stores.events.codec import worker_sizes
from apiserver.stores.events.codec.lines import Lines
from apiserver.stores.events.codec.log_pages import PageOfLines, WantedLines, of_parts
from apiserver.stores.events.codec.names import matcher
from apiserver.stores.events.parts import in_parts
from apiserver.stores.events.sizes import PAGE_BYTES, bytes_of_all, page_of

#: Bytes of chunks that are kept in memory.
CACHE = 32 * 2**20

_begins_again = begins_again(lambda reads: reads._log)


class LogReads:
    """The methods of `LogStore` that read; it says what each of them answers."""

    @property
    def _log(self) -> LogLoader:
        """Where the lines are."""
        raise NotImplementedError

    # --- pages -------------------------------------------------------------------------------------

    @answers.counted
    @_begins_again
    async def log_lines(
        self, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None = None
    ) -> list[LogLine]:
        wanted = WantedLines.of(series, page, workers)
        return await self._lines_of(await self._log.stretches(series.owner), wanted)

    async def _lines_of(self, log: Sequence[Stretch], wanted: WantedLines) -> list[LogLine]:
        """The lines of a page of a log."""
        page = await self._page(log, wanted)
        if page.is_large and wanted.whole:
            return page.whole_timestamps() or (await self._page(log, wanted.of_one_timestamp)).lines()
        return page.lines()

    async def _page(self, log: Sequence[Stretch], wanted: WantedLines) -> PageOfLines:
        page = PageOfLines(wanted)
        walk = self._log.walk(
            log, wanted.after, descending=wanted.descending, lines=wanted.limit, may_be_in=_may_be_in(wanted)
        )
        async for some, loaded in walk:
            if await off_loop(size_of(some), partial(_add, page, some, loaded)):
                break
        return page

    @answers.counted
    @_begins_again
    async def log_page(self, series: SeriesQuery, page: PageQuery[LogPosition]) -> tuple[list[LogLine], int]:
        """What `log_lines` and `log_count` answer. If no series are selected, blocks are found once for both."""
        if series.selection:
            return await self.log_lines(series, page), await self.log_count(series)
        counted = await self._counted(series.owner)
        lines = await self._lines_of([one for one, _ in counted], WantedLines.of(series, page, None))
        return lines, sum([count for _, count in counted])

    def whole_lines(self, owner: Owner) -> AsyncIterator[Lines]:
        return whole_lines(self._log, owner)

    async def known_bodies(self, owner: Owner) -> Collection[bytes]:
        return await known_bodies(self._log, owner)

    # --- what there is -----------------------------------------------------------------------------

    @answers.counted
    async def log_count(self, series: SeriesQuery) -> int:
        if not series.selection:
            return sum([count for _, count in await self._counted(series.owner)])
        counts, _ = await self._about(series.owner)
        matches = matcher(series.selection)
        return sum([count for name, count in counts.items() if matches(*name)])

    @answers.counted
    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        _, sizes = await self._about(owner)
        return sizes

    @_begins_again
    async def _about(self, owner: Owner) -> tuple[Counter[tuple[str, str]], dict[str, LogSize]]:
        """How many lines each series has, and how much each worker logged."""
        counts: Counter[tuple[str, str]] = Counter()
        sizes: dict[str, LogSize] = {}
        log = await self._log.stretches(owner)
        whole = blocks_of(stretch for stretch in log if is_whole(stretch))
        for columns in (await self._log.column(ABOUT, whole)).values():
            names, of_workers = about_of(columns)
            counts.update({(metric, variant): count for metric, variant, count in names})
            worker_sizes.add(sizes, of_workers)
        for lines in await self._lines([stretch for stretch in log if not is_whole(stretch)]):
            if len(lines):
                counts.update(lines.names)
                worker_sizes.add(sizes, worker_sizes.of_lines(lines))
        return counts, sizes

    @_begins_again
    async def _counted(self, owner: Owner) -> list[tuple[Stretch, int]]:
        """All stretches of the log, ascending, and how many lines each has."""
        found = await self._log.stretches(owner)
        others = iter(await self._lines([one for one in found if not is_whole(one)]))
        return [(one, one.size if is_whole(one) else len(next(others))) for one in found]

    async def _lines(self, some: Sequence[Stretch]) -> list[Lines]:
        """The lines of each of the stretches."""
        loaded = await self._log.column(LINES, blocks_of(some))
        return await off_loop(size_of(some), lambda: [lines_in(one, loaded) for one in some])

    # --- numbers -----------------------------------------------------------------------------------

    @answers.counted
    @_begins_again
    async def log_numbered(self, owner: Owner, numbers: Sequence[int]) -> tuple[list[LogLine], int]:
        counted = await self._counted(owner)
        firsts = np.array([0, *accumulate(count for _, count in counted)], np.int64)
        lines: list[LogLine] = []
        for some in in_parts(
            of_parts(numbers, firsts), lambda part: counted[part[0]][0].size, self._log.bounds.searched_lines
        ):
            loaded = await self._log.column(LINES, blocks_of(counted[number][0] for number, _ in some))
            for number, places in some:
                lines += lines_in(counted[number][0], loaded).take(places).log_lines()
            if bytes_of_all(lines) >= PAGE_BYTES:
                break
        return page_of(lines), int(firsts[-1])

    @answers.counted
    @_begins_again
    async def log_number(self, owner: Owner, position: LogPosition) -> int:
        place, before = place_of(position), 0
        for stretch, count in await self._counted(owner):
            if stretch.last < place:
                before += count
            elif stretch.first < place:
                (lines,) = await self._lines([stretch])
                before += lines.before(position)
        return before

    # --- searches ----------------------------------------------------------------------------------

    @answers.counted
    @_begins_again
    async def log_hits(self, owner: Owner, line_filter: LineFilter, after: LogPosition | None) -> LogHits:
        places: list[int] = []
        searched, size, most = 0, 0, self._log.bounds.searched_lines
        async for stretches, loaded in self._log.walk(await self._log.stretches(owner), after, lines=most):
            for stretch in stretches:
                found, count = await off_loop(stretch.size, partial(_hits, stretch, loaded, line_filter))
                places += [searched + place for place in found]
                searched, size = searched + count, size + bytes_of(stretch)
                after = position_at(stretch.last)
            if searched >= most or size >= PAGE_BYTES:
                return LogHits(places, searched, after, ended=False)
        return LogHits(places, searched, after, ended=True)


class ColumnarLogs(LogReads):
    """The logs of all owners, as one server reads and writes them."""

    def __init__(self, store: BlockStore, *, cache: int = CACHE, bounds: ColumnarBounds = BOUNDS) -> None:
        self.loader = LogLoader(store, cache, bounds)
        self._bodies = KnownBodies(self.loader)

    @property
    def _log(self) -> LogLoader:
        return self.loader

    # --- writing -----------------------------------------------------------------------------------

    async def add(self, batch: EventBatch) -> None:
        """Keep the batch's lines. Adding it again changes nothing if they have digests."""
        batch = await self._bodies.without(batch)
        lines = sum([len(columns.messages) for columns in batch.logs])
        for blocks in await off_loop(lines, lambda: fragments(batch, self.loader.bounds)):
            await self.loader.store.put(blocks)

    async def put_lines(self, owner: Owner, lines: Lines) -> None:
        await put_lines(self.loader, owner, lines)

    async def know_bodies(self, owner: Owner, ids: Collection[bytes]) -> None:
        await know_bodies(self.loader, owner, ids)
        self._bodies.forget(owner)

    async def delete(self, owners: Sequence[Owner]) -> None:
        await self.loader.store.remove_before(await self.loader.store.delete(owners))

    async def delete_logs(
        self, series: SeriesQuery, before: int | None, exclude: Selection = (), known: int | None = None
    ) -> int:
        """Delete log lines by age and series; return how many there were.

        None are deleted if some lines of the owner came behind the place `known`, if there is one.
        """
        return await delete_lines(self.loader, series, before, exclude, known)

    async def compact(self, owner: Owner, *, fewest: int | None = None) -> bool:
        """Make chunks of fragments, and remove what counts nowhere. Any server may do it at any time.

        Returns whether it was done: perhaps another server does it just now.
        """
        return await compact(LinesMaker(self.loader), SeriesQuery(owner, EventType.LOG), fewest)

    # --- what there is -----------------------------------------------------------------------------

    async def series(self, owner: Owner) -> list[SeriesName]:
        counts, _ = await self._about(owner)
        return sorted(SeriesName(EventType.LOG, *name) for name in counts)


def _may_be_in(wanted: WantedLines) -> Callable[[Columns], bool] | None:
    """Whether wanted lines may be in a block, by its column `about`; None: in any."""
    matches, workers = wanted.matches, wanted.workers
    if matches is None and workers is None:
        return None

    def may_be_in(columns: Columns) -> bool:
        names, sizes = about_of(columns)
        has_names = matches is None or any(matches(metric, variant) for metric, variant, _ in names)
        return has_names and (workers is None or any(worker in workers for worker, _, _ in sizes))

    return may_be_in


def _add(page: PageOfLines, some: Sequence[Stretch], loaded: Loaded) -> bool:
    """Add stretches to a page until it needs no more; whether it does."""
    return any(page.add(lines_in(one, loaded)) for one in some)


def _hits(stretch: Stretch, loaded: Loaded, wanted: LineFilter) -> tuple[list[int], int]:
    """Where the matching lines of a stretch are, and how many lines it has."""
    texts = texts_in(stretch, loaded)
    return texts.places(wanted), len(texts.messages)
