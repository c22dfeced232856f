"""Measures the limits beside the figures: the least that the same work costs with the libraries that do it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from benchmarks.processes import median_cpu_ns, median_ms


class _Line(msgspec.Struct, tag_field="type", gc=False, kw_only=True):
    task: str = ""
    metric: str = ""
    variant: str = ""
    worker: str = ""
    timestamp: int | None = None


class _Scalar(_Line, tag="training_stats_scalar", gc=False, kw_only=True):
    iter: int = 0
    value: float | None = None


class _Log(_Line, tag="log", gc=False, kw_only=True):
    level: str = ""
    msg: str = ""


_typed: msgspec.json.Decoder[_Scalar | _Log] = msgspec.json.Decoder(_Scalar | _Log)
_untyped = msgspec.json.Decoder(dict[str, Any])

_Columns = tuple[list[int], list[int | None], list[float | None]]


def decode_and_group(body: bytes) -> list[tuple[Any, ...]]:
    """The least that a server in Python does to a body of scalars: typed lines, and three columns a series."""
    groups: dict[tuple[str, str], _Columns] = {}
    for line in _typed.decode_lines(body):
        if isinstance(line, _Scalar):
            columns = groups.get((line.metric, line.variant))
            if columns is None:
                columns = groups[line.metric, line.variant] = ([], [], [])
            columns[0].append(line.iter)
            columns[1].append(line.timestamp)
            columns[2].append(line.value)
    return [
        (np.array(iters, np.int64), np.array(times, np.int64), np.array(values, np.float64))
        for iters, times, values in groups.values()
    ]


def decode_and_group_ns(body: bytes, runs: int) -> float:
    """CPU nanoseconds an event of the typed decode and the grouping."""
    return median_cpu_ns(lambda: decode_and_group(body), runs) / (body.count(b"\n") + 1)


def decode_ns(body: bytes, runs: int) -> float:
    """CPU nanoseconds an event of the typed decode alone."""
    return median_cpu_ns(lambda: _typed.decode_lines(body), runs) / (body.count(b"\n") + 1)


def dicts_ns(body: bytes, runs: int) -> float:
    """CPU nanoseconds an event of the decode into dicts."""
    return median_cpu_ns(lambda: _untyped.decode_lines(body), runs) / (body.count(b"\n") + 1)


def reduce_ms(points: int, buckets: int, series: int, runs: int) -> float:
    """Milliseconds to sum `points` float64 in memory into buckets, for each of the series after another."""
    values = np.random.default_rng(0).normal(size=points)
    starts = np.linspace(0, points, min(buckets, points), endpoint=False).astype(np.int64)
    return median_ms(lambda: [np.add.reduceat(values, starts) for _ in range(series)], runs)
