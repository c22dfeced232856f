"""What an engine promises of samples: vectors, plots and debug images, each kept as a whole."""

from __future__ import annotations

from typing import Protocol

from apiserver.events.changes import Cursor
from apiserver.events.model import Sample, SamplePosition, SampleSeries
from apiserver.events.queries import EVERYWHERE, PageQuery, Range, SeriesQuery


class SampleStore(Protocol):
    """Reads and deletes samples. What holds for all methods is said at `EventStore`."""

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
