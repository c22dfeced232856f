"""The state of a machine, as workers report it, as values of series: metrics by their names in `machine_stats`.

Cards are variants by their numbers, so that each has a curve of its own. Of cores only the mean, the least and the
greatest are kept: machines have hundreds of them, and nobody asks for one.
"""

from __future__ import annotations

from typing import Any

from apiserver.services.history.steps import ChartCurve, Steps, combined
from apiserver.services.history.store import Series

_AGGREGATIONS = ("avg", "min", "max")
#: The variant of a value that a machine has once.
_TOTAL = "total"


def values_of(machine_stats: dict[str, Any]) -> dict[Series, float]:
    """The values of one report."""
    values: dict[Series, float] = {}
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
    """Whether a metric has a value a card."""
    return metric.startswith("gpu_")


def curves_of(metric: str, curves: dict[Series, ChartCurve]) -> dict[str, ChartCurve]:
    """The curves of a metric's variants, those of cards in the order of their numbers."""
    found = {variant: curve for (of, variant), curve in curves.items() if of == metric}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def curve_of(metric: str, aggregation: str, curves: dict[Series, ChartCurve], steps: Steps) -> ChartCurve:
    """The curve of all values of a metric, good for this aggregation."""
    found = curves_of(metric, curves)
    return found[aggregation] if aggregation in found else combined(steps, found.values())
