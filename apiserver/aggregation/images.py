"""Debug images whose files are still their own: a file that was uploaded again shows the later image."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from apiserver import answers
from apiserver.events.model import Sample, SamplePosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStore, bytes_of, may_go_on

#: How many images are read at once: few at first, then more, as to begin a page costs something for each series.
FIRST_PAGE = 500
LARGEST_PAGE = 10_000


class _Url(msgspec.Struct):
    url: str = ""


_url = msgspec.json.Decoder(_Url)


def url_of(image: Sample) -> str:
    """Where the image's file lies; empty when it has none."""
    return _url.decode(image.document).url


async def by_iteration(store: EventStore, series: SeriesQuery, page: PageQuery[int]) -> dict[int, list[Sample]]:
    """The images of a page of iterations, but those that a later one overwrote.

    All that is newer has to be looked at too, as it tells which files are taken.
    """
    taken: dict[tuple[str, str, str], int] = {}
    found: dict[int, list[Sample]] = {}
    beyond, descending, iterations = page.after, page.descending, page.limit
    async for image in _newest_first(store, series):
        ahead = beyond is None or (image.iter < beyond if descending else image.iter > beyond)
        is_full = len(found) == iterations and image.iter not in found
        if is_full if descending else not ahead:
            break
        url = url_of(image)
        is_own = not url or taken.setdefault((image.metric, image.variant, url), image.iter) == image.iter
        if ahead and is_own:
            answers.hold(bytes_of(image))
            found.setdefault(image.iter, []).append(image)
    nearest = sorted(found, reverse=descending)[:iterations]
    return {iter: found[iter][::-1] for iter in nearest}


async def _newest_first(store: EventStore, series: SeriesQuery) -> AsyncIterator[Sample]:
    after: SamplePosition | None = None
    limit = FIRST_PAGE
    while page := await store.samples(series, PageQuery(limit, after, descending=True)):
        for image in page:
            yield image
        if not may_go_on(page, limit):
            return
        after = image.position
        limit = min(4 * limit, LARGEST_PAGE)
