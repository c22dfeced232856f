"""Turns the `machine_stats` that workers report into series of the history. Metrics have the same names.

Each GPU is a variant, so it has a curve of its own. Of CPU cores only mean, minimum and maximum are stored, because
machines have hundreds of cores, and no call asks for a single one:

    {"memory_used": 512, "gpu_usage": [10, 90], "cpu_usage": [20, 40]}  becomes
    memory_used/total 512, gpu_usage/0 10, gpu_usage/1 90, cpu_usage/avg 30, cpu_usage/min 20, cpu_usage/max 40
"""

from __future__ import annotations

from typing import Any

from apiserver.services.history.steps import ChartCurve, Steps, combined
from apiserver.services.history.store import HistorySeries

_AGGREGATIONS = ("avg", "min", "max")
#: The variant of a metric with one value per machine.
_TOTAL = "total"


def values_of(machine_stats: dict[str, Any]) -> dict[HistorySeries, float]:
    """The values of one report."""
    values: dict[HistorySeries, float] = {}
    for metric, value in machine_stats.items():
        if not isinstance(value, list):
            values[metric, _TOTAL] = value
        elif has_parts(metric):
            values.update({(metric, str(number)): one for number, one in enumerate(value)})
        elif value:
            whole = (sum(value) / len(value), min(value), max(value))
            values.update({(metric, name): one for name, one in zip(_AGGREGATIONS, whole, strict=True)})
    return values


def has_parts(metric: str) -> bool:
    """Whether a metric has one value per GPU."""
    return metric.startswith("gpu_")


def curves_of(metric: str, curves: dict[HistorySeries, ChartCurve]) -> dict[str, ChartCurve]:
    """The curves of a metric by variant; curves of GPUs are sorted by number."""
    found = {variant: curve for (of, variant), curve in curves.items() if of == metric}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def curve_of(metric: str, aggregation: str, curves: dict[HistorySeries, ChartCurve], steps: Steps) -> ChartCurve:
    """One curve for all variants of a metric. Only this aggregation (avg, min or max) may be read from it."""
    found = curves_of(metric, curves)
    return found[aggregation] if aggregation in found else combined(steps, found.values())
