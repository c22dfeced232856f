"""Plots and debug images: the newest of each series, and walks over iterations in both directions.

A walk goes over the iterations of one owner that hold a selected sample. Its position is the range of iterations that
the reader has seen last; "earlier" goes on below it, "later" above it, so that new iterations show up by themselves.
Images whose files were overwritten by later ones are not there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from apiserver import answers
from apiserver.aggregation import images
from apiserver.events.model import EventType, Sample, SamplePosition
from apiserver.events.queries import EVERYWHERE, PageQuery, Range, SeriesQuery
from apiserver.stores.events.base import EventStore, bytes_of_all, may_go_on

#: How many samples are read at once.
PAGE = 10_000
#: More than any page has.
MOST = 2**62

#: Reads the page of samples behind a position.
Read = Callable[[SamplePosition | None], Awaitable[list[Sample]]]

#: (least, greatest) iteration of the page a reader saw last.
Seen = tuple[int, int]


@dataclass(slots=True)
class WalkPage:
    """The iterations of one owner with their samples, newest first, and the position behind them."""

    iterations: list[tuple[int, Sequence[Sample]]]
    seen: Seen | None


async def latest_of(store: EventStore, series: SeriesQuery, iterations: int, *, of_each_series: bool) -> list[Sample]:
    """The samples of the newest `iterations` iterations: those of each series, or those of all series together."""
    if of_each_series:
        return await all_of(lambda after: store.latest_samples(series, iterations, after))
    found = await store.sample_iterations(series, PageQuery(iterations, descending=True))
    return await all_between(store, series, Range(min(found), max(found))) if found else []


async def walk(
    store: EventStore, series: SeriesQuery, *, iterations: int, seen: Seen | None, earlier: bool
) -> WalkPage:
    """The next iterations of a walk. Past the end the page is empty and the position stays."""
    read = images.by_iteration if series.type is EventType.IMAGE else _by_iteration
    beyond = None if seen is None else seen[0 if earlier else 1]
    found = await read(store, series, PageQuery(iterations, beyond, descending=earlier or seen is None))
    if not found:
        return WalkPage([], seen)
    return WalkPage(sorted(found.items(), reverse=True), (min(found), max(found)))


async def _by_iteration(store: EventStore, series: SeriesQuery, page: PageQuery[int]) -> dict[int, list[Sample]]:
    """The samples of a page of iterations."""
    found = await store.sample_iterations(series, page)
    by_iteration: dict[int, list[Sample]] = {iter: [] for iter in found}
    if found:
        for sample in await all_between(store, series, Range(min(found), max(found))):
            by_iteration[sample.iter].append(sample)
    return by_iteration


async def all_between(store: EventStore, series: SeriesQuery, iterations: Range = EVERYWHERE) -> list[Sample]:
    """All samples of these iterations; they are held for the answer."""
    return await all_of(lambda after: store.samples(series, PageQuery(PAGE, after), iterations), PAGE)


async def all_of(read: Read, limit: int = MOST) -> list[Sample]:
    """The samples of all `pages`; they are held for the answer."""
    found: list[Sample] = []
    async for page in pages(read, limit):
        answers.hold(bytes_of_all(page))
        found += page
    return found


async def pages(read: Read, limit: int = MOST) -> AsyncIterator[list[Sample]]:
    """All pages, of up to `limit` samples, that `read` gives behind a position."""
    after: SamplePosition | None = None
    while True:
        page = await read(after)
        yield page
        if not may_go_on(page, limit):
            return
        after = page[-1].position
