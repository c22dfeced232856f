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
    Owner,
    ScalarPoints,
    ScalarPosition,
    Selection,
)
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


async def page(
    store: EventStore, owner: Owner, selection: Selection, axis: BucketAxis, *, limit: int, beyond: int | None
) -> RawPage:
    """The next `limit` points of one metric with keys beyond `beyond`, and all others that share the last one's key."""
    variants = _Variants()
    walk = _by_iteration if axis is BucketAxis.ITER else _by_time
    rows = await walk(store, owner, selection, variants, limit, beyond)
    return await off_loop(len(variants), lambda: _page(rows, variants))


def _page(rows: _Rows, variants: _Variants) -> RawPage:
    by_variant = rows[np.argsort(rows["variant"], kind="stable")]
    keys, values = by_variant["key"].copy(), by_variant["value"].copy()
    ends = np.cumsum(np.bincount(rows["variant"], minlength=len(variants))).tolist()
    parts = {name: slice(ends[number - 1] if number else 0, ends[number]) for name, number in sorted(variants.items())}
    return RawPage(
        {name: (keys[part], values[part]) for name, part in parts.items() if part.start < part.stop},
        len(rows),
        int(rows["key"][-1]) if len(rows) else None,
    )


async def count(store: EventStore, owner: Owner, selection: Selection) -> int:
    """How many points all pages hold, exactly."""
    return sum(stats.count for stats in await store.scalar_stats([owner], selection))


async def _by_iteration(
    store: EventStore, owner: Owner, selection: Selection, variants: _Variants, limit: int, beyond: int | None
) -> _Rows:
    after = None if beyond is None else _behind(beyond)
    points = await store.scalar_points(owner, selection, after=after, limit=limit, whole_iterations=True)
    answers.hold(_POINT_BYTES * len(points.iters))
    return variants.rows(points, BucketAxis.ITER)


async def _by_time(
    store: EventStore, owner: Owner, selection: Selection, variants: _Variants, limit: int, beyond: int | None
) -> _Rows:
    points = await store.earliest_points(owner, selection, after=beyond, limit=limit)
    answers.hold(_POINT_BYTES * len(points.iters))
    return variants.rows(points, BucketAxis.TIMESTAMP)


def _behind(iteration: int) -> ScalarPosition:
    return ScalarPosition(iteration, LAST_NAME, LAST_NAME)
