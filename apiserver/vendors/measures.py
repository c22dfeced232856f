"""The measures that vendors' metrics are made of, each from a node's curves: in percent, bytes, or MiB a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from apiserver.vendors.jobs import Machine
from apiserver.vendors.monitoring.curves import NOTHING, Curve, Curves, mean
from apiserver.vendors.monitoring.quantities import Quantity, Unit

_FACTORS = {Unit.PERCENT: 1, Unit.GIBIBYTES: 2**30, Unit.MEBIBYTES_A_SECOND: 1}


@dataclass(slots=True, frozen=True)
class Measure:
    """One curve of a node: the quantities that it needs, and the function that makes it of them."""

    quantities: tuple[Quantity, ...]
    read: Callable[[Curves, Machine], Curve]


def mean_of(quantity: Quantity) -> Measure:
    """The mean over all devices of a node. A device that reports more often does not count more."""
    return Measure((quantity,), lambda curves, machine: mean(by_device(curves, quantity).values()))


def by_device(curves: Curves, quantity: Quantity) -> dict[int, Curve]:
    """The curve of each device."""
    factor = _FACTORS[quantity.unit]
    return {device: Curve(steps, values * factor) for device, (steps, values) in curves.get(quantity, {}).items()}


def _memory_usage(curves: Curves, machine: Machine) -> Curve:
    used, free = (mean(curves.get(one, {}).values()) for one in (Quantity.MEMORY_USED, Quantity.MEMORY_FREE))
    if machine.memory_gib:
        return Curve(used.steps, used.values / machine.memory_gib * 100)
    steps, in_used, in_free = np.intersect1d(used.steps, free.steps, assume_unique=True, return_indices=True)
    in_use, total = used.values[in_used], used.values[in_used] + free.values[in_free]
    some = total > 0
    return Curve(steps[some], in_use[some] / total[some] * 100)


def _cores(curves: Curves, machine: Machine) -> Curve:
    if not machine.cores:
        return NOTHING
    steps, values = mean(curves.get(Quantity.CPU_USAGE, {}).values())
    return Curve(steps, values / 100 * machine.cores)


#: Percent of the machine's memory. If its size is not known, used and free memory together are taken for it.
MEMORY_USAGE = Measure((Quantity.MEMORY_USED, Quantity.MEMORY_FREE), _memory_usage)
#: The processors in use, in cores. Without points if the number of cores is not known.
CORES = Measure((Quantity.CPU_USAGE,), _cores)
