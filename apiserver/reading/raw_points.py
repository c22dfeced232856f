"""Raw points of one metric, page by page, over iterations or times. Single values are among them.

The key of a point is its iteration, or its timestamp. A page never ends between two points with the same key. For
example, `train` has the iterations 1, 2 and 3, and `val` has 2. A page of two points then has three, the points of the
iterations 1 and 2, and the next page begins after 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events.model import LAST_NAME, BucketAxis, Float64Array, Int64Array, ScalarPoints, ScalarPosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.scalars import ScalarStore

#: Bytes of memory that a point takes, about: in columns, and as it is answered.
_POINT_BYTES = 64


@dataclass(slots=True)
class RawPage:
    """The keys and values of each variant's points, in the order of the keys."""

    variants: dict[str, tuple[Int64Array, Float64Array]]
    returned: int
    last: int | None
    """The greatest key of the page; None when it is empty."""


async def page(store: ScalarStore, series: SeriesQuery, axis: BucketAxis, asked: PageQuery[int]) -> RawPage:
    """The next `limit` points of one metric, and all further points with the key of the last one."""
    if axis is BucketAxis.ITER:
        after = None if asked.after is None else ScalarPosition(asked.after, LAST_NAME, LAST_NAME)
        points = await store.scalar_points(series, PageQuery(asked.limit, after, whole=True))
    else:
        points = await store.earliest_points(series, asked.limit, asked.after)
    answers.hold(_POINT_BYTES * len(points.iters))
    keys = points.iters if axis is BucketAxis.ITER else points.timestamps
    return await off_loop(len(points.names), lambda: _page(points, keys))


def _page(points: ScalarPoints, keys: Int64Array) -> RawPage:
    order = np.argsort(points.series, kind="stable")
    sorted_keys, values = keys[order], points.values[order]
    ends = np.cumsum(np.bincount(points.series, minlength=len(points.names))).tolist()
    parts = sorted((name, start, end) for (_, name), start, end in zip(points.names, [0, *ends], ends, strict=False))
    return RawPage(
        {variant: (sorted_keys[start:end], values[start:end]) for variant, start, end in parts if start < end},
        len(keys),
        int(keys[-1]) if len(keys) else None,
    )


async def count(store: ScalarStore, series: SeriesQuery) -> int:
    """How many points all pages have together, exactly."""
    return sum(stats.count for stats in await store.scalar_stats(series))
