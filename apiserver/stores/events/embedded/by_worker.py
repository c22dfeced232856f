"""What each worker reported of scalar series: how much and when, and the means of equal steps of time.

Points are stored by iterations. Chunks know the least and the greatest timestamp in them, so that only those are read
that may hold a point of the time asked for; and of most, that a single worker reported them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Float64Array, Int64Array, WorkerMeans, WorkerSpan
from apiserver.events.queries import Grid
from apiserver.stores.events.embedded import chunks
from apiserver.stores.events.embedded.chunks import Reports
from apiserver.stores.events.embedded.points import grouped
from apiserver.stores.events.embedded.series import Series
from apiserver.stores.events.embedded.unsettled import in_parts

#: Of a worker's points: how many there are, and when the first and the last of them are.
_Extent = tuple[int, int, int]


def spans(series: Sequence[Series], worker_names: Sequence[str]) -> list[WorkerSpan]:
    """What each worker reported of each series, sorted."""
    found = []
    for which in in_parts(series):
        for one in (series[n] for n in which.tolist()):
            extents: dict[int, _Extent] = {}
            for worker, extent in _extents(one):
                extents[worker] = _joined(extent, extents.get(worker, extent))
            metric, variant = one.name
            found += [WorkerSpan(metric, variant, worker_names[worker], *extent) for worker, extent in extents.items()]
    return sorted(found)


def means(series: Sequence[Series], worker_names: Sequence[str], grid: Grid) -> list[WorkerMeans]:
    """The means of each step of what each worker reported of each series, sorted by name and worker."""
    found = []
    for which in in_parts(series):
        for one in (series[n] for n in which.tolist()):
            reports = _inside(_reports(one, grid), grid)
            metric, variant = one.name
            for worker, times, values in _by_worker(reports):
                own = _means((times - grid.start) // grid.width, values)
                found.append(WorkerMeans(metric, variant, worker_names[worker], *own))
    return sorted(found, key=lambda means: (means.metric, means.variant, means.worker))


# --- extents ---------------------------------------------------------------------------------------


def _extents(series: Series) -> Iterator[tuple[int, _Extent]]:
    """Workers and extents of some of their points each, together those of the series."""
    stats = series.settled_stats()
    columns = (stats[name].tolist() for name in ("count", "first_time", "last_time"))
    for (count, details), extent in zip(series.settled_details(), zip(*columns, strict=True), strict=True):
        worker = chunks.only_worker(details)
        if worker is not None:
            yield worker, extent
        else:
            yield from _extents_of(*chunks.decode_times(count, details))
    rest = series.points(series.settled_end)
    yield from _extents_of(rest.timestamps, rest.workers)


def _extents_of(times: Int64Array, workers: Int64Array) -> Iterator[tuple[int, _Extent]]:
    if not len(workers):
        return
    order, starts = grouped(workers)
    times = times[order]
    counts = np.diff(np.append(starts, len(order)))
    columns = (counts, np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts))
    extents = zip(*(column.tolist() for column in columns), strict=True)
    yield from zip(workers[order[starts]].tolist(), extents, strict=True)


def _joined(extent: _Extent, known: _Extent) -> _Extent:
    if extent is known:
        return extent
    return extent[0] + known[0], min(extent[1], known[1]), max(extent[2], known[2])


# --- means -----------------------------------------------------------------------------------------


def _reports(series: Series, grid: Grid) -> Reports:
    """The series' points in the grid, and perhaps others."""
    stats = series.settled_stats()
    stats = stats[(stats["first_time"] <= grid.stop) & (stats["last_time"] >= grid.start)]
    rest = series.points(series.settled_end)
    parts = [Reports(rest.timestamps, rest.workers, rest.values)]
    if len(stats):
        bodies = series.settled_bodies(int(stats["min_iter"].min()), int(stats["max_iter"].max()))
        parts.append(chunks.decode_reports(bodies))
    return Reports(*map(np.concatenate, zip(*parts, strict=True)))


def _inside(reports: Reports, grid: Grid) -> Reports:
    times, workers, values = reports
    inside = (times >= grid.start) & (times <= grid.stop) & np.isfinite(values)
    return reports if inside.all() else Reports(times[inside], workers[inside], values[inside])


def _by_worker(reports: Reports) -> Iterator[tuple[int, Int64Array, Float64Array]]:
    times, workers, values = reports
    if not len(workers):
        return
    if bool((workers == workers[0]).all()):
        yield int(workers[0]), times, values
        return
    order, starts = grouped(workers)
    for own in np.split(order, starts[1:]):
        yield int(workers[own[0]]), times[own], values[own]


def _means(steps: Int64Array, values: Float64Array) -> tuple[Int64Array, Int64Array, Float64Array]:
    """The steps with a value, of which there is one at least, ascending; how many values they have, and the means."""
    if bool((steps[1:] < steps[:-1]).any()):
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], values[order]
    begin = np.flatnonzero(np.append(True, steps[1:] != steps[:-1]))
    with np.errstate(over="ignore", invalid="ignore"):
        sums: npt.NDArray[np.float64] = np.add.reduceat(values, begin)
    counts = np.diff(np.append(begin, len(steps)))
    return steps[begin], counts, sums / counts
