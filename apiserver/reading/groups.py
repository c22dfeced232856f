"""One curve of many runs: what a group of runs reported of a series, bucket by bucket, although their steps differ.

All runs of all groups have their buckets in common. A run's value in a bucket is the mean of its finite values there.
Where a run has none, but has values in buckets before and behind, its value is filled in: `linear` takes it from the
straight line between the nearest two, `last` takes the one before. A run takes part from its first bucket with a value
to its last one. For example, two runs, and buckets that are 4 iterations wide:

    run a: 2 at 0, 4 at 2, 9 at 8        its buckets: 3, –, 9, –
    run b: 1 at 4, NaN at 8, 5 at 12     its buckets: –, 1, –, 5

               filled, linear    filled, last
    run a      3, 6, 9, –        3, 3, 9, –
    run b      –, 1, 3, 5        –, 1, 1, 5
    runs       1, 2, 2, 1        1, 2, 2, 1
    mean       3, 3.5, 6, 5      3, 2, 5, 5
    min        2, 1, 3, 5        2, 1, 1, 5
    max        4, 6, 9, 5        4, 3, 9, 5

Mean, deviation and quantiles are those of the runs' values. The least and the greatest are those of all finite points
that runs have in the bucket, and of values that are filled in. So a point that lies far from the others is seen,
however wide buckets are: above, the first bucket reaches from 2 to 4, although its only run has the value 3 there.

Buckets are 1, 2, 4, 8, … wide: the narrowest that are at most `samples` between the first and the last point of all
runs. While the runs go on, buckets stay where they are, until two of them become one.

The deviation is sqrt(mean of (value − mean)²) over the runs. A quantile q of n values in ascending order lies at place
q · (n − 1), counted from 0, on the straight line between its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events.aggregates import CurvesInBuckets, Neighbours, Rows
from apiserver.events.model import Float64Array, Owner
from apiserver.events.queries import EVERYWHERE, CommonBuckets, CurvesQuery, Range
from apiserver.events.smoothing import Smoothing
from apiserver.reading.histogram import Key, axis_values
from apiserver.stores.events.protocols.scalars import ScalarStore

#: Values that one read of a store answers.
_VALUES_A_READ = 2**19
#: Values of runs that are put together at a time, as they and their copies fit into a processor's cache.
_AT_ONCE = 2**17
#: Bytes of a number; texts of times take about so many numbers' room.
_NUMBER, _TEXT = 8, 10

_NOTHING_FILLED = (np.empty(0, np.intp), np.empty(0))

#: {"x", "runs", "mean", "std", "min", "max": an array each, "quantiles": [array], if they were asked for}
GroupCurve = dict[str, Any]
#: {metric: {variant: {group: curve}}}
GroupCurves = dict[str, dict[str, dict[str, GroupCurve]]]


class Fill(StrEnum):
    """The value of a run in a bucket between its values."""

    LINEAR = "linear"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class GroupsQuery:
    """How to answer each series: in up to `samples` ≥ 4 buckets, and which `quantiles`, from 0 to 1.

    `smoothing` is done before, with the whole series of each run. Of a `range`, the buckets that reach into it are
    answered, as if all were asked for in buckets that are so wide.
    """

    samples: int
    key: Key = Key.ITER
    fill: Fill = Fill.LINEAR
    quantiles: tuple[float, ...] = ()
    smoothing: Smoothing | None = None
    range: Range = EVERYWHERE
    runs_a_read: int = 500
    """Runs that one read of a store is about at most, so that other reads come in between."""

    def curves(self, owners: Sequence[Owner], metric: str, variant: str) -> CurvesQuery:
        """The curves that a series is answered from."""
        return CurvesQuery(owners, metric, variant, self.key.axis, self.smoothing)


async def group_curves(
    store: ScalarStore,
    groups: Mapping[str, Sequence[Owner]],
    series: Sequence[tuple[str, str]],
    asked: GroupsQuery,
) -> GroupCurves:
    """The curves of each group, for each series (metric, variant). A group has no curve of what no run of it reported.

    Each owner stands once in a group, and may be in several. Bytes of curves count for the answer.
    """
    by_metric: GroupCurves = {}
    everyone = list(dict.fromkeys(chain.from_iterable(groups.values())))
    for metric, variant in series:
        ends = await _ends(store, asked.curves(everyone, metric, variant), asked.runs_a_read)
        least, greatest = max(ends.least, asked.range.least), min(ends.greatest, asked.range.greatest)
        if least > greatest:
            continue
        buckets = CommonBuckets.over(least, greatest, asked.samples)
        for name, owners in groups.items():
            curve = await _group_curve(store, asked.curves(owners, metric, variant), buckets, ends, asked)
            if len(curve["runs"]):
                by_metric.setdefault(metric, {}).setdefault(variant, {})[name] = curve
    return by_metric


async def _ends(store: ScalarStore, curves: CurvesQuery, runs: int) -> Range:
    """From the first to the last point of all curves; a range with nothing in it if there is none."""
    all_ends = [ends for part in _parts(curves, runs) if (ends := await store.curve_ends(part)) is not None]
    least = min((least for least, _ in all_ends), default=1)
    return Range(least, max((greatest for _, greatest in all_ends), default=0))


async def _group_curve(
    store: ScalarStore, curves: CurvesQuery, buckets: CommonBuckets, ends: Range, asked: GroupsQuery
) -> GroupCurve:
    """The curve of one group, in all buckets that have runs. The means of its runs are dropped before it returns."""
    columns = 6 + len(asked.quantiles) + (_TEXT if asked.key is Key.ISO_TIME else 0)
    answers.hold(_NUMBER * columns * buckets.count)
    size = (len(curves.owners) + 2) * buckets.count
    answers.hold(_NUMBER * size)
    runs = CurvesInBuckets.empty(len(curves.owners), buckets.count)
    row = 0
    for part in _parts(curves, max(1, min(asked.runs_a_read, _VALUES_A_READ // buckets.count))):
        of_part = await store.curve_buckets(part, buckets)
        await off_loop(of_part.means.size, partial(runs.take, row, of_part))
        row += len(of_part.means)
    before = behind = None
    if buckets.range.least > ends.least:
        before = await _neighbours(store, curves, runs, buckets, asked, before=True)
    if buckets.range.greatest < ends.greatest:
        behind = await _neighbours(store, curves, runs, buckets, asked, before=False)
    curve = await off_loop(size, partial(_curve, runs, buckets, asked, before, behind))
    answers.hold(-_NUMBER * size)
    return curve


async def _neighbours(
    store: ScalarStore,
    curves: CurvesQuery,
    runs: CurvesInBuckets,
    buckets: CommonBuckets,
    asked: GroupsQuery,
    *,
    before: bool,
) -> Neighbours:
    """The values outside that runs have next to an edge at which they have none: their line goes there."""
    neighbours = Neighbours.empty(len(curves.owners))
    (rows,) = np.nonzero(~np.isfinite(runs.means[:, 0 if before else -1]))
    row = 0
    for part in _parts(replace(curves, owners=[curves.owners[at] for at in rows.tolist()]), asked.runs_a_read):
        outside = await store.curve_neighbours(part, buckets, before=before)
        part_rows = rows[row : row + len(part.owners)]
        neighbours.numbers[part_rows], neighbours.means[part_rows] = outside.numbers, outside.means
        row += len(part_rows)
    return neighbours


def _parts(curves: CurvesQuery, runs: int) -> Iterator[CurvesQuery]:
    """The curves in parts, each of up to `runs` runs."""
    for start in range(0, len(curves.owners), runs):
        yield replace(curves, owners=curves.owners[start : start + runs])


def _curve(
    runs: CurvesInBuckets,
    buckets: CommonBuckets,
    asked: GroupsQuery,
    before: Neighbours | None,
    behind: Neighbours | None,
) -> GroupCurve:
    for places, filled in fill(runs.means, asked.fill, before, behind):
        runs.widen(places, filled, filled)
    table = summed_up(runs.means, asked.quantiles)
    with_runs = table[0] > 0
    count, mean, std, *quantiles = table.compress(with_runs, axis=1)
    curve = {
        "x": axis_values(buckets.starts[with_runs], asked.key),
        "runs": count.astype(np.int64),
        "mean": mean,
        "std": std,
        "min": runs.least[with_runs],
        "max": runs.greatest[with_runs],
    }
    return curve | ({"quantiles": quantiles} if quantiles else {})


def fill(
    values: Float64Array,
    how: Fill,
    before: Neighbours | None = None,
    behind: Neighbours | None = None,
    at_once: int = _AT_ONCE,
) -> Iterator[tuple[Rows, Float64Array]]:
    """Fill in the buckets between finite values of a row, the buckets of a run. Other values become NaN if not finite.

    Rows may have further values outside, before the first bucket and behind the last one. It yields the columns that
    are filled in, and with what, some rows at a time.
    """
    step = max(1, at_once // values.shape[1])
    if before is None and behind is None:
        for start in range(0, len(values), step):
            yield _fill(values[start : start + step], how)
        return
    before, behind = before or Neighbours.empty(len(values)), behind or Neighbours.empty(len(values))
    for start in range(0, len(values), step):
        rows = slice(start, start + step)
        wide = np.column_stack([before.means[rows], values[rows], behind.means[rows]])
        columns, filled = _fill(wide, how, (before.numbers[rows] + 1, behind.numbers[rows] + 1))
        values[rows] = wide[:, 1:-1]
        yield columns - 1, filled


def _fill(
    values: Float64Array, how: Fill, outside: tuple[Float64Array, Float64Array] | None = None
) -> tuple[Rows, Float64Array]:
    """Fill in some rows. `outside`: the places of the first and the last column of each row, if they lie elsewhere."""
    finite = np.isfinite(values)
    values[~finite] = np.nan
    count, width = finite.sum(axis=1), values.shape[1]
    first, last = finite.argmax(axis=1), width - 1 - finite[:, ::-1].argmax(axis=1)
    (rows,) = np.nonzero((count > 0) & (count < last - first + 1))
    if not len(rows):  # nearly always, if buckets are wider than steps
        return _NOTHING_FILLED
    finite, places = finite[rows], np.arange(width)
    before = np.maximum.accumulate(np.where(finite, places, -1), axis=1)
    behind = np.minimum.accumulate(np.where(finite, places, width)[:, ::-1], axis=1)[:, ::-1]
    row, place = np.nonzero(~finite & (before >= 0) & (behind < width))
    before, behind, row = before[row, place], behind[row, place], rows[row]
    filled = values[row, before]
    if how is Fill.LINEAR:
        left, right = before, behind
        if outside is not None:
            left = np.where(before == 0, outside[0][row], before)
            right = np.where(behind == width - 1, outside[1][row], behind)
        part = (place - left) / (right - left)
        filled = filled * (1 - part) + values[row, behind] * part
    values[row, place] = filled
    return place, filled


def summed_up(values: Float64Array, quantiles: Sequence[float], at_once: int = _AT_ONCE) -> Float64Array:
    """For each column: how many rows are not NaN, their mean, deviation and quantiles, a row each.

    A column that is all NaN has 0 and then anything. What is beyond the numbers of a float64 is infinite or NaN.
    """
    step = max(1, at_once // len(values))
    parts = [_summed_up(values[:, start : start + step], quantiles) for start in range(0, values.shape[1], step)]
    return np.concatenate(parts, axis=1)


def _summed_up(values: Float64Array, quantiles: Sequence[float]) -> Float64Array:
    ordered = np.sort(values.T, axis=1)  # NaN comes last
    takes_part = ~np.isnan(ordered)
    runs = takes_part.sum(axis=1)
    column, last = np.arange(len(ordered)), np.maximum(runs - 1, 0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = ordered.sum(axis=1, where=takes_part) / runs
        distance = ordered - mean[:, np.newaxis]
        std = np.sqrt(np.square(distance, out=distance).sum(axis=1, where=takes_part) / runs)
        rows = [runs, mean, std]
        for quantile in quantiles:
            place = quantile * last
            below = place.astype(np.int64)
            part = place - below
            above = np.minimum(below + 1, last)
            rows.append(ordered[column, below] * (1 - part) + ordered[column, above] * part)
    return np.array(rows)
