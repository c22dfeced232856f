"""What each worker reported of scalar series: how many points and when, and the means of equal steps of time.

The stats of each chunk have its least and greatest timestamp, so only chunks are read that may have a point of the time
asked for. The details of most chunks name a single worker, so their points need not be looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apiserver.events.model import WorkerMeans, WorkerSpan
from apiserver.events.queries import Grid
from apiserver.stores.events.codec import chunks, reports
from apiserver.stores.events.codec.reports import Reports, Span
from apiserver.stores.events.embedded.series import Series
from apiserver.stores.events.embedded.unsettled import in_parts


def spans(series: Sequence[Series], worker_names: Sequence[str]) -> list[WorkerSpan]:
    """What each worker reported of each series, sorted."""
    worker_spans = []
    for which in in_parts(series):
        for one in (series[n] for n in which.tolist()):
            metric, variant = one.name
            by_worker = reports.joined(_spans(one))
            worker_spans += [
                WorkerSpan(metric, variant, worker_names[worker], *span) for worker, span in by_worker.items()
            ]
    return sorted(worker_spans)


def means(series: Sequence[Series], worker_names: Sequence[str], grid: Grid) -> list[WorkerMeans]:
    """The means of each step of what each worker reported of each series, sorted by name and worker."""
    each = (series[n] for which in in_parts(series) for n in which.tolist())
    return reports.worker_means(((one.name, _reports(one, grid)) for one in each), worker_names, grid)


def _spans(series: Series) -> Iterator[tuple[int, Span]]:
    """Workers, and spans of parts of their points. All parts together are all points of the series."""
    stats = series.settled_stats()
    columns = (stats[name].tolist() for name in ("count", "first_time", "last_time"))
    for (count, details), span in zip(series.settled_details(), map(Span, *columns), strict=True):
        worker = chunks.only_worker(details)
        if worker is not None:
            yield worker, span
        else:
            yield from reports.spans_of(*chunks.decode_times(count, details))
    rest = series.points(series.settled_end)
    yield from reports.spans_of(rest.timestamps, rest.workers)


def _reports(series: Series, grid: Grid) -> list[Reports]:
    """The series' points in the grid with finite values."""
    stats = series.settled_stats()
    stats = stats[(stats["first_time"] <= grid.stop) & (stats["last_time"] >= grid.start)]
    rest = series.points(series.settled_end)
    parts = [Reports(rest.timestamps, rest.workers, rest.values)]
    if len(stats):
        bodies = series.settled_bodies(int(stats["min_iter"].min()), int(stats["max_iter"].max()))
        parts.append(chunks.decode_reports(bodies))
    return [reports.within(part, grid) for part in parts]
