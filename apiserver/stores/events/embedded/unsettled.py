"""Goes through many series a part at a time, so that memory is bounded however many there are.

The tails and hot points of all series of a part are read at once, which is much faster than one series at a time.
Series whose runs are in the same pages of the tail are in the same part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.stores.events.codec.points import take
from apiserver.stores.events.embedded import tail
from apiserver.stores.events.embedded.hot import points_by_series
from apiserver.stores.events.embedded.series import Series, merged_stats


def in_parts(series: Sequence[Series]) -> Iterator[Int64Array]:
    """The numbers of the series of each part, ascending. The points of a part are dropped before the next one is read.

    Parts have about as many points each. A series counts with one chunk of its merged points at most, as readers hold
    about one chunk of each series.
    """
    for which in parts_of(series):
        part = [series[n] for n in which.tolist()]
        hold(part)
        yield np.sort(which)
        for one in part:
            one.let_go()


def parts_of(series: Sequence[Series]) -> Iterator[Int64Array]:
    """The numbers of the series of each part."""
    if not series:
        return iter(())
    bounds = series[0].bounds
    sizes = np.minimum(merged_stats(one.merged for one in series)["count"], bounds.sealed_chunk_points)
    sizes = sizes + np.array([sum([hot.points_sent for hot in one.recent]) for one in series], np.int64)
    return tail.some_at_a_time(tail.order([one.merged.runs for one in series]), sizes, bounds.points_at_a_time)


def hold(series: Sequence[Series]) -> None:
    """Read the tails and hot points of the series, which keep them."""
    with_tails = [one_series for one_series in series if one_series.merged.runs]
    if with_tails:
        tails = tail.read_many(with_tails[0].conn, [one_series.merged.runs for one_series in with_tails])
        for one_series, points in zip(with_tails, tails, strict=True):
            one_series.hold(tail=points)
    with_hot = [one_series for one_series in series if one_series.recent]
    if with_hot:
        points, starts = points_by_series([one_series.recent for one_series in with_hot])
        edges = [*starts.tolist(), len(points.iters)]
        for one_series, start, stop in zip(with_hot, edges, edges[1:], strict=False):
            one_series.hold(hot=take(points, slice(start, stop)))
