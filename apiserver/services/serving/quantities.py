"""What is charted of serving containers: by which name, as what, and how it is read from a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apiserver.events.model import Float64Array
from apiserver.services.history.store import Series


@dataclass(frozen=True, slots=True)
class Quantity:
    """A chart's title, how the values of all containers become one (NaN: none), and what they are multiplied by."""

    title: str
    together: Callable[[Float64Array], Float64Array]
    factor: float = 1.0


def _sum(values: Float64Array) -> Float64Array:
    return np.asarray(np.nansum(values, axis=0))


def _mean(values: Float64Array) -> Float64Array:
    there = np.isfinite(values).sum(axis=0)
    return np.asarray(np.divide(np.nansum(values, axis=0), there, out=np.zeros(values.shape[1]), where=there > 0))


_GB_OF_MB = 1 / 1024

REQUESTS = "requests"
QUANTITIES = {
    REQUESTS: Quantity("Number of Requests", _sum),
    "requests_min": Quantity("Requests per Minute", _sum),
    "latency_ms": Quantity("Average Latency (ms)", _mean),
    "cpu_count": Quantity("CPU Count", _sum),
    "gpu_count": Quantity("GPU Count", _sum),
    "cpu_util": Quantity("Average CPU Load (%)", _mean),
    "gpu_util": Quantity("Average GPU Utilization (%)", _mean),
    "ram_total": Quantity("RAM Total (GB)", _sum, _GB_OF_MB),
    "ram_used": Quantity("RAM Used (GB)", _sum, _GB_OF_MB),
    "ram_free": Quantity("RAM Free (GB)", _sum, _GB_OF_MB),
    "gpu_ram_total": Quantity("GPU RAM Total (GB)", _sum, _GB_OF_MB),
    "gpu_ram_used": Quantity("GPU RAM Used (GB)", _sum, _GB_OF_MB),
    "gpu_ram_free": Quantity("GPU RAM Free (GB)", _sum, _GB_OF_MB),
    "network_rx": Quantity("Network Throughput RX (MBps)", _sum),
    "network_tx": Quantity("Network Throughput TX (MBps)", _sum),
}


def series_of(quantity: str) -> Series:
    """The series that holds a quantity."""
    return quantity, "total"


def values_of(report: dict[str, Any]) -> dict[Series, float]:
    """What a status report says of each quantity."""
    machine = report.get("machine_stats") or {}
    found: dict[str, float | None] = {
        REQUESTS: report.get("requests_num"),
        "requests_min": report.get("requests_min"),
        "latency_ms": report.get("latency_ms"),
        "network_rx": machine.get("network_rx"),
        "network_tx": machine.get("network_tx"),
    }
    for kind in ("cpu", "gpu"):
        if usage := machine.get(f"{kind}_usage"):
            found |= {f"{kind}_count": len(usage), f"{kind}_util": sum(usage) / len(usage)}
    for name, memory in (("ram", "memory"), ("gpu_ram", "gpu_memory")):
        used, free = (_sum_of(machine.get(f"{memory}_{part}")) for part in ("used", "free"))
        known = [part for part in (used, free) if part is not None]
        found |= {f"{name}_used": used, f"{name}_free": free, f"{name}_total": _sum_of(known)}
    return {series_of(name): value for name, value in found.items() if value is not None}


def count(machine_stats: dict[str, Any] | None, kind: str) -> int:
    """How many cores (`cpu`) or cards (`gpu`) a report tells of."""
    return len((machine_stats or {}).get(f"{kind}_usage") or ())


def _sum_of(values: float | Sequence[float] | None) -> float | None:
    if isinstance(values, Sequence):
        return sum(values) if values else None
    return values
