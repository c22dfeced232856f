"""Reads debug images, except those whose files were overwritten: such a file shows a later image.

The SDK keeps some files for each series and uses their names in turn. For example, a series has the files a and b, and
the images of the iterations 1 to 4 were uploaded to a, b, a, b. Then both files show later images than those of the
iterations 1 and 2, so only 3 and 4 are answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from apiserver.common import answers
from apiserver.events.model import Sample, SamplePosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.samples import SampleStore
from apiserver.stores.events.sizes import bytes_of, may_go_on

#: How many images are read at once: few at first, as a reader may need no more, then four times as many each time.
#: Each read costs something for each series.
FIRST_PAGE = 500
LARGEST_PAGE = 10_000


class _Url(msgspec.Struct):
    url: str = ""


_url = msgspec.json.Decoder(_Url)


def url_of(image: Sample) -> str:
    """The address of the image's file; empty when it has none."""
    return _url.decode(image.document).url


async def by_iteration(
    store: SampleStore, series: SeriesQuery, page: PageQuery[int], first: int = FIRST_PAGE
) -> dict[int, list[Sample]]:
    """The images of a page of iterations, without images whose files were overwritten.

    All newer images are read as well, because they say which files were overwritten: `first` in the first page.
    """
    newest: dict[tuple[str, str, str], int] = {}
    images: dict[int, list[Sample]] = {}
    beyond, descending, iterations = page.after, page.descending, page.limit
    async for image in _newest_first(store, series, first):
        ahead = beyond is None or (image.iter < beyond if descending else image.iter > beyond)
        is_full = len(images) == iterations and image.iter not in images
        if is_full if descending else not ahead:
            break
        url = url_of(image)
        is_own = not url or newest.setdefault((image.metric, image.variant, url), image.iter) == image.iter
        if ahead and is_own:
            answers.hold(bytes_of(image))
            images.setdefault(image.iter, []).append(image)
    nearest = sorted(images, reverse=descending)[:iterations]
    return {iter: images[iter][::-1] for iter in nearest}


async def _newest_first(store: SampleStore, series: SeriesQuery, limit: int) -> AsyncIterator[Sample]:
    after: SamplePosition | None = None
    while page := await store.samples(series, PageQuery(limit, after, descending=True)):
        for image in page:
            yield image
        if not may_go_on(page, limit):
            return
        after = image.position
        limit = min(4 * limit, LARGEST_PAGE)
