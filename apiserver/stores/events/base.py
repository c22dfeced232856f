"""The EventStore protocol: what every engine of events promises.

The contract suite (`tests/contract/`) runs against each engine. Engines answer in columns and positions;
rules about intervals, pages and answers live above, in `aggregation/`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from apiserver.events.aggregates import Buckets
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
from apiserver.events.queries import EVERYWHERE, BucketQuery, Grid, PageQuery, Range, SeriesQuery

#: A page of samples or log lines ends with the event with which it has so many bytes, however few events these are.
PAGE_BYTES = 8 * 2**20

#: Lines of one timestamp that are to be on one page are cut when they have so many bytes.
TIMESTAMP_BYTES = 64 * 2**20

#: Bytes that an event takes beside its text, about.
EVENT_BYTES = 256

Event = TypeVar("Event", Sample, LogLine)


def bytes_of(event: Sample | LogLine) -> int:
    """Bytes of memory that an event takes, about."""
    if isinstance(event, LogLine):
        return EVENT_BYTES + len(event.message) + len(event.extra or b"")
    return EVENT_BYTES + len(event.document)


def bytes_of_all(page: Sequence[Sample] | Sequence[LogLine]) -> int:
    """Bytes of memory that events, all of them lines or all samples, take together."""
    return sum(map(bytes_of, page))


def page_of(events: Iterable[Event], most: int | None = None) -> list[Event]:
    """The first of the events, up to the one with which they have `most` bytes, or PAGE_BYTES; no more are made."""
    page, size = [], 0
    for event in events:
        page.append(event)
        size += bytes_of(event)
        if size >= (most or PAGE_BYTES):
            break
    return page


def whole_timestamps_of(lines: list[LogLine]) -> list[LogLine]:
    """The lines before the last timestamp."""
    end = len(lines)
    while end and lines[end - 1].position.timestamp == lines[-1].position.timestamp:
        end -= 1
    return lines[:end]


def may_go_on(page: Sequence[Sample] | Sequence[LogLine], limit: int) -> bool:
    """Whether there may be more behind a page of up to `limit` events: it has so many, or PAGE_BYTES."""
    return len(page) >= limit or bytes_of_all(page) >= PAGE_BYTES


class EventStoreError(Exception):
    """An engine could not do what was asked; nothing that was acknowledged is affected."""


class EventStoreBusy(EventStoreError):
    """The engine is behind or out of room for now; the caller may try again after `retry_after` seconds."""

    def __init__(
        self, reason: str, *, retry_after: int = 1, overloaded: bool = True, may_be_kept: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.overloaded = overloaded
        """True: too much is asked (429). False: the engine itself is unavailable, such as a full disk (503)."""
        self.may_be_kept = may_be_kept
        """True: the engine may have kept some of what was to be added; adding it again completes it."""


class EventStore(Protocol):
    """Events of all companies, by owner.

    Reads see every batch whose `add` has returned. All methods raise EventStoreBusy when they cannot serve now. Unknown
    owners and series are simply empty. A `limit`, and a number of values or iterations, is at least 1.

    What is read is asked for by queries (`events/queries.py`). Each read is of series of the type that it names.

    Samples and log lines may be large: where a method says "a page", that ends with the event with which it has
    PAGE_BYTES, too, and `may_go_on` tells whether there may be more behind it.
    """

    @property
    def reads_in_parallel(self) -> bool:
        """Whether several reads at once take less time than one after another."""

    async def open(self) -> None:
        """Take the store into use; raise EventStoreError naming the reason when that is not possible."""

    async def close(self) -> None:
        """Finish what is under way and let go of every resource; a second call does nothing."""

    async def check(self) -> None:
        """Raise EventStoreError unless events can be kept and read; never waits for what else is under way."""

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        """Keep the batch: it survives kill -9 once this returns. Adding it again changes nothing.

        Returns how many events the engine refused, by reason: one that it cannot keep costs itself only. Nothing is
        kept when this raises EventStoreBusy, unless that says `may_be_kept`.
        """

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        """Delete the owners' events (of `types`, or all); return how many there were."""

    async def delete_logs(self, series: SeriesQuery, before: int | None, exclude: Selection = ()) -> int:
        """Delete log lines of the series older than `before` (epoch ms; None: all), but for those that are excluded."""

    def owners(self) -> AsyncIterator[Owner]:
        """Every owner that has events, of all companies, once and in any order; some may have none any more."""

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        """Every series of the owner, sorted; none is ever left out, whatever their number."""

    # scalars

    async def scalar_stats(self, series: SeriesQuery) -> list[ScalarStats]:
        """Stats of each series, sorted by metric and variant."""

    async def scalar_buckets(self, series: SeriesQuery, buckets: BucketQuery) -> list[Buckets]:
        """The buckets of each series, sorted by metric and variant; iteration −2³¹ is left out.

        Series without a point in the range have no buckets, series that are but a single value are not in the answer.
        On the iteration axis an engine may widen the buckets somewhat, to a multiple of its own block, and answer from
        aggregates; it never makes them narrower. Counts always add up to the points. The first bucket's x is −2⁶³
        where its start lies before that.

        `answers.will_read` is told of the size of buckets before all of them are made.
        """

    async def scalar_points(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints:
        """A page of points in (iter, metric, variant) order. A `whole` one never ends inside an iteration."""

    async def earliest_points(self, series: SeriesQuery, limit: int, after: int | None = None) -> ScalarPoints:
        """The first `limit` points beyond timestamp `after`, and all others that share the last one's timestamp.

        They are in (timestamp, iter, metric, variant) order.
        """

    async def last_values(self, series: SeriesQuery, n: int) -> dict[tuple[str, str], list[float]]:
        """The last `n` values by iteration of each series, oldest first."""

    async def worker_spans(self, series: SeriesQuery) -> list[WorkerSpan]:
        """What each worker reported of each series, sorted; times beyond ±2⁵³ may be rounded."""

    async def worker_means(self, series: SeriesQuery, grid: Grid) -> list[WorkerMeans]:
        """Means of what each worker reported of each series in each step.

        They are sorted by metric, variant and worker; those without a finite value in the grid are not in the answer.
        """

    # logs

    async def log_lines(
        self, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None = None
    ) -> list[LogLine]:
        """A page of lines in (timestamp, sequence) order; of these workers, unless None.

        Lines that share the last timestamp of a `whole` page are all in it: when it is large, it ends before that
        timestamp. If it has no other, it goes on up to TIMESTAMP_BYTES.
        """

    async def log_count(self, series: SeriesQuery) -> int:
        """How many lines there are, exactly."""

    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        """How much each worker logged, exactly; times beyond ±2⁵³ may be rounded."""

    # vectors, plots and debug images

    async def sample_series(self, series: SeriesQuery) -> list[SampleSeries]:
        """What is known of each series, sorted by metric and variant."""

    async def samples(
        self, series: SeriesQuery, page: PageQuery[SamplePosition], iterations: Range = EVERYWHERE
    ) -> list[Sample]:
        """A page of the samples of these iterations, by (iter, metric, variant, key). It is never `whole`."""

    async def latest_samples(
        self, series: SeriesQuery, iterations: int, after: SamplePosition | None = None
    ) -> list[Sample]:
        """A page of the samples of each series' newest `iterations` iterations.

        They are in (metric, variant, newest iteration first, key) order, and only those behind `after` in it.
        """

    async def sample_iterations(self, series: SeriesQuery, page: PageQuery[int]) -> list[int]:
        """A page of the distinct iterations that hold a sample."""

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        """How many events the owner has, exactly, each identity once."""

    # recovery

    def owners_to_restate(self) -> AsyncIterator[Owner]:
        """Owners whose events may have arrived after their document's last_metrics were last written."""

    async def restated(self, owners: Collection[Owner]) -> None:
        """Say that the documents of these owners are up to date with the events so far.

        That is believed of events that came since the store was opened, and of owners that `owners_to_restate` told of
        since. What was left before, by a server that died, stays to be told: who was not told of it cannot have
        written it.
        """
