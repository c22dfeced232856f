"""Points by name, until they are given on together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from apiserver.transfer.importing.runs.model import Points


class Gathered:
    def __init__(self, named: Callable[[tuple[bytes, ...]], tuple[str, str]]) -> None:
        """`named`: the metric and variant of names."""
        self._named = named
        self._rows: dict[tuple[bytes, ...], list[tuple[int, int, float]]] = {}
        self.count = 0

    def add(self, names: tuple[bytes, ...], step: int, timestamp: int, value: float) -> None:
        rows = self._rows.get(names)
        if rows is None:
            rows = self._rows[names] = []
        rows.append((step, timestamp, value))
        self.count += 1

    def taken(self) -> Iterator[Points]:
        for names, rows in self._rows.items():
            steps, times, values = zip(*rows, strict=True)
            metric, variant = self._named(names)
            iters, timestamps = np.array(steps, np.int64), np.array(times, np.int64)
            yield Points(metric, variant, iters, timestamps, np.array(values, np.float64))
        self._rows, self.count = {}, 0
