"""What workers reported of a series, as columns: how many points and when, and the means of equal steps of time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Float64Array, Int64Array, WorkerMeans
from apiserver.events.queries import Grid
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import grouped

Worker = TypeVar("Worker", bound=Hashable)


class Reports(NamedTuple):
    """What was reported, when, and by which worker, by number."""

    timestamps: Int64Array
    workers: Int64Array
    values: Float64Array


class Span(NamedTuple):
    """The number of some points, and the timestamps of the first and the last of them."""

    points: int
    first: int
    last: int


def spans_of(times: Int64Array, workers: Int64Array) -> Iterator[tuple[int, Span]]:
    """The span of each worker's points."""
    if not len(workers):
        return
    order, starts = grouped(workers)
    times = times[order]
    counts = np.diff(np.append(starts, len(order)))
    columns = (counts, np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts))
    spans = map(Span, *(column.tolist() for column in columns))
    yield from zip(workers[order[starts]].tolist(), spans, strict=True)


def joined(spans: Iterable[tuple[Worker, Span]]) -> dict[Worker, Span]:
    """One span for each worker, of spans of parts of its points."""
    span_of: dict[Worker, Span] = {}
    for worker, (points, first, last) in spans:
        so_far = span_of.get(worker, Span(0, first, last))
        span_of[worker] = Span(points + so_far.points, min(first, so_far.first), max(last, so_far.last))
    return span_of


def within(reports: Reports, grid: Grid) -> Reports:
    """The reports in the grid with finite values."""
    times = reports.timestamps
    inside = (times >= grid.start) & (times <= grid.stop) & np.isfinite(reports.values)
    return reports if inside.all() else Reports(times[inside], reports.workers[inside], reports.values[inside])


def worker_means(
    of_each: Iterable[tuple[Name, Sequence[Reports]]], workers: Sequence[str], grid: Grid
) -> list[WorkerMeans]:
    """The means of what each of these workers reported of each series, sorted by name and worker.

    All reports are `within` the grid; of each series there is a part at least.
    """
    means_of_workers = []
    for name, parts in of_each:
        for worker, times, values in _by_worker(Reports(*map(np.concatenate, zip(*parts, strict=True)))):
            steps, counts, means = _means((times - grid.start) // grid.width, values)
            means_of_workers.append(WorkerMeans(*name, workers[worker], steps, counts, means))
    return sorted(means_of_workers, key=lambda one: (one.metric, one.variant, one.worker))


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
