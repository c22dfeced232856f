"""Reads plots and debug images: the newest of each series, and walks over iterations in both directions.

A walk goes over the iterations of one owner that have a sample of the selected series. Its position is the least and
the greatest iteration of the page that the reader saw last. Images whose files were overwritten are left out.

For example, there are plots at the iterations 10, 20, 30 and 40. The first page of two has 40 and 30, and its position
is (30, 40). Earlier ones are those below 30, so the next page has 20 and 10. Later ones are those above 40. There are
none yet, so the page is empty and the position stays (30, 40). As soon as 50 is reported, the same request answers it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from apiserver.common import answers
from apiserver.events.model import EventType, Sample, SamplePosition
from apiserver.events.queries import EVERYWHERE, PageQuery, Range, SeriesQuery
from apiserver.reading import images
from apiserver.stores.events.protocols.samples import SampleStore
from apiserver.stores.events.sizes import bytes_of_all, may_go_on

#: Samples that are read at once.
PAGE = 10_000
#: A limit that no page reaches.
MOST = 2**62

#: Reads the page of samples behind a position.
Read = Callable[[SamplePosition | None], Awaitable[list[Sample]]]

#: The least and the greatest iteration of the page that a reader saw last.
Seen = tuple[int, int]


@dataclass(slots=True)
class WalkPage:
    """Some iterations of one owner with their samples, newest first, and the position of the walk after them."""

    iterations: list[tuple[int, Sequence[Sample]]]
    seen: Seen | None


async def latest_of(store: SampleStore, series: SeriesQuery, iterations: int, *, of_each_series: bool) -> list[Sample]:
    """The samples of the newest `iterations` iterations, counted for each series by itself or for all together."""
    if of_each_series:
        return await all_of(lambda after: store.latest_samples(series, iterations, after))
    found = await store.sample_iterations(series, PageQuery(iterations, descending=True))
    return await all_between(store, series, Range(min(found), max(found))) if found else []


async def walk(
    store: SampleStore,
    series: SeriesQuery,
    *,
    iterations: int,
    seen: Seen | None,
    earlier: bool,
    first_images: int = images.FIRST_PAGE,
) -> WalkPage:
    """The next `iterations` iterations of a walk. At its end the page is empty, and the position stays.

    Of images, `first_images` are read at once, then more.
    """
    beyond = None if seen is None else seen[0 if earlier else 1]
    page = PageQuery(iterations, beyond, descending=earlier or seen is None)
    if series.type is EventType.IMAGE:
        by_iteration = await images.by_iteration(store, series, page, first_images)
    else:
        by_iteration = await _by_iteration(store, series, page)
    if not by_iteration:
        return WalkPage([], seen)
    return WalkPage(sorted(by_iteration.items(), reverse=True), (min(by_iteration), max(by_iteration)))


async def _by_iteration(store: SampleStore, series: SeriesQuery, page: PageQuery[int]) -> dict[int, list[Sample]]:
    """The samples of a page of iterations."""
    found = await store.sample_iterations(series, page)
    by_iteration: dict[int, list[Sample]] = {iter: [] for iter in found}
    if found:
        for sample in await all_between(store, series, Range(min(found), max(found))):
            by_iteration[sample.iter].append(sample)
    return by_iteration


async def all_between(store: SampleStore, series: SeriesQuery, iterations: Range = EVERYWHERE) -> list[Sample]:
    """All samples of the iterations in `iterations`. Their bytes count for the answer."""
    return await all_of(lambda after: store.samples(series, PageQuery(PAGE, after), iterations), PAGE)


async def all_of(read: Read, limit: int = MOST) -> list[Sample]:
    """The samples of all `pages`. Their bytes count for the answer."""
    samples: list[Sample] = []
    async for page in pages(read, limit):
        answers.hold(bytes_of_all(page))
        samples += page
    return samples


async def pages(read: Read, limit: int = MOST) -> AsyncIterator[list[Sample]]:
    """All pages that `read` gives, one after the other. A page has up to `limit` samples."""
    after: SamplePosition | None = None
    while True:
        page = await read(after)
        yield page
        if not may_go_on(page, limit):
            return
        after = page[-1].position
