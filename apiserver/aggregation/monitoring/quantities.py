"""What can be known of a machine, and the names of the scalars that say it.

The SDK's resource monitor reports `:monitor:machine` and `:monitor:gpu`. Of several nodes on one task, those beyond the
first add their rank: `:monitor:machine:rank1`, or, as every node does in another mode of it, the series `rank 1` of
`:monitor:cpu_usage` (`CLEARML_MULTI_NODE_SINGLE_TASK` = 1 or 2). What it does not report, anyone may, by these names.
"""

from __future__ import annotations

import re
from enum import Enum, StrEnum
from typing import NamedTuple

from apiserver.events.model import Selection, SeriesName, selection_of
from apiserver.events.monitors import PREFIX


class Unit(StrEnum):
    """What values count."""

    PERCENT = "%"
    GIBIBYTES = "GiB"
    MEBIBYTES_A_SECOND = "MiB/s"


class Kind(StrEnum):
    """What a quantity is of: `:monitor:` and its name are the metric."""

    MACHINE = "machine"
    GPU = "gpu"
    NPU = "npu"


class Named(NamedTuple):
    """A quantity's kind, its name in the variant, and its unit."""

    kind: Kind
    name: str
    unit: Unit


class Quantity(Enum):
    """What can be known, by its `Named`. Variants of devices begin with kind and number: `gpu_0_utilization`."""

    CPU_USAGE = (Kind.MACHINE, "cpu_usage", Unit.PERCENT)
    MEMORY_USED = (Kind.MACHINE, "memory_used_gb", Unit.GIBIBYTES)
    MEMORY_FREE = (Kind.MACHINE, "memory_free_gb", Unit.GIBIBYTES)
    NETWORK_RECEIVED = (Kind.MACHINE, "network_rx_mbs", Unit.MEBIBYTES_A_SECOND)
    NETWORK_SENT = (Kind.MACHINE, "network_tx_mbs", Unit.MEBIBYTES_A_SECOND)
    DISK_READ = (Kind.MACHINE, "io_read_mbs", Unit.MEBIBYTES_A_SECOND)
    DISK_WRITTEN = (Kind.MACHINE, "io_write_mbs", Unit.MEBIBYTES_A_SECOND)
    GPU_UTILIZATION = (Kind.GPU, "utilization", Unit.PERCENT)
    GPU_MEMORY_USAGE = (Kind.GPU, "mem_usage", Unit.PERCENT)
    GPU_MEMORY_USED = (Kind.GPU, "mem_used_gb", Unit.GIBIBYTES)
    # These the SDK does not report.
    NPU_UTILIZATION = (Kind.NPU, "utilization", Unit.PERCENT)
    NPU_MEMORY_USAGE = (Kind.NPU, "mem_usage", Unit.PERCENT)
    EPHEMERAL_STORAGE_USED = (Kind.MACHINE, "ephemeral_storage_used_gb", Unit.GIBIBYTES)
    EPHEMERAL_STORAGE_USAGE = (Kind.MACHINE, "ephemeral_storage_usage", Unit.PERCENT)
    CACHE_USED = (Kind.MACHINE, "cache_used_gb", Unit.GIBIBYTES)
    CACHE_USAGE = (Kind.MACHINE, "cache_usage", Unit.PERCENT)

    @property
    def kind(self) -> Kind:
        """What it is of."""
        return self.named.kind

    @property
    def unit(self) -> Unit:
        """What its values count."""
        return self.named.unit

    @property
    def named(self) -> Named:
        """Kind, name and unit."""
        return Named(*self.value)


class Resource(NamedTuple):
    """What a scalar is about: the device's number is 0 for a machine, the node's rank None where nobody said it."""

    quantity: Quantity
    device: int
    rank: int | None


_BY_NAME = {quantity.named[:2]: quantity for quantity in Quantity}
_OF_KIND = re.compile(r":monitor:(machine|gpu|npu)(?::rank0*([0-9]{1,9}))?")
_OF_ANY = re.compile(r":monitor:([a-z_0-9]+)")
_RANK = re.compile(r"rank 0*([0-9]{1,9})")
_DEVICE = re.compile(r"(gpu|npu)_([0-9]{1,9})_(.+)")


def resource_of(metric: str, variant: str) -> Resource | None:
    """What the scalar of this name is about; None for all that is not known here."""
    if (found := _OF_KIND.fullmatch(metric)) is not None:
        kind, device, name = _parts(variant)
        return _resource(kind, device, name, found[2]) if kind == found[1] else None
    named, ranked = _OF_ANY.fullmatch(metric), _RANK.fullmatch(variant)
    return _resource(*_parts(named[1]), ranked[1]) if named is not None and ranked is not None else None


def _parts(variant: str) -> tuple[Kind, int, str]:
    """Kind, number of the device, and name of the quantity."""
    found = _DEVICE.fullmatch(variant)
    return (Kind(found[1]), int(found[2]), found[3]) if found is not None else (Kind.MACHINE, 0, variant)


def _resource(kind: Kind, device: int, name: str, rank: str | None) -> Resource | None:
    quantity = _BY_NAME.get((kind, name))
    return None if quantity is None else Resource(quantity, device, None if rank is None else int(rank))


def monitored(series: list[SeriesName]) -> Selection:
    """Those of the series that are about a resource."""
    return selection_of(
        (metric, variant)
        for _, metric, variant in series
        if metric.startswith(PREFIX) and resource_of(metric, variant) is not None
    )
