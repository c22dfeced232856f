"""The curves of a node in Baseten's training metrics.

Curves of up to `MOST_POINTS` points (or fewer, if there are many curves) are answered as they were reported. Longer
curves are answered as means over equal steps, each with the time when its step begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apiserver.events.model import WorkerSpan
from apiserver.events.queries import Grid
from apiserver.stores.events.base import EventStore
from apiserver.vendors.jobs import Job, Machine
from apiserver.vendors.measures import CORES, Measure, by_device, mean_of
from apiserver.vendors.monitoring.curves import NOTHING, Curve, Curves, curves_of
from apiserver.vendors.monitoring.quantities import Quantity
from apiserver.vendors.refusals import Problem, Refused

#: Curves of more than `MOST_POINTS` are answered as means. All curves of an answer have a bound together, but each may
#: have at least `FEW_POINTS`.
MOST_POINTS, FEW_POINTS = 1000, 100

#: Nodes report unevenly, so the number of points in a period is only estimated. If the estimate is up to so many times
#: too large, the points are read and counted.
_UNEVEN = 4

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
#: The lengths that a step may have (ms). Longer steps are whole days.
_STEPS = (
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
)

_MEMORY = mean_of(Quantity.MEMORY_USED)
_EPHEMERAL, _EPHEMERAL_USAGE = mean_of(Quantity.EPHEMERAL_STORAGE_USED), mean_of(Quantity.EPHEMERAL_STORAGE_USAGE)
_CACHE, _CACHE_USAGE = mean_of(Quantity.CACHE_USED), mean_of(Quantity.CACHE_USAGE)
_GPU = (Quantity.GPU_MEMORY_USED, Quantity.GPU_UTILIZATION)
_MEASURES = (CORES, _MEMORY, _EPHEMERAL, _EPHEMERAL_USAGE, _CACHE, _CACHE_USAGE)
_QUANTITIES = {*_GPU, *(quantity for measure in _MEASURES for quantity in measure.quantities)}
_FRACTION = 0.01


@dataclass(slots=True, frozen=True)
class NodeCurves:
    """The curves and the machine of a node. `grid` has the times of the curves' steps."""

    curves: Curves
    machine: Machine
    grid: Grid

    def metrics(self) -> dict[str, Any]:
        """A TrainingJobMetricsV1."""
        memory, utilization = (by_device(self.curves, quantity) for quantity in _GPU)
        ranks = sorted(memory.keys() | utilization.keys())  # clients look up a rank of one curve in the other
        return {
            "gpu_memory_usage_bytes": {str(rank): self._points(memory.get(rank, NOTHING)) for rank in ranks},
            "gpu_utilization": {str(rank): self._points(utilization.get(rank, NOTHING), _FRACTION) for rank in ranks},
            "cpu_usage": self._read(CORES),
            "cpu_memory_usage_bytes": self._read(_MEMORY),
            "ephemeral_storage": self._storage(_EPHEMERAL, _EPHEMERAL_USAGE),
        }

    def cache(self) -> dict[str, Any] | None:
        """A StorageMetricsV1; None if nothing was reported about a cache."""
        cache = self._storage(_CACHE, _CACHE_USAGE)
        return cache if any(cache.values()) else None

    def _storage(self, used: Measure, usage: Measure) -> dict[str, Any]:
        return {"usage_bytes": self._read(used), "utilization": self._read(usage, _FRACTION)}

    def _read(self, measure: Measure, factor: float = 1) -> list[dict[str, Any]]:
        return self._points(measure.read(self.curves, self.machine), factor)

    def _points(self, curve: Curve, factor: float = 1) -> list[dict[str, Any]]:
        times = np.datetime_as_string(self.grid.times(curve.steps).astype("datetime64[ms]"), timezone="UTC").tolist()
        values = (curve.values * factor).tolist()
        return [{"value": value, "timestamp": time} for value, time in zip(values, times, strict=True)]


def no_curves(machine: Machine) -> NodeCurves:
    """A node that reported nothing."""
    return NodeCurves({}, machine, Grid(0, 0, 1))


async def read(
    store: EventStore, job: Job, start: int | None, stop: int | None, step: int | None = None, *, all_points: int
) -> list[NodeCurves]:
    """The curves of each node from `start` to `stop` (inclusive; None is unbounded), in steps of `step` milliseconds.

    Without `step`, curves are as they were reported, or in steps as long as their number of points needs: up
    to `all_points` of all curves.
    """
    spans = [span for node in job.nodes for span in node.spans_of(_QUANTITIES)]
    period = _period(spans, start, stop)
    if period is None:
        return [no_curves(job.machine) for _ in job.nodes]
    most = max(min(all_points // len(spans), MOST_POINTS), FEW_POINTS)
    longer = _whole(period, step or _step(period.steps, most), start)
    if longer.steps * len(spans) > all_points and step is not None:
        reason = f"the {len(spans)} curves would have {longer.steps} steps each, and {all_points} together at most"
        raise Refused(Problem.INVALID, reason, parameter="step_seconds")
    if step is None and max(_share(span, period) for span in spans) <= _UNEVEN * most:
        curves_of_nodes = await curves_of(store, job.owner, job.nodes, _QUANTITIES, period)
        each = (curve for curves in curves_of_nodes for devices in curves.values() for curve in devices.values())
        if all(len(curve.steps) <= most for curve in each):
            return [NodeCurves(curves, job.machine, period) for curves in curves_of_nodes]
    curves_of_nodes = await curves_of(store, job.owner, job.nodes, _QUANTITIES, longer)
    return [NodeCurves(curves, job.machine, longer) for curves in curves_of_nodes]


def _period(spans: Sequence[WorkerSpan], start: int | None, stop: int | None) -> Grid | None:
    """The part of the requested time in which something was reported, in steps of 1 ms; None if there is none."""
    if not spans:
        return None
    first, last = min(span.first for span in spans), max(span.last for span in spans)
    first, last = first if start is None else max(start, first), last if stop is None else min(stop, last)
    return None if last < first else Grid.of(first, last, 1)


def _whole(grid: Grid, step: int, start: int | None) -> Grid:
    """The grid with longer steps. They begin at multiples of `step`, unless the first would begin before `start`."""
    whole = grid.start - grid.start % step
    return Grid.of(grid.start if start is not None and whole < start else whole, grid.stop, step)


def _share(span: WorkerSpan, period: Grid) -> float:
    """An estimate of how many of a span's points lie in the period, as if they were equally far apart."""
    inside = min(period.stop, span.last) - max(period.start, span.first) + 1
    return span.points * max(inside, 0) / (span.last - span.first + 1)


def _step(length: int, most: int) -> int:
    """The shortest allowed step that needs at most `most` steps for `length` milliseconds."""
    least = -(-length // most)
    return next((step for step in _STEPS if step >= least), -(-least // _DAY) * _DAY)
