"""The EventStore protocol: what every engine of events promises.

The contract suite (`tests/contract/`) runs against each engine. Engines return columns and positions. The rules about
intervals, pages and answers are in `reading/`, above the engines.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from apiserver.events.aggregates import Buckets, CurvesInBuckets, Neighbours
from apiserver.events.changes import Changes, ChangesQuery, Cursor
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import (
    EventBatch,
    EventType,
    LogLine,
    LogPosition,
    LogSize,
    Owner,
    Sample,
    SamplePosition,
    SampleSeries,
    ScalarPoints,
    ScalarPosition,
    ScalarStats,
    Selection,
    SeriesName,
    WorkerMeans,
    WorkerSpan,
)
from apiserver.events.queries import (
    EVERYWHERE,
    BucketQuery,
    CommonBuckets,
    CurvesQuery,
    Grid,
    PageQuery,
    Range,
    SeriesQuery,
)
from apiserver.stores.events.sizes import bytes_of, bytes_of_all
from apiserver.stores.events.usage import Usage

if TYPE_CHECKING:
    from apiserver.stores.events.codec.lines import Lines
    from apiserver.stores.events.codec.points import WholePoints

#: A page of samples or log lines ends with the event that brings it to so many bytes, however few events it has.
PAGE_BYTES = 8 * 2**20

#: If a page must have all lines of a timestamp, it still ends at so many bytes.
TIMESTAMP_BYTES = 64 * 2**20

#: Owners whose series are read at once. Other reads wait for no more than these.
OWNERS_AT_ONCE = 32

Event = TypeVar("Event", Sample, LogLine)


def page_of(events: Iterable[Event], most: int | None = None) -> list[Event]:
    """The first events, up to the one that brings them to `most` bytes (None: PAGE_BYTES). No more are taken."""
    page, size = [], 0
    for event in events:
        page.append(event)
        size += bytes_of(event)
        if size >= (most or PAGE_BYTES):
            break
    return page


def whole_timestamps_of(lines: list[LogLine]) -> list[LogLine]:
    """The lines without those of the last timestamp."""
    end = len(lines)
    while end and lines[end - 1].position.timestamp == lines[-1].position.timestamp:
        end -= 1
    return lines[:end]


def may_go_on(page: Sequence[Sample] | Sequence[LogLine], limit: int) -> bool:
    """Whether more events may follow a page of up to `limit` events: it has that many, or PAGE_BYTES."""
    return len(page) >= limit or bytes_of_all(page) >= PAGE_BYTES


class EventStoreError(Exception):
    """An engine could not do what was asked. No acknowledged event is affected."""


class EventStoreBusy(EventStoreError):
    """The engine is overloaded or unavailable for now. The caller may try again after `retry_after` seconds."""

    def __init__(
        self, reason: str, *, retry_after: int = 1, overloaded: bool = True, may_be_kept: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.overloaded = overloaded
        """True: the engine has too much to do (429). False: it is unavailable, as with a full disk (503)."""
        self.may_be_kept = may_be_kept
        """True: the engine may have kept a part of the batch. Adding the batch again completes it."""


class EventStore(Protocol):
    """Events of all companies, by owner.

    Reads see every batch whose `add` has returned. All methods raise EventStoreBusy if they cannot serve now. Unknown
    owners and series are empty. A `limit`, and a number of values or iterations, is at least 1.

    Queries say what to read (`events/queries.py`). A query for series must name a type that the method reads.

    Some deletions take a cursor `up_to` (`events/changes.py`). They delete nothing that came behind it. If events of
    the owner came behind it, any of the other ones may stay, too. So a caller who read all events after the store gave
    the cursor has read all that goes.

    Samples and log lines may be large. So a page of them also ends with the event that brings it to PAGE_BYTES, and
    `may_go_on` tells whether more events may follow.
    """

    @property
    def reads_in_parallel(self) -> bool:
        """Whether several reads at once take less time than one after another."""

    async def open(self) -> None:
        """Open the store; raise EventStoreError with the reason if that is not possible."""

    async def close(self) -> None:
        """Finish what is under way, and release all resources. A second call does nothing."""

    async def check(self) -> None:
        """Raise EventStoreError unless events can be kept and read; do not wait for other calls."""

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        """Keep the batch: it survives kill -9 once this returns. Adding it again changes nothing.

        Returns how many events the engine refused, by reason. The other events are kept. If this raises EventStoreBusy,
        nothing is kept, unless the error says `may_be_kept`.
        """

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        """Delete the owners' events (of `types`, or all); return how many there were."""

    async def delete_scalars(self, owner: Owner, up_to: Cursor) -> int:
        """Delete the owner's scalars up to a cursor; return how many there were."""

    async def delete_logs(
        self, series: SeriesQuery, before: int | None, exclude: Selection = (), up_to: Cursor | None = None
    ) -> int:
        """Delete log lines of the series that are older than `before` (epoch ms; None: all) and not excluded.

        Returns how many there were.
        """

    async def delete_samples(
        self,
        series: SeriesQuery,
        iterations: Range = EVERYWHERE,
        before: int | None = None,
        up_to: Cursor | None = None,
    ) -> int:
        """Delete samples of the series in these iterations that are older than `before` (epoch ms; None: all).

        Returns how many there were.
        """

    async def thin_scalars(
        self, series: SeriesQuery, points: int, checksums: Mapping[tuple[str, str], int] | None = None
    ) -> int:
        """Thin those of the series that have more points to at most so many, 12 or more; return how many are gone.

        `codec/thinning.py` says which points stay. Those that come meanwhile stay, too. If it fails, some series are
        thinned, or one of them in part. Thinning again completes it.

        `checksums` are of the points of each series, as the caller has read them (`codec/thinning.py`). A series that
        has another one by now, or none, stays as it is. So nothing goes that the caller has not read.
        """

    def owners(self) -> AsyncIterator[Owner]:
        """Every owner that has events, of all companies, once and in any order; perhaps some that had events before."""

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        """Every series of the owner, sorted, however many there are."""

    # scalars

    async def scalar_stats(self, series: SeriesQuery, *, spread: bool = False) -> list[ScalarStats]:
        """Stats of each series, sorted by metric and variant; with `spread`, all of them."""

    async def scalar_stats_of_each(self, queries: Sequence[SeriesQuery]) -> list[list[ScalarStats]]:
        """As `scalar_stats` of each query, in order: for the few series of many owners."""

    async def scalar_buckets(self, series: SeriesQuery, buckets: BucketQuery) -> list[Buckets]:
        """The buckets of each series, sorted by metric and variant; iteration −2³¹ is left out.

        Series without a point in the range have no buckets. Series with only a single value are left out. On the
        iteration axis, an engine may make the buckets somewhat wider, so that its own aggregates fit into them, but
        never narrower. Counts always add up to the points. If the first bucket starts before −2⁶³, its x is −2⁶³.

        `answers.will_read` counts the buckets before all of them are made.
        """

    async def scalar_buckets_of_each(self, queries: Sequence[SeriesQuery], buckets: BucketQuery) -> list[list[Buckets]]:
        """As `scalar_buckets` of each query, in order: for the few series of many owners."""

    async def curve_ends(self, asked: CurvesQuery) -> tuple[int, int] | None:
        """The least and the greatest x of all curves together; iteration −2³¹ is left out. None: there is no point."""

    async def curve_buckets(self, asked: CurvesQuery, buckets: CommonBuckets) -> CurvesInBuckets:
        """Each owner's mean in each bucket, a row for each owner, and the extremes of all points of all owners there.

        Iteration −2³¹ is left out, and so are points outside the buckets. Curves are smoothed before, if that is asked.

        `answers.will_read` counts the numbers before they are made.
        """

    async def curve_neighbours(self, asked: CurvesQuery, buckets: CommonBuckets, *, before: bool) -> Neighbours:
        """The nearest bucket of each owner before (or behind) all these buckets that has a finite value.

        It is as wide as they are. Iteration −2³¹ is left out.
        """

    async def scalar_points(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints:
        """A page of points in (iter, metric, variant) order. A `whole` page never ends inside an iteration."""

    async def earliest_points(self, series: SeriesQuery, limit: int, after: int | None = None) -> ScalarPoints:
        """The first `limit` points beyond timestamp `after`, and all others that share the last one's timestamp.

        They are in (timestamp, iter, metric, variant) order.
        """

    async def last_values(self, series: SeriesQuery, n: int) -> dict[tuple[str, str], list[float]]:
        """The last `n` values by iteration of each series, oldest first."""

    async def worker_spans(self, series: SeriesQuery) -> list[WorkerSpan]:
        """How many points each worker reported of each series, and when, sorted; times beyond ±2⁵³ may be rounded."""

    async def worker_means(self, series: SeriesQuery, grid: Grid) -> list[WorkerMeans]:
        """The means of the points that each worker reported of each series in each step of the grid.

        They are sorted by metric, variant and worker. Workers without a finite value in the grid are left out.
        """

    # logs

    async def log_lines(
        self, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None = None
    ) -> list[LogLine]:
        """A page of lines in (timestamp, sequence) order, of these workers (None: all).

        A `whole` page has all lines of its last timestamp. If they are too large for it, it ends before that timestamp.
        If all its lines have one timestamp, it may have TIMESTAMP_BYTES.
        """

    async def log_count(self, series: SeriesQuery) -> int:
        """How many lines there are, exactly."""

    async def log_page(self, series: SeriesQuery, page: PageQuery[LogPosition]) -> tuple[list[LogLine], int]:
        """What `log_lines` and `log_count` answer. One call takes less time than two."""

    async def log_numbered(self, owner: Owner, numbers: Sequence[int]) -> tuple[list[LogLine], int]:
        """The lines with these numbers, and how many lines there are.

        Numbers are ascending, each once. The oldest line has number 0. Lines that come late change the numbers behind
        them. Numbers beyond the last line are left out, and so are those behind the line that brings the page to
        PAGE_BYTES. For example, for the numbers 5, 7 and 900 of a log of 100 lines, two lines and 100.
        """

    async def log_number(self, owner: Owner, position: LogPosition) -> int:
        """How many lines lie before the position: the number of the line that has it, if there is one."""

    async def log_hits(self, owner: Owner, wanted: LineFilter, after: LogPosition | None) -> LogHits:
        """Search the next part of the log behind `after` (None: from its beginning), for some milliseconds."""

    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        """How much each worker logged, exactly; times beyond ±2⁵³ may be rounded."""

    # vectors, plots and debug images

    async def sample_series(self, series: SeriesQuery) -> list[SampleSeries]:
        """The number of samples of each series, and their ends, sorted by metric and variant."""

    async def samples(
        self, series: SeriesQuery, page: PageQuery[SamplePosition], iterations: Range = EVERYWHERE
    ) -> list[Sample]:
        """A page of the samples of these iterations in (iter, metric, variant, key) order; it cannot be `whole`."""

    async def latest_samples(
        self, series: SeriesQuery, iterations: int, after: SamplePosition | None = None
    ) -> list[Sample]:
        """A page of the samples of each series' newest `iterations` iterations.

        They are in (metric, variant, newest iteration first, key) order. The page begins behind `after` in this order.
        """

    async def sample_iterations(self, series: SeriesQuery, page: PageQuery[int]) -> list[int]:
        """A page of the distinct iterations that have a sample."""

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        """How many events the owner has, exactly. Each identity counts once."""

    # copies

    def whole_points(self, series: SeriesQuery) -> AsyncIterator[Sequence[WholePoints]]:
        """All points of the series, in parts of some 100,000 points; a part has each series once at most.

        The points of a series come in the order of their iterations.
        """

    async def put_points(self, owner: Owner, some: Sequence[WholePoints]) -> None:
        """Keep points of series of the owner, as `whole_points` answers them, like a batch that `add` has just taken.

        They survive kill -9 once this returns. If it fails, some of them may be kept; putting all again completes it.
        """

    def whole_lines(self, owner: Owner) -> AsyncIterator[Lines]:
        """All log lines of the owner in their order, in parts of some megabytes; no part is empty."""

    async def put_lines(self, owner: Owner, lines: Lines) -> None:
        """Keep log lines of the owner at their positions; a line whose position is taken is passed over.

        Sequences count from 0. The owner's log has other lines only if they were put, too. They survive kill -9 once
        this returns. If it fails, some of them may be kept; putting all again completes it. Lines that are added later
        come behind those of their timestamp.
        """

    async def known_bodies(self, owner: Owner) -> Collection[bytes]:
        """The ids (`body_id`) of all bodies of log lines that add nothing if they are sent again, perhaps with others.

        A body of which only a part is kept is not among them.
        """

    async def know_bodies(self, owner: Owner, ids: Collection[bytes]) -> None:
        """Take no lines of these bodies if they are sent from now on, until the owner's lines are deleted."""

    # about the store itself

    async def usage(self, company: str) -> Usage:
        """How much is kept of each owner of a company. It takes long if they are many; EventStoreBusy if too long.

        Numbers of events and series may be estimates (`Usage.estimated`). An event that is to replace another one may
        count beside it until it is merged.
        """

    def gauges(self) -> Mapping[str, float]:
        """Numbers about the store as of now, by name, for monitoring; it may have none."""

    # changes

    async def changes(self, query: ChangesQuery) -> Changes:
        """What changed of the owners since a cursor, which any server of the store may have made, at any time.

        All events that were added or replaced are in the answer, perhaps with others. Reads after it see them. A cursor
        that the store does not understand is answered as if everything had changed.
        """

    def watch(self, query: ChangesQuery) -> AsyncGenerator[Changes, None]:
        """The changes since the query's cursor at once, even if there are none; then further ones when there are some.

        Each `Changes` follows the one before. Changes that come while the reader does something else come together. The
        reader closes the generator (`contextlib.aclosing`). Raises EventStoreError if the store is closed.
        """

    # recovery

    def owners_to_restate(self, *, of_all: bool = False) -> AsyncIterator[Owner]:
        """Owners whose events may have arrived after their document's last_metrics were last written.

        Of several servers, each writes the documents of those whose events it took. So only the owners of servers that
        died are returned; with `of_all`, those of all servers, for a caller who knows that no server runs.
        """

    async def restated(self, owners: Collection[Owner]) -> None:
        """Note that the documents of these owners show all their events so far.

        That covers events since the store was opened, and owners that `owners_to_restate` has returned since. Other
        owners, left by a server that died, are still returned later: a caller who does not know them cannot have
        written their documents.
        """


class EventStoreMoment(EventStore, Protocol):
    """The events of an engine as they are at one moment, to be read while servers write to the engine.

    From `open` on, `owners_to_restate` returns all owners of whom something may have come that their documents did not
    show when the store was opened. So documents are read between `open` and `begin`.
    """

    async def begin(self) -> None:
        """Begin the moment: the store shows what was acknowledged before, whatever servers do from now on."""

    @property
    def place(self) -> Cursor:
        """A place just before the moment, which JSON can have."""

    async def changed_since(self, place: Cursor) -> Collection[Owner]:
        """Owners of whom events were added or replaced since an earlier moment with this place, perhaps with others.

        Of others, events may have been deleted: then they have fewer of a type.
        """
