"""The resources of a machine that the server knows, and the names of the scalars that report them.

The SDK's resource monitor reports most of them, in metrics like `:monitor:machine` and `:monitor:gpu`. Users can report
the others as scalars with these names. If several nodes work on one task, `CLEARML_MULTI_NODE_SINGLE_TASK` says how the
SDK names the rank of a node. For example, the CPU usage of a node is reported as

- `:monitor:machine` cpu_usage by the first node, and by a job of one node;
- `:monitor:machine:rank1` cpu_usage by the node with rank 1, if the setting is 1;
- `:monitor:cpu_usage` rank 1 by the node with rank 1, if the setting is 2. Then the first node reports its usage twice,
  also as `rank 0`.
"""

from __future__ import annotations

import re
from enum import Enum, StrEnum
from typing import NamedTuple

from apiserver.events.model import Selection, SeriesName, selection_of
from apiserver.events.monitors import PREFIX


class Unit(StrEnum):
    """The unit of a quantity's values."""

    PERCENT = "%"
    GIBIBYTES = "GiB"
    MEBIBYTES_A_SECOND = "MiB/s"


class Kind(StrEnum):
    """The kind of device that a quantity belongs to. `:monitor:` and this name are the metric."""

    MACHINE = "machine"
    GPU = "gpu"
    NPU = "npu"


class Quantity(Enum):
    """The known quantities. Variants of a GPU or NPU begin with its kind and number: `gpu_0_utilization`."""

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
    # The SDK does not report the following ones.
    NPU_UTILIZATION = (Kind.NPU, "utilization", Unit.PERCENT)
    NPU_MEMORY_USAGE = (Kind.NPU, "mem_usage", Unit.PERCENT)
    EPHEMERAL_STORAGE_USED = (Kind.MACHINE, "ephemeral_storage_used_gb", Unit.GIBIBYTES)
    EPHEMERAL_STORAGE_USAGE = (Kind.MACHINE, "ephemeral_storage_usage", Unit.PERCENT)
    CACHE_USED = (Kind.MACHINE, "cache_used_gb", Unit.GIBIBYTES)
    CACHE_USAGE = (Kind.MACHINE, "cache_usage", Unit.PERCENT)

    def __init__(self, kind: Kind, name_in_variant: str, unit: Unit) -> None:
        self.kind = kind
        self.name_in_variant = name_in_variant
        self.unit = unit


class Resource(NamedTuple):
    """The quantity that a scalar reports, of which device and node.

    `device` is 0 for quantities of the whole machine; `rank` is None if the scalar's name has none.
    """

    quantity: Quantity
    device: int
    rank: int | None


_BY_NAME = {(quantity.kind, quantity.name_in_variant): quantity for quantity in Quantity}
_OF_KIND = re.compile(r":monitor:(machine|gpu|npu)(?::rank0*([0-9]{1,9}))?")
_OF_ANY = re.compile(r":monitor:([a-z_0-9]+)")
_RANK = re.compile(r"rank 0*([0-9]{1,9})")
_DEVICE = re.compile(r"(gpu|npu)_([0-9]{1,9})_(.+)")


def resource_of(metric: str, variant: str) -> Resource | None:
    """The resource that a scalar with this name reports; None if it is not a known one."""
    if (found := _OF_KIND.fullmatch(metric)) is not None:
        kind, device, name = _parts(variant)
        return _resource(kind, device, name, found[2]) if kind == found[1] else None
    named, ranked = _OF_ANY.fullmatch(metric), _RANK.fullmatch(variant)
    return _resource(*_parts(named[1]), ranked[1]) if named is not None and ranked is not None else None


def _parts(variant: str) -> tuple[Kind, int, str]:
    """The kind, the number of the device, and the name of the quantity: gpu, 0 and utilization."""
    found = _DEVICE.fullmatch(variant)
    return (Kind(found[1]), int(found[2]), found[3]) if found is not None else (Kind.MACHINE, 0, variant)


def _resource(kind: Kind, device: int, name: str, rank: str | None) -> Resource | None:
    quantity = _BY_NAME.get((kind, name))
    return None if quantity is None else Resource(quantity, device, None if rank is None else int(rank))


def monitored(series: list[SeriesName]) -> Selection:
    """The series that report a known resource."""
    return selection_of(
        (metric, variant)
        for _, metric, variant in series
        if metric.startswith(PREFIX) and resource_of(metric, variant) is not None
    )
