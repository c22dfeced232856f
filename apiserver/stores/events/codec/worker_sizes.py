"""How much each worker logged, of lines in columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from apiserver.events.log_text import sizes_of, text_of
from apiserver.events.model import Int64Array, LogSize
from apiserver.stores.events.codec.lines import Column, Lines
from apiserver.stores.events.codec.points import grouped

#: The name of each worker, the timestamp of its first line, and the bytes of all of them as text.
Sizes = list[tuple[str, int, int]]


def of_lines(lines: Lines) -> Sizes:
    """How much each worker logged of these lines; there must be at least one."""
    if len(lines.workers.table) == 1:
        return [(lines.workers.table[0], int(lines.timestamps[0]), len(text_of(lines.messages)))]
    return by_worker(lines.workers, lines.timestamps, sizes_of(lines.messages))


def by_worker(workers: Column, timestamps: Int64Array, sizes: Int64Array) -> Sizes:
    """How much each worker logged, if each line's worker, timestamp and size are these."""
    order, starts = grouped(workers.places)
    names = [workers.table[number] for number in workers.places[order[starts]].tolist()]
    first, bytes = np.minimum.reduceat(timestamps[order], starts), np.add.reduceat(sizes[order], starts)
    return list(zip(names, first.tolist(), bytes.tolist(), strict=True))


def add(totals: dict[str, LogSize], sizes: Iterable[tuple[str, int, int]]) -> None:
    """Add the sizes of further lines to the totals of workers."""
    for worker, first, size in sizes:
        total = totals.get(worker)
        totals[worker] = LogSize(first, size) if total is None else LogSize(min(first, total[0]), size + total[1])
