"""The smoothings of `apiserver.events.smoothing`, in plain Python, point by point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import median

from apiserver.events.smoothing import Kind, Smoothing


def smoothed(smoothing: Smoothing, x: Sequence[int], values: Sequence[float]) -> list[float]:
    """Each value of a whole curve, smoothed."""
    match smoothing.kind:
        case Kind.MEAN | Kind.MEDIAN:
            return _in_windows(smoothing, values)
        case Kind.DERIVATIVE:
            return _derivative(x, values)
        case Kind.EXPONENTIAL:
            return _averaged(values, [smoothing.weight] * len(values))
        case Kind.EXPONENTIAL_BY_X:
            finite = [place for place, value in zip(x, values, strict=True) if math.isfinite(value)]
            chart = 1000 / max(x[-1] - x[0], 1)
            weight = min(math.sqrt(smoothing.weight), 0.999)
            steps = iter([0.0, *(float(b) - float(a) for a, b in itertools.pairwise(finite))])
            return _averaged(values, [weight ** (next(steps) * chart) if math.isfinite(v) else 0 for v in values])


def _averaged(values: Sequence[float], decays: Sequence[float]) -> list[float]:
    """The average of all values so far, in which each one counts less by the decay of each value after it."""
    total = count = 0.0
    found = []
    for value, decay in zip(values, decays, strict=True):
        if math.isfinite(value):
            total, count = total * decay + value, count * decay + 1
        found.append(total / count if math.isfinite(value) else value)
    return found


def _derivative(x: Sequence[int], values: Sequence[float]) -> list[float]:
    before: tuple[float, float] | None = None
    found = []
    for place, value in zip(x, values, strict=True):
        if not math.isfinite(value):
            found.append(value)
            continue
        step = 0.0 if before is None else float(place) - before[0]
        found.append((value - before[1]) / step if before is not None and step else math.nan)
        before = float(place), value
    return found


def _in_windows(smoothing: Smoothing, values: Sequence[float]) -> list[float]:
    ahead = smoothing.points // 2
    behind = smoothing.points - 1 - ahead
    found = []
    for n in range(len(values)):
        window = [value for value in values[max(0, n - behind) : n + ahead + 1] if math.isfinite(value)]
        middle = median if smoothing.kind is Kind.MEDIAN else lambda some: math.fsum(some) / len(some)
        found.append(middle(window) if window else math.nan)
    return found
