"""Makes buckets of pieces and points: of many short series at once, and of long series one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.aggregates import Aggregate, Aggregates, CurvesInBuckets, Rows, columns_for, made_of
from apiserver.events.model import Float64Array, Int64Array
from apiserver.events.queries import GREATEST, LEAST, BucketQuery, CommonBuckets
from apiserver.stores.events.codec.integers import Progression
from apiserver.stores.events.codec.pieces import ColumnNames, Pieces, concatenated, pieces_of, sum_up, sum_up_points
from apiserver.stores.events.codec.points import NO_CURVE, Curve, concat, within

#: Series of up to so many pieces are bucketed together, as the fixed cost of a series is more than that of its pieces.
SHORT = 4096
_POINTS_A_SEARCH = 8
#: How much wider buckets may become, as a part of the width asked for.
MOST_WIDENING = 0.1

_FIRST = np.zeros(1, np.intp)

Part = Curve | Pieces


@dataclass(slots=True)
class Source:
    """The pieces and points of one series, ascending. No piece reaches over the end of a bucket."""

    number: int
    """Which of the caller's series it is."""
    interval: int
    parts: Sequence[Part]

    @property
    def length(self) -> int:
        """How many pieces and points there are."""
        return sum([len(part[0]) for part in self.parts])


class InBuckets(NamedTuple):
    """The buckets of the caller's series `number`, as `Buckets` has them."""

    number: int
    x: Int64Array
    values: Aggregates


def of_blocks(interval: int, shift: int, query: BucketQuery, widening: float = MOST_WIDENING) -> int | None:
    """The interval that is used instead, a multiple of 2^shift; None if that would change it too much."""
    wider = -(-interval >> shift) << shift
    if wider - interval <= interval * widening and wider <= GREATEST:
        return wider
    finer = interval >> shift << shift
    return finer if finer and query.may_be_finer else None


def fitting(
    interval: int, shifts: Iterable[int], wanted: BucketQuery, widening: float = MOST_WIDENING
) -> tuple[int | None, int]:
    """The greatest of the shifts whose blocks fit into the buckets (None: none do), and the interval used then."""
    widths = ((shift, of_blocks(interval, shift, wanted, widening)) for shift in shifts)
    usable = [(shift, width) for shift, width in widths if width is not None]
    return max(usable) if usable and interval > 1 else (None, interval)


def of_curves(curves: Iterable[tuple[int, Curve]], query: BucketQuery) -> Iterator[Source]:
    """The sources of whole curves with the numbers of their series, without curves that have no point."""
    for number, (x, values) in curves:
        if len(x):
            interval = query.width(len(x), int(x[0]), int(x[-1]))
            yield Source(number, interval, [within(Curve(x, values), query.range.least, query.range.greatest)])


def bucketed(sources: Iterable[Source], aggregates: frozenset[Aggregate], short: int = SHORT) -> list[InBuckets]:
    """The buckets of each source, in any order. Only `short` sources are held in memory together."""
    columns = columns_for(aggregates)
    buckets: list[InBuckets] = []
    points: list[Source] = []
    pieces: list[Source] = []
    for source in sources:
        if source.length > short:
            all_of_it = concatenated(
                [part if isinstance(part, Pieces) else _summed(part, source.interval, columns) for part in source.parts]
            )
            summed = _summed(all_of_it, source.interval, columns)
            x = bucket_x(summed.x, source.interval)
            buckets.append(InBuckets(source.number, x, made_of(summed.sums, aggregates)))
        elif all(isinstance(part, Curve) for part in source.parts):
            points.append(source)
        else:
            pieces.append(source)
    if points:
        curves = [part for source in points for part in source.parts if isinstance(part, Curve)]
        buckets += _together(points, concat(curves or [NO_CURVE]), columns, aggregates)
    if pieces:
        parts = [part for source in pieces for part in source.parts]
        summed = concatenated([pieces_of(part, columns) if isinstance(part, Curve) else part for part in parts])
        buckets += _together(pieces, summed, columns, aggregates)
    return buckets


def put_into(
    curves_in_buckets: CurvesInBuckets,
    common: CommonBuckets,
    places: npt.NDArray[np.intp],
    buckets: Sequence[InBuckets],
) -> None:
    """Put buckets of curves into those that they have in common. The caller's series n is the curve places[n]."""
    if buckets:
        curves = np.repeat(places[[one.number for one in buckets]], [len(one.x) for one in buckets])
        numbers = common.numbers(np.concatenate([one.x for one in buckets]))
        values = {name: np.concatenate([one.values[name] for one in buckets]) for name in buckets[0].values}
        curves_in_buckets.put(curves, numbers, values)


def nearest_bucket(x: Int64Array, values: Float64Array, buckets: CommonBuckets, *, before: bool) -> tuple[float, float]:
    """What `ScalarStore.curve_neighbours` says of one curve, whose points ascend by x."""
    outside = x < buckets.range.least if before else x > buckets.range.greatest
    places = np.flatnonzero(outside & np.isfinite(values))
    if not len(places):
        return np.nan, np.nan
    numbers = x[places] // buckets.width
    number = numbers[-1 if before else 0]
    with np.errstate(over="ignore"):
        return float(number) - buckets.first, float(values[places[numbers == number]].mean())


def bucket_x(x: Int64Array, interval: int | Int64Array) -> Int64Array:
    """The start of the bucket of each x. A start before −2⁶³ would wrap around, and is −2⁶³."""
    if np.all(interval == 1):
        return x
    start = x // interval * interval
    return np.where(start > x, LEAST, start)


def bucket_starts(x: Int64Array | Progression, interval: int) -> Rows:
    """The index in ascending `x` at which each bucket begins that is not empty."""
    if isinstance(x, Progression):
        if x.last + x.step - x.first <= GREATEST:
            return _starts_in_progression(x, interval)
        x = x.whole()
    if not len(x):
        return np.empty(0, np.intp)
    first, last = int(x[0]) // interval, int(x[-1]) // interval
    if last - first < len(x) // _POINTS_A_SEARCH:  # searching for the bounds of buckets is faster than dividing all x
        starts = np.searchsorted(x, (first + np.arange(1, last - first + 1)) * interval)
        starts[1:] = np.where(starts[1:] != starts[:-1], starts[1:], 0)
        return np.concatenate([_FIRST, starts[starts > 0]])
    bucket = x if interval == 1 else x // interval
    return np.concatenate([_FIRST, np.flatnonzero(bucket[1:] != bucket[:-1]) + 1])


@lru_cache(maxsize=2)
def _starts_in_progression(x: Progression, interval: int) -> Rows:
    """The same, remembered: runs that are read together often have the same iterations. Nobody may change the array."""
    if x.step >= interval:
        starts = np.arange(x.length)
    else:
        bounds = np.arange(x.first // interval + 1, x.last // interval + 1) * interval
        starts = np.concatenate([_FIRST, (bounds - x.first + x.step - 1) // x.step])
    starts.flags.writeable = False
    return starts


def _summed(part: Part, interval: int, columns: ColumnNames) -> Pieces:
    return _summed_at(part, bucket_starts(part[0], interval), columns)


def _together(
    sources: Sequence[Source], all_of_them: Part, columns: ColumnNames, aggregates: frozenset[Aggregate]
) -> list[InBuckets]:
    """The buckets of each source; `all_of_them` has their parts one after another."""
    lengths = [source.length for source in sources]
    x = all_of_them[0]
    series = np.repeat(np.arange(len(sources)), lengths)
    interval = np.repeat(np.array([source.interval for source in sources], np.int64), lengths)
    bucket = x if (interval == 1).all() else x // interval
    new = np.append(True, (bucket[1:] != bucket[:-1]) | (series[1:] != series[:-1]))[: len(bucket)]
    starts = np.flatnonzero(new)
    values = made_of(_summed_at(all_of_them, starts, columns).sums, aggregates)
    begins = bucket_x(x[starts], interval[starts])
    ends = np.searchsorted(series[starts], np.arange(len(sources) + 1)).tolist()
    return [
        InBuckets(source.number, begins[start:stop], {name: column[start:stop] for name, column in values.items()})
        for source, start, stop in zip(sources, ends, ends[1:], strict=False)
    ]


def _summed_at(part: Part, starts: Rows, columns: ColumnNames) -> Pieces:
    if isinstance(part, Pieces):
        return sum_up(part, starts)
    if len(starts) == len(part.iters):
        return pieces_of(part, columns)
    return sum_up_points(*part, starts, columns)
