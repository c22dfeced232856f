"""Raw points, page by page over iterations or times, single values among them. A page never splits a key value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver import answers
from apiserver.events.model import (
    LAST_NAME,
    BucketAxis,
    Float64Array,
    Int64Array,
    ScalarPoints,
    ScalarPosition,
)
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import EventStore

#: Bytes of memory that a point takes, about: in columns, and as it is answered.
_POINT_BYTES = 64

_ROW = np.dtype([("key", np.int64), ("variant", np.int64), ("value", np.float64)])
_Rows = npt.NDArray[Any]
_NO_ROWS: _Rows = np.empty(0, _ROW)


@dataclass(slots=True)
class RawPage:
    """By variant the keys and values of its points, ascending by key."""

    variants: dict[str, tuple[Int64Array, Float64Array]]
    returned: int
    last: int | None
    """The greatest key of the page; None when it is empty."""


class _Variants(dict[str, int]):
    """Numbers for variants, the same over several reads."""

    def rows(self, points: ScalarPoints, axis: BucketAxis) -> _Rows:
        numbers = np.array([self.setdefault(variant, len(self)) for _, variant in points.names], dtype=np.int64)
        rows: _Rows = np.empty(len(points.iters), _ROW)
        rows["key"] = points.iters if axis is BucketAxis.ITER else points.timestamps
        rows["variant"] = numbers[points.series]
        rows["value"] = points.values
        return rows


async def page(store: EventStore, series: SeriesQuery, axis: BucketAxis, asked: PageQuery[int]) -> RawPage:
    """A page of the points of one metric by key, and all others that share the last one's key."""
    if axis is BucketAxis.ITER:
        after = None if asked.after is None else ScalarPosition(asked.after, LAST_NAME, LAST_NAME)
        points = await store.scalar_points(series, PageQuery(asked.limit, after, whole=True))
    else:
        points = await store.earliest_points(series, asked.limit, asked.after)
    answers.hold(_POINT_BYTES * len(points.iters))
    variants = _Variants()
    rows = variants.rows(points, axis)
    return await off_loop(len(variants), lambda: _page(rows, variants))


def _page(rows: _Rows, variants: _Variants) -> RawPage:
    by_variant = np.argsort(rows["variant"], kind="stable")
    keys, values = rows["key"][by_variant], rows["value"][by_variant]
    ends = np.cumsum(np.bincount(rows["variant"], minlength=len(variants))).tolist()
    parts = {name: slice(ends[number - 1] if number else 0, ends[number]) for name, number in sorted(variants.items())}
    return RawPage(
        {name: (keys[part], values[part]) for name, part in parts.items() if part.start < part.stop},
        len(rows),
        int(rows["key"][-1]) if len(rows) else None,
    )


async def count(store: EventStore, series: SeriesQuery) -> int:
    """How many points all pages hold, exactly."""
    return sum(stats.count for stats in await store.scalar_stats(series))
