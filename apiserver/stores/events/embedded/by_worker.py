"""What each worker reported of scalar series: how many points and when, and the means of equal steps of time.

The stats of each chunk have its least and greatest timestamp, so only chunks are read that may have a point of the time
asked for. The details of most chunks name a single worker, so their points need not be looked at one by one.
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

#: The number of some points of a worker, and the timestamps of the first and the last of them.
_Span = tuple[int, int, int]


def spans(series: Sequence[Series], worker_names: Sequence[str]) -> list[WorkerSpan]:
    """What each worker reported of each series, sorted."""
    found = []
    for which in in_parts(series):
        for one in (series[n] for n in which.tolist()):
            by_worker: dict[int, _Span] = {}
            for worker, (count, first, last) in _spans(one):
                known = by_worker.get(worker, (0, first, last))
                by_worker[worker] = (count + known[0], min(first, known[1]), max(last, known[2]))
            metric, variant = one.name
            found += [WorkerSpan(metric, variant, worker_names[worker], *span) for worker, span in by_worker.items()]
    return sorted(found)


def means(series: Sequence[Series], worker_names: Sequence[str], grid: Grid) -> list[WorkerMeans]:
    """The means of each step of what each worker reported of each series, sorted by name and worker."""
    found = []
    for which in in_parts(series):
        for one in (series[n] for n in which.tolist()):
            metric, variant = one.name
            for worker, times, values in _by_worker(_reports(one, grid)):
                own = _means((times - grid.start) // grid.width, values)
                found.append(WorkerMeans(metric, variant, worker_names[worker], *own))
    return sorted(found, key=lambda means: (means.metric, means.variant, means.worker))


# --- spans -----------------------------------------------------------------------------------------


def _spans(series: Series) -> Iterator[tuple[int, _Span]]:
    """Workers, and spans of parts of their points. All parts together are all points of the series."""
    stats = series.settled_stats()
    columns = (stats[name].tolist() for name in ("count", "first_time", "last_time"))
    for (count, details), span in zip(series.settled_details(), zip(*columns, strict=True), strict=True):
        worker = chunks.only_worker(details)
        if worker is not None:
            yield worker, span
        else:
            yield from _spans_of(*chunks.decode_times(count, details))
    rest = series.points(series.settled_end)
    yield from _spans_of(rest.timestamps, rest.workers)


def _spans_of(times: Int64Array, workers: Int64Array) -> Iterator[tuple[int, _Span]]:
    if not len(workers):
        return
    order, starts = grouped(workers)
    times = times[order]
    counts = np.diff(np.append(starts, len(order)))
    columns = (counts, np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts))
    spans_of_workers = zip(*(column.tolist() for column in columns), strict=True)
    yield from zip(workers[order[starts]].tolist(), spans_of_workers, strict=True)


# --- means -----------------------------------------------------------------------------------------


def _reports(series: Series, grid: Grid) -> Reports:
    """The series' points in the grid with finite values."""
    stats = series.settled_stats()
    stats = stats[(stats["first_time"] <= grid.stop) & (stats["last_time"] >= grid.start)]
    rest = series.points(series.settled_end)
    parts = [Reports(rest.timestamps, rest.workers, rest.values)]
    if len(stats):
        bodies = series.settled_bodies(int(stats["min_iter"].min()), int(stats["max_iter"].max()))
        parts.append(chunks.decode_reports(bodies))
    reports = Reports(*map(np.concatenate, zip(*parts, strict=True)))
    times = reports.timestamps
    inside = (times >= grid.start) & (times <= grid.stop) & np.isfinite(reports.values)
    return reports if inside.all() else Reports(times[inside], reports.workers[inside], reports.values[inside])


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
    """The steps that have a value, ascending, with their numbers of values and their means; one value at least."""
    if bool((steps[1:] < steps[:-1]).any()):
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], values[order]
    begin = np.flatnonzero(np.append(True, steps[1:] != steps[:-1]))
    with np.errstate(over="ignore", invalid="ignore"):
        sums: npt.NDArray[np.float64] = np.add.reduceat(values, begin)
    counts = np.diff(np.append(begin, len(steps)))
    return steps[begin], counts, sums / counts
