"""Pages of points in (iteration, metric, variant) order, read window by window.

A window is a range of iterations that ends where a stretch ends, behind stretches with as many points as are missing.
If some of these points replace each other, there are fewer, and the next window is read, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.common.off_loop import off_loop
from apiserver.events.model import ScalarPoints, ScalarPosition
from apiserver.events.queries import EVERYWHERE, GREATEST, LEAST, PageQuery, Range
from apiserver.stores.events.blocks.loading import Loader, points_in
from apiserver.stores.events.blocks.stretches import Numbered, OfSeries, numbered
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import NO_POINTS, Points, Workers, concat, first_of, scalar_points, take


class _Rows(NamedTuple):
    """Points, and the number of the series of each."""

    points: Points
    series: npt.NDArray[np.int32]


def _range_of(page: PageQuery[ScalarPosition]) -> Range:
    """The iterations in which the page lies."""
    if page.after is None:
        return EVERYWHERE
    return Range(LEAST, page.after.iter) if page.descending else Range(page.after.iter, GREATEST)


async def page(loader: Loader, series: OfSeries, query: PageQuery[ScalarPosition]) -> ScalarPoints:
    """A page of the points of these series, which are sorted by name."""
    names, workers, rest = [*series], Workers(), _range_of(query)
    left = numbered(series.values())
    rows = _Rows(NO_POINTS, np.empty(0, np.int32))
    while len(rows.series) < query.limit and (left := [one for one in left if one.stretch.meets(rest)]):
        window, rest = _window(left, rest, query.limit - len(rows.series), descending=query.descending)
        inside = [one for one in left if one.stretch.meets(window)]
        more = _behind(await _read(loader, inside, window, workers), names, query)
        rows = _Rows(concat([rows.points, more.points]), np.concatenate([rows.series, more.series]))
    return scalar_points(*first_of(*rows, query), names, workers.names)


def _window(left: Sequence[Numbered], rest: Range, missing: int, *, descending: bool) -> tuple[Range, Range]:
    """A range of iterations at the beginning of `rest` with about so many points, and what remains of `rest` then."""
    in_order = sorted([one.stretch for one in left], key=lambda one: -one.first if descending else one.last)
    counts = accumulate(one.size for one in in_order)
    end = next((one for one, count in zip(in_order, counts, strict=True) if count >= missing), in_order[-1])
    if descending:
        return Range(end.first, rest.greatest), Range(rest.least, end.first - 1)
    return Range(rest.least, end.last), Range(end.last + 1, rest.greatest)


async def _read(loader: Loader, inside: Sequence[Numbered], window: Range, workers: Workers) -> _Rows:
    loaded = await loader.whole(one.stretch for one in inside)

    def rows() -> _Rows:
        points_of_stretches = [points_in(one.stretch, loaded, window, workers) for one in inside]
        numbers = np.array([one.series for one in inside], np.int32)
        return _Rows(
            concat(points_of_stretches), np.repeat(numbers, [len(points.iters) for points in points_of_stretches])
        )

    return await off_loop(sum([one.stretch.size for one in inside]), rows)


def _behind(rows: _Rows, names: Sequence[Name], query: PageQuery[ScalarPosition]) -> _Rows:
    """The rows that lie behind the position `after`."""
    if query.after is None:
        return rows
    iter, *position = query.after
    behind = [name < tuple(position) if query.descending else name > tuple(position) for name in names]
    kept = (rows.points.iters != iter) | np.array(behind, np.bool_)[rows.series]
    return _Rows(take(rows.points, kept), rows.series[kept])
