"""Statistics of sets of points, as rows of one structured dtype.

A row sums up a set of points. Rows of disjoint sets combine to the row of their union, exactly but for rounded sums. Of
equal extremes, the one at the lowest iteration counts. If a set has no finite value, `min_value` is +inf and
`max_value` is −inf. An empty set is `EMPTY`. For example, points as (iteration, value):

    (1, 5), (2, 3)     count 2, finite 2, sum 8,  min_value 3 at 2, max_value 5 at 1, deviations 2
    (4, 3), (9, nan)   count 2, finite 1, sum 3,  min_value 3 at 4, max_value 3 at 4, deviations 0, first_odd_iter 9
    combined           count 4, finite 3, sum 11, min_value 3 at 2, max_value 5 at 1, deviations 2.67, first_odd_iter 9

`deviations` is the sum of (value − mean)² of the finite values, which gives the standard deviation. Two sets with n and
m finite values, whose means differ by d, have the sum of both and d² · n · m / (n + m): here 2 + 0 + 1² · 2 · 1 / 3.
Sums of squares would lose all digits where values differ little, such as 1,000,000.1 and 1,000,000.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Float64Array, Int64Array, Owner, ScalarStats
from apiserver.events.queries import GREATEST, LEAST
from apiserver.stores.events.codec.checked import decoder
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import Points

StatsArray = npt.NDArray[Any]

_FLOATS = ("sum", "first_value", "last_value", "min_value", "max_value", "deviations")
_FIELDS = (
    *("count", "finite", "min_iter", "max_iter", "sum"),
    *("first_time", "first_iter", "first_value", "last_time", "last_iter", "last_value"),
    *("min_value", "min_value_iter", "max_value", "max_value_iter"),
    *("deviations", "first_odd_iter"),
)
STATS = np.dtype([(name, "<f8" if name in _FLOATS else "<i8") for name in _FIELDS])

#: If groups have so many points on average, extremes are searched group by group.
LONG = 256


def _empty() -> StatsArray:
    row = np.zeros(1, STATS)
    for name in ("min_iter", "first_time", "first_iter", "min_value_iter", "max_value_iter", "first_odd_iter"):
        row[name] = GREATEST
    for name in ("max_iter", "last_time", "last_iter"):
        row[name] = LEAST
    row["min_value"], row["max_value"] = np.inf, -np.inf
    return row


EMPTY = _empty()


@decoder
def stored(rows: Iterable[bytes | memoryview]) -> StatsArray:
    """The rows that were stored one by one."""
    return np.frombuffer(b"".join(rows), STATS)


def of_groups(
    iters: Int64Array,
    values: Float64Array,
    timestamps: Int64Array,
    starts: npt.NDArray[np.intp],
    long: int = LONG,
) -> StatsArray:
    """A row for each group of points. Group n begins at starts[n]; each ascends by iteration, and none is empty.

    Groups are `long` if they have so many points each.
    """
    stops = np.append(starts[1:], len(iters))
    lengths = stops - starts
    rows = np.empty(len(starts), STATS)
    rows["count"] = lengths
    rows["min_iter"], rows["max_iter"] = iters[starts], iters[stops - 1]

    at = starts, stops - 1
    if not ascends(timestamps, starts, np.greater_equal):
        least, greatest = np.minimum.reduceat(timestamps, starts), np.maximum.reduceat(timestamps, starts)
        at = (
            _first_hits(timestamps == np.repeat(least, lengths), starts),
            _last_hits(timestamps == np.repeat(greatest, lengths), stops),
        )
    for end, places in zip(("first", "last"), at, strict=True):
        for column, numbers in (("time", timestamps), ("iter", iters), ("value", values)):
            rows[f"{end}_{column}"] = numbers[places]

    finite = np.isfinite(values)
    everything = bool(finite.all())
    rows["finite"] = lengths if everything else np.add.reduceat(finite, starts, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        rows["sum"] = np.add.reduceat(values if everything else np.where(finite, values, 0.0), starts)
        mean = np.repeat(rows["sum"] / np.maximum(rows["finite"], 1), lengths)
        squares = np.square(values - mean)
        squares = squares if everything else np.where(finite, squares, 0.0)
        rows["deviations"] = _or_infinite(np.add.reduceat(squares, starts))
    rows["first_odd_iter"] = GREATEST
    if not everything:
        odd = rows["finite"] < lengths
        rows["first_odd_iter"][odd] = iters[_first_hits(~finite, starts[odd])]
    for extreme, fill, of_long, of_short in (
        ("min_value", np.inf, np.argmin, np.minimum),
        ("max_value", -np.inf, np.argmax, np.maximum),
    ):
        filled = values if everything else np.where(finite, values, fill)
        if len(filled) >= long * len(starts):
            groups = zip(starts.tolist(), stops.tolist(), strict=True)
            places = np.array([start + of_long(filled[start:stop]) for start, stop in groups])
        else:
            places = _first_hits(filled == np.repeat(of_short.reduceat(filled, starts), lengths), starts)
        rows[extreme] = filled[places]
        rows[f"{extreme}_iter"] = np.where(rows["finite"] > 0, iters[places], GREATEST)
    return rows


def of_points(points: Points, long: int = LONG) -> StatsArray:
    """The row of all points together."""
    if not len(points.iters):
        return EMPTY
    return of_groups(points.iters, points.values, points.timestamps, np.zeros(1, np.intp), long)


def ascends(column: Int64Array, starts: npt.NDArray[np.intp], later: np.ufunc = np.greater) -> bool:
    """Whether each value is `later` than the value before it in its group; group n begins at starts[n]."""
    ascending = later(column[1:], column[:-1])
    ascending[starts[1:] - 1] = True
    return bool(ascending.all())


def _first_hits(mask: npt.NDArray[np.bool_], starts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    hits = np.flatnonzero(mask)
    return hits[np.searchsorted(hits, starts)]


def _last_hits(mask: npt.NDArray[np.bool_], stops: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    hits = np.flatnonzero(mask)
    return hits[np.searchsorted(hits, stops) - 1]


def combine(left: StatsArray, right: StatsArray) -> StatsArray:
    """The rows of the unions of two disjoint sets each, row by row."""
    rows = np.empty(len(left), STATS)
    with np.errstate(over="ignore", invalid="ignore"):
        for name in ("count", "finite", "sum"):
            rows[name] = left[name] + right[name]
        rows["deviations"] = _joined_deviations(left, right)
    for name in ("min_iter", "first_odd_iter"):
        rows[name] = np.minimum(left[name], right[name])
    rows["max_iter"] = np.maximum(left["max_iter"], right["max_iter"])
    a, b = left, right
    only_right = a["count"] == 0  # else the greatest or least possible timestamp would not win over an empty set
    first = only_right | _before(b, a, "first_time", "first_iter") & (b["count"] > 0)
    last = only_right | _before(a, b, "last_time", "last_iter") & (b["count"] > 0)
    _choose(rows, a, b, first, ("first_time", "first_iter", "first_value"))
    _choose(rows, a, b, last, ("last_time", "last_iter", "last_value"))
    _choose(rows, a, b, _before(b, a, "min_value", "min_value_iter"), ("min_value", "min_value_iter"))
    higher = (b["max_value"] > a["max_value"]) | (
        (b["max_value"] == a["max_value"]) & (b["max_value_iter"] < a["max_value_iter"])
    )
    _choose(rows, a, b, higher, ("max_value", "max_value_iter"))
    return rows


def _joined_deviations(left: StatsArray, right: StatsArray) -> Float64Array:
    n, m = left["finite"], right["finite"]
    both = (n > 0) & (m > 0)
    apart = left["sum"] / np.maximum(n, 1) - right["sum"] / np.maximum(m, 1)
    between = np.where(both, np.square(apart) * (n / np.maximum(n + m, 1)) * m, 0.0)
    return _or_infinite(left["deviations"] + right["deviations"] + between)


def _or_infinite(sums: Float64Array) -> Float64Array:
    """The sums; of values too far apart for float64, infinity."""
    return np.where(np.isnan(sums), np.inf, sums)


def _before(one: StatsArray, other: StatsArray, key: str, then: str) -> npt.NDArray[np.bool_]:
    before: npt.NDArray[np.bool_] = (one[key] < other[key]) | ((one[key] == other[key]) & (one[then] < other[then]))
    return before


def _choose(
    rows: StatsArray, left: StatsArray, right: StatsArray, take_right: npt.NDArray[np.bool_], names: tuple[str, ...]
) -> None:
    for name in names:
        rows[name] = np.where(take_right, right[name], left[name])


def fold(rows: StatsArray) -> StatsArray:
    """One row of the union of all rows' sets."""
    if not len(rows):
        return EMPTY
    while len(rows) > 1:
        half = len(rows) // 2
        rows = np.concatenate([combine(rows[:half], rows[half : 2 * half]), rows[2 * half :]])
    return rows


def fold_each(rows: StatsArray, lengths: Int64Array) -> StatsArray:
    """As `fold` of each group of rows; group n is the next lengths[n] ≥ 1 rows."""
    while len(rows) > len(lengths):
        place = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        half = np.repeat(lengths // 2, lengths)
        left = place < half
        kept = left | (place == 2 * half)
        joined = rows[kept]
        joined[left[kept]] = combine(rows[left], rows[np.flatnonzero(left) + half[left]])
        rows, lengths = joined, (lengths + 1) // 2
    return rows


#: The columns of `ScalarStats` behind its names, in their order.
_MODEL = [
    *("count", "finite", "min_iter", "max_iter", "first_time", "last_time"),
    *("first_value", "first_iter", "last_value", "last_iter"),
    *("min_value", "min_value_iter", "max_value", "max_value_iter", "sum"),
]
#: Those that are None if no value is finite.
_EXTREMES = ("min_value", "min_value_iter", "max_value", "max_value_iter")


def models_of_each(
    owners: Sequence[Owner], names: Sequence[Sequence[Name]], rows: StatsArray, *, spread: bool
) -> list[list[ScalarStats]]:
    """The rows of each owner's series, one owner after another; names[n] are the names of those of owners[n]."""
    edges = pairwise(accumulate(map(len, names), initial=0))
    return [
        to_models(owner, some, rows[start:stop], spread=spread)
        for owner, some, (start, stop) in zip(owners, names, edges, strict=True)
    ]


def to_models(owner: Owner, names: Sequence[Name], rows: StatsArray, *, spread: bool) -> list[ScalarStats]:
    """The rows as readers get them; `spread`: with all fields. names[n] is the name of row n's series."""
    metrics, variants = zip(*names, strict=True) if names else ((), ())
    columns: list[Iterable[Any]] = [rows[name].tolist() for name in _MODEL]
    none = np.flatnonzero(rows["finite"] == 0).tolist()
    for name in _EXTREMES if none else ():
        column = columns[_MODEL.index(name)] = rows[name].tolist()
        for n in none:
            column[n] = None
    deviations: Iterable[float | None] = repeat(None)
    odd: Iterable[int | None] = repeat(None)
    if spread:
        deviations = rows["deviations"].tolist()
        finite = (rows["finite"] == rows["count"]).tolist()
        odd = [None if all_are else iter for all_are, iter in zip(finite, rows["first_odd_iter"].tolist(), strict=True)]
    return list(map(ScalarStats, repeat(owner), metrics, variants, *columns, deviations, odd))
