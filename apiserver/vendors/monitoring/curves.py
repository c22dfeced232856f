"""Curves of resources over equal steps of time, and means of several curves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from apiserver.events.model import EventType, Float64Array, Int64Array, Owner, WorkerMeans, selection_of
from apiserver.events.queries import Grid, SeriesQuery
from apiserver.stores.events.protocols.scalars import ScalarStore
from apiserver.vendors.monitoring.nodes import Node
from apiserver.vendors.monitoring.quantities import Quantity

#: Values beyond this are left out. No machine has so much of anything, and sums of such values could overflow.
_MOST = 1e30


class Curve(NamedTuple):
    """The mean of each step in which something was reported. `steps` has the ascending numbers of these steps."""

    steps: Int64Array
    values: Float64Array


NOTHING = Curve(np.empty(0, np.int64), np.empty(0))

#: Curves by quantity and number of the device.
Curves = dict[Quantity, dict[int, Curve]]


async def curves_of(
    store: ScalarStore, owner: Owner, nodes: Sequence[Node], quantities: Collection[Quantity], grid: Grid
) -> list[Curves]:
    """The curves of these quantities for each node. A quantity that was not reported is missing."""
    spans = [span for node in nodes for span in node.spans_of(quantities)]
    selection = selection_of((span.metric, span.variant) for span in spans)
    if not selection:
        return [{} for _ in nodes]
    means = await store.worker_means(SeriesQuery(owner, EventType.SCALAR, selection), grid)
    read = {(one.metric, one.variant, one.worker): one for one in means}
    return [_curves(node, quantities, read) for node in nodes]


def _curves(node: Node, quantities: Collection[Quantity], read: dict[tuple[str, str, str], WorkerMeans]) -> Curves:
    curves: Curves = {}
    for (quantity, device), spans in sorted(node.series.items(), key=lambda one: one[0][1]):
        parts = [read[span[:3]] for span in spans if span[:3] in read] if quantity in quantities else []
        if parts:
            curves.setdefault(quantity, {})[device] = _of_points(parts)
    return curves


def _of_points(parts: Sequence[WorkerMeans]) -> Curve:
    """The mean of all points of a device in each step, whichever worker reported them.

    A node that was started again may have another worker name. For example, in one step the old worker reported one
    point, 10, and the new one two points with a mean of 40. The mean of all three is (10 + 2 · 40) / 3 = 30.
    """
    if len(parts) == 1:
        credible = np.abs(parts[0].means) <= _MOST
        return Curve(parts[0].steps[credible], parts[0].means[credible])
    steps, where = np.unique(np.concatenate([part.steps for part in parts]), return_inverse=True)
    counts, means = (np.concatenate([getattr(part, name) for part in parts]) for name in ("counts", "means"))
    credible = np.abs(means) <= _MOST
    counts, where = counts[credible], where[credible]
    of_step = np.bincount(where, counts, len(steps))
    some = of_step > 0
    sums = np.bincount(where, means[credible] * counts, len(steps))
    return Curve(steps[some], sums[some] / of_step[some])


def mean(curves: Collection[Curve]) -> Curve:
    """The mean of curves, at each step that at least one of them has. Curves without a value there do not count."""
    if len(curves) < 2:
        return next(iter(curves), NOTHING)
    steps, where = np.unique(np.concatenate([curve.steps for curve in curves]), return_inverse=True)
    values = np.concatenate([curve.values for curve in curves])
    return Curve(steps, np.bincount(where, values, len(steps)) / np.bincount(where, minlength=len(steps)))
