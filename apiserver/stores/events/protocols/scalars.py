"""What an engine promises of scalars: points of curves, each at an iteration of a series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from apiserver.events.aggregates import Buckets, CurvesInBuckets, Neighbours
from apiserver.events.changes import Cursor
from apiserver.events.model import Owner, ScalarPoints, ScalarPosition, ScalarStats, WorkerMeans, WorkerSpan
from apiserver.events.queries import BucketQuery, CommonBuckets, CurvesQuery, Grid, PageQuery, SeriesQuery

#: Owners whose series are read at once. Other reads wait for no more than these.
OWNERS_AT_ONCE = 32


class ScalarStore(Protocol):
    """Reads, thins and deletes scalars. What holds for all methods is said at `EventStore`."""

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

    async def thin_scalars(
        self, series: SeriesQuery, points: int, checksums: Mapping[tuple[str, str], int] | None = None
    ) -> int:
        """Thin those of the series that have more points to at most so many, 12 or more; return how many are gone.

        `codec/thinning.py` says which points stay. Those that come meanwhile stay, too. If it fails, some series are
        thinned, or one of them in part. Thinning again completes it.

        `checksums` are of the points of each series, as the caller has read them (`codec/thinning.py`). A series that
        has another one by now, or none, stays as it is. So nothing goes that the caller has not read.
        """

    async def delete_scalars(self, owner: Owner, up_to: Cursor) -> int:
        """Delete the owner's scalars up to a cursor; return how many there were."""
