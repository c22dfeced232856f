"""The quantities of serving containers that have charts, and how they are read from a container's report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apiserver.events.model import Float64Array
from apiserver.services.history.store import HistorySeries


@dataclass(frozen=True, slots=True)
class ChartedQuantity:
    """How a quantity is charted."""

    title: str
    combined: Callable[[Float64Array], Float64Array]
    """Makes one row of the containers' rows. NaN is a step without a report."""
    factor: float = 1.0
    """Turns reported values into the chart's unit."""


def _sum(values: Float64Array) -> Float64Array:
    return np.asarray(np.nansum(values, axis=0))


def _mean(values: Float64Array) -> Float64Array:
    there = np.isfinite(values).sum(axis=0)
    return np.asarray(np.divide(np.nansum(values, axis=0), there, out=np.zeros(values.shape[1]), where=there > 0))


_GB_OF_MB = 1 / 1024

REQUESTS = "requests"
QUANTITIES = {
    REQUESTS: ChartedQuantity("Number of Requests", _sum),
    "requests_min": ChartedQuantity("Requests per Minute", _sum),
    "latency_ms": ChartedQuantity("Average Latency (ms)", _mean),
    "cpu_count": ChartedQuantity("CPU Count", _sum),
    "gpu_count": ChartedQuantity("GPU Count", _sum),
    "cpu_util": ChartedQuantity("Average CPU Load (%)", _mean),
    "gpu_util": ChartedQuantity("Average GPU Utilization (%)", _mean),
    "ram_total": ChartedQuantity("RAM Total (GB)", _sum, _GB_OF_MB),
    "ram_used": ChartedQuantity("RAM Used (GB)", _sum, _GB_OF_MB),
    "ram_free": ChartedQuantity("RAM Free (GB)", _sum, _GB_OF_MB),
    "gpu_ram_total": ChartedQuantity("GPU RAM Total (GB)", _sum, _GB_OF_MB),
    "gpu_ram_used": ChartedQuantity("GPU RAM Used (GB)", _sum, _GB_OF_MB),
    "gpu_ram_free": ChartedQuantity("GPU RAM Free (GB)", _sum, _GB_OF_MB),
    "network_rx": ChartedQuantity("Network Throughput RX (MBps)", _sum),
    "network_tx": ChartedQuantity("Network Throughput TX (MBps)", _sum),
}


def series_of(quantity: str) -> HistorySeries:
    """The series of a quantity in the history."""
    return quantity, "total"


def values_of(report: dict[str, Any]) -> dict[HistorySeries, float]:
    """The value of each quantity in a status report."""
    machine = report.get("machine_stats") or {}
    values: dict[str, float | None] = {
        REQUESTS: report.get("requests_num"),
        "requests_min": report.get("requests_min"),
        "latency_ms": report.get("latency_ms"),
        "network_rx": machine.get("network_rx"),
        "network_tx": machine.get("network_tx"),
    }
    for kind in ("cpu", "gpu"):
        if usage := machine.get(f"{kind}_usage"):
            values |= {f"{kind}_count": len(usage), f"{kind}_util": sum(usage) / len(usage)}
    for name, memory in (("ram", "memory"), ("gpu_ram", "gpu_memory")):
        used, free = (_sum_of(machine.get(f"{memory}_{part}")) for part in ("used", "free"))
        sizes = [part for part in (used, free) if part is not None]
        values |= {f"{name}_used": used, f"{name}_free": free, f"{name}_total": _sum_of(sizes)}
    return {series_of(name): value for name, value in values.items() if value is not None}


def count(machine_stats: dict[str, Any] | None, kind: str) -> int:
    """How many cores (`cpu`) or cards (`gpu`) a report has."""
    return len((machine_stats or {}).get(f"{kind}_usage") or ())


def _sum_of(values: float | Sequence[float] | None) -> float | None:
    if isinstance(values, Sequence):
        return sum(values) if values else None
    return values
