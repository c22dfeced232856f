"""Walks from one debug image to the next one, and from the plots of a metric at one iteration to the next plots.

The order is (iteration, metric, variant). For example, there are images at (1, a), (1, b) and (2, a), with the metrics
a and b. The next one after (1, a) is (1, b). With `next_iteration`, it is (2, a), and also if the walk stays with a.

Files of images may have been overwritten (see `images.py`). For each url of a series, the last iteration that has it is
the one whose image the file shows. The least of these iterations is the first that a walk shows. For example, a series
has the iterations 1 to 4 in the files a, b, c, a. The last iterations are 4 for a, 2 for b, and 3 for c, so the walk
shows the iterations 2 to 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from apiserver.events.model import LAST_NAME, EventType, MetricSelection, Owner, Sample, SamplePosition, Selection
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.reading import samples
from apiserver.reading.images import url_of
from apiserver.stores.events.protocols.samples import SampleStore

#: Images that are read at once while the next one is looked for.
PAGE = 50


class Place(NamedTuple):
    """The image or plots that a walk shows; `iter` is None if it shows none."""

    iter: int | None
    metric: str
    variant: str = ""
    key: str = ""
    current_metric: bool = True
    """Whether the walk stays with this metric."""

    @property
    def selection(self) -> Selection:
        """The series that the walk goes over."""
        return [MetricSelection(self.metric)] if self.current_metric else ()


@dataclass(slots=True)
class ShownSamples:
    """An image, or the plots of a metric at one iteration, and the least and greatest iteration that can be shown."""

    place: Place
    samples: Sequence[Sample]
    min_iteration: int
    max_iteration: int


async def image_at(store: SampleStore, owner: Owner, place: Place) -> ShownSamples | None:
    """The image of a series at an iteration, or else the last one before. The newest, if the iteration is None."""
    images = _Images(store, owner)
    series = images.series(MetricSelection(place.metric, (place.variant,)))
    found = await store.samples(series, PageQuery(1, descending=True), Range.of(None, place.iter))
    return await images.shown(place, found[0]) if found else None


async def next_image(
    store: SampleStore, owner: Owner, place: Place, *, earlier: bool, next_iteration: bool, at_once: int = PAGE
) -> ShownSamples | None:
    """The image behind or (`earlier`) before the one at a place. `next_iteration`: skip the rest of its iteration."""
    if place.iter is None:
        return None
    images, after = _Images(store, owner), _beyond(place, earlier, next_iteration)
    while page := await store.samples(images.series(*place.selection), PageQuery(at_once, after, earlier)):
        for sample in page:
            if shown := await images.shown(place, sample):
                return shown
            after = sample.position
    return None


async def plots_at(store: SampleStore, owner: Owner, place: Place) -> ShownSamples | None:
    """The plots of a metric at an iteration, or else the last ones before. The newest, if the iteration is None."""
    series = SeriesQuery(owner, EventType.PLOT, [MetricSelection(place.metric)])
    found = await store.samples(series, PageQuery(1, descending=True), Range.of(None, place.iter))
    return await _plots_with(store, owner, place, found)


async def next_plots(
    store: SampleStore, owner: Owner, place: Place, *, earlier: bool, next_iteration: bool
) -> ShownSamples | None:
    """The plots of the next metric of the same iteration, or else of the first metric of the next iteration.

    `earlier`: go the other way. `next_iteration`: skip the rest of this iteration.
    """
    if place.iter is None:
        return None
    edge = "" if earlier else LAST_NAME
    whole_metric = place._replace(variant=edge, key=edge)
    after = _beyond(whole_metric, earlier, next_iteration)
    found = await store.samples(SeriesQuery(owner, EventType.PLOT, place.selection), PageQuery(1, after, earlier))
    return await _plots_with(store, owner, place, found)


def _beyond(place: Place, earlier: bool, next_iteration: bool) -> SamplePosition:
    """The position behind the sample at a place, or (`next_iteration`) behind its whole iteration."""
    assert place.iter is not None
    edge = "" if earlier else LAST_NAME
    return SamplePosition(place.iter, *((edge,) * 3 if next_iteration else (place.metric, place.variant, place.key)))


async def _plots_with(store: SampleStore, owner: Owner, place: Place, nearest: Sequence[Sample]) -> ShownSamples | None:
    """All plots that have the metric and iteration of the first one of `nearest`, if there is one."""
    if not nearest:
        return None
    iter, metric = nearest[0].iter, nearest[0].metric
    series = SeriesQuery(owner, EventType.PLOT, [MetricSelection(metric)])
    all_stats = await store.sample_series(series)
    if not all_stats:  # they were deleted meanwhile
        return None
    plots = await samples.all_between(store, series, Range(iter, iter))
    least, greatest = min(stats.min_iter for stats in all_stats), max(stats.max_iter for stats in all_stats)
    return ShownSamples(Place(iter, metric, current_metric=place.current_metric), plots, least, greatest)


class _Images:
    """The images of one owner, and the range of iterations that each series can show."""

    def __init__(self, store: SampleStore, owner: Owner) -> None:
        self._store = store
        self._owner = owner
        self._ranges: dict[tuple[str, str], tuple[int, int]] = {}

    async def shown(self, place: Place, sample: Sample) -> ShownSamples | None:
        """The image, unless its iteration is below those that its series can show."""
        least, greatest = await self._range(sample)
        if sample.iter < least:
            return None
        found = Place(sample.iter, sample.metric, sample.variant, sample.key, place.current_metric)
        return ShownSamples(found, [sample], least, greatest)

    async def _range(self, image: Sample) -> tuple[int, int]:
        """The least and the greatest iteration that the image's series can show."""
        name = (image.metric, image.variant)
        if name not in self._ranges:
            series = self.series(MetricSelection(image.metric, (image.variant,)))
            last: dict[str | int, int] = {url_of(image) or image.iter: image.iter}
            read = partial(self._store.samples, series)
            async for page in samples.pages(lambda after: read(PageQuery(samples.PAGE, after)), samples.PAGE):
                last |= {url_of(one) or one.iter: one.iter for one in page}
            self._ranges[name] = (min(last.values()), max(last.values()))
        return self._ranges[name]

    def series(self, *selection: MetricSelection) -> SeriesQuery:
        """Some series of images of the owner; all without a selection."""
        return SeriesQuery(self._owner, EventType.IMAGE, selection)
