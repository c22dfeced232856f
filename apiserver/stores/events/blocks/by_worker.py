"""What each worker reported of scalar series: how many points and when, and the means of equal steps of time.

Chunks that are alone have a small column that tells how many points each worker reported, and when. So their points are
not read for spans, and for means only if some of them may lie in the time asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from apiserver.common.off_loop import off_loop
from apiserver.events.model import WorkerMeans, WorkerSpan
from apiserver.events.queries import Grid
from apiserver.stores.events.blocks.loading import Loader, times_of
from apiserver.stores.events.blocks.stretches import OfSeries, Stretch, numbered
from apiserver.stores.events.codec import reports
from apiserver.stores.events.codec.points import Points, Workers
from apiserver.stores.events.codec.reports import Reports, Span

#: The number of a series, and one of its workers.
_Worker = tuple[int, str]


async def spans(loader: Loader, found: OfSeries) -> list[WorkerSpan]:
    """What each worker reported of each series, sorted."""
    names, workers, stretches = [*found], Workers(), numbered(found.values())
    spans_of_chunks = await loader.spans(one for _, one in stretches)

    def of_points(part: Iterable[tuple[int, Points]]) -> Iterator[tuple[_Worker, Span]]:
        for number, points in part:
            for worker, span in reports.spans_of(points.timestamps, points.workers):
                yield (number, workers.names[worker]), span

    each = [
        ((number, worker), span)
        for number, one in stretches
        if one.chunk is not None
        for worker, span in spans_of_chunks[one.chunk.id]
    ]
    unknown = [one for one in stretches if one.stretch.chunk is None]
    for some in await loader.read(unknown, lambda part: list(of_points(part)), workers):
        each += some
    return sorted(WorkerSpan(*names[number], worker, *span) for (number, worker), span in reports.joined(each).items())


async def means(loader: Loader, found: OfSeries, grid: Grid) -> list[WorkerMeans]:
    """The means of each step of what each worker reported of each series, sorted by name and worker."""
    names, workers, stretches = [*found], Workers(), numbered(found.values())
    known = await loader.spans(one for _, one in stretches)

    def may_meet(stretch: Stretch) -> bool:
        times = None if stretch.chunk is None else times_of(known[stretch.chunk.id])
        return times is None or (times.least <= grid.stop and times.greatest >= grid.start)

    def in_grid(part: Iterable[tuple[int, Points]]) -> list[tuple[int, Reports]]:
        return [
            (number, reports.within(Reports(points.timestamps, points.workers, points.values), grid))
            for number, points in part
        ]

    of_each: dict[int, list[Reports]] = {}
    for part in await loader.read([one for one in stretches if may_meet(one.stretch)], in_grid, workers):
        for number, reports_of_series in part:
            of_each.setdefault(number, []).append(reports_of_series)

    by_name = ((names[number], reports_of_series) for number, reports_of_series in of_each.items())
    size = sum([len(one.values) for reports_of_series in of_each.values() for one in reports_of_series])
    return await off_loop(size, lambda: reports.worker_means(by_name, workers.names, grid))
