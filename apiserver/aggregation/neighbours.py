"""Samples one by one: from a debug image to the next one, and from a metric's plots of one iteration to the next.

The order is (iteration, metric, variant). A walk stands at a place, and always looks at what is stored at that time.
A file that was uploaded again shows the later image, so images count from the first iteration of their series on whose
files are all still their own: the least among the last iterations of its urls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from apiserver.aggregation import samples
from apiserver.aggregation.images import url_of
from apiserver.events.model import LAST_NAME, EventType, MetricSelection, Owner, Sample, SamplePosition, Selection
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.stores.events.base import EventStore

#: How many candidates are read at once.
PAGE = 50


class Place(NamedTuple):
    """The sample that a walk shows; `iter` is None when it shows none."""

    iter: int | None
    metric: str
    variant: str = ""
    key: str = ""
    current_metric: bool = True
    """Whether the walk keeps to this metric."""

    @property
    def selection(self) -> Selection:
        """What the walk goes over."""
        return [MetricSelection(self.metric)] if self.current_metric else ()


@dataclass(slots=True)
class Found:
    """An image, or the plots of a metric at one iteration, and the range of iterations that there are to show."""

    place: Place
    samples: Sequence[Sample]
    min_iteration: int
    max_iteration: int


async def image_at(store: EventStore, owner: Owner, place: Place) -> Found | None:
    """The image of a series at an iteration, or the last one before; iteration None: the newest."""
    return await _Images(store, owner).last(place)


async def next_image(
    store: EventStore, owner: Owner, place: Place, *, earlier: bool, next_iteration: bool
) -> Found | None:
    """The neighbour of an image: of the same iteration if there is one and `next_iteration` is not asked for."""
    if place.iter is None:
        return None
    return await _Images(store, owner).neighbour(place, _beyond(place, earlier, next_iteration), earlier)


async def plots_at(store: EventStore, owner: Owner, place: Place) -> Found | None:
    """The plots of a metric at an iteration, or the last ones before; iteration None: the newest."""
    series = SeriesQuery(owner, EventType.PLOT, [MetricSelection(place.metric)])
    found = await store.samples(series, PageQuery(1, descending=True), Range.of(None, place.iter))
    return await _plots_with(store, owner, place, found)


async def next_plots(
    store: EventStore, owner: Owner, place: Place, *, earlier: bool, next_iteration: bool
) -> Found | None:
    """The plots of the neighbour metric in the same iteration, or of the next iteration."""
    if place.iter is None:
        return None
    edge = "" if earlier else LAST_NAME
    whole_metric = place._replace(variant=edge, key=edge)
    after = _beyond(whole_metric, earlier, next_iteration)
    found = await store.samples(SeriesQuery(owner, EventType.PLOT, place.selection), PageQuery(1, after, earlier))
    return await _plots_with(store, owner, place, found)


def _beyond(place: Place, earlier: bool, next_iteration: bool) -> SamplePosition:
    """Where to look from: behind the sample itself, or behind its whole iteration."""
    assert place.iter is not None
    edge = "" if earlier else LAST_NAME
    return SamplePosition(place.iter, *((edge,) * 3 if next_iteration else (place.metric, place.variant, place.key)))


async def _plots_with(store: EventStore, owner: Owner, place: Place, found: Sequence[Sample]) -> Found | None:
    """All plots of the metric and iteration of the one that was found, if one was."""
    if not found:
        return None
    iter, metric = found[0].iter, found[0].metric
    series = SeriesQuery(owner, EventType.PLOT, [MetricSelection(metric)])
    known = await store.sample_series(series)
    if not known:  # deleted meanwhile
        return None
    plots = await samples.all_between(store, series, Range(iter, iter))
    least, greatest = min(one.min_iter for one in known), max(one.max_iter for one in known)
    return Found(Place(iter, metric, current_metric=place.current_metric), plots, least, greatest)


class _Images:
    """The images of one owner, and which iterations of each series still have their own files."""

    def __init__(self, store: EventStore, owner: Owner) -> None:
        self._store = store
        self._owner = owner
        self._ranges: dict[tuple[str, str], tuple[int, int]] = {}

    async def last(self, place: Place) -> Found | None:
        series = self._series(MetricSelection(place.metric, (place.variant,)))
        found = await self._store.samples(series, PageQuery(1, descending=True), Range.of(None, place.iter))
        return await self._shown(place, found[0]) if found else None

    async def neighbour(self, place: Place, after: SamplePosition, earlier: bool) -> Found | None:
        series = self._series(*place.selection)
        while page := await self._store.samples(series, PageQuery(PAGE, after, earlier)):
            for sample in page:
                if shown := await self._shown(place, sample):
                    return shown
                after = sample.position
        return None

    async def _shown(self, place: Place, sample: Sample) -> Found | None:
        """The image, unless later ones overwrote its file."""
        least, greatest = await self._range(sample)
        if sample.iter < least:
            return None
        found = Place(sample.iter, sample.metric, sample.variant, sample.key, place.current_metric)
        return Found(found, [sample], least, greatest)

    async def _range(self, image: Sample) -> tuple[int, int]:
        """The iterations that the image's series has to show."""
        name = (image.metric, image.variant)
        if name not in self._ranges:
            series = self._series(MetricSelection(image.metric, (image.variant,)))
            last: dict[str | int, int] = {url_of(image) or image.iter: image.iter}
            read = partial(self._store.samples, series)
            async for page in samples.pages(lambda after: read(PageQuery(samples.PAGE, after)), samples.PAGE):
                last |= {url_of(one) or one.iter: one.iter for one in page}
            self._ranges[name] = (min(last.values()), max(last.values()))
        return self._ranges[name]

    def _series(self, *selection: MetricSelection) -> SeriesQuery:
        return SeriesQuery(self._owner, EventType.IMAGE, selection)
