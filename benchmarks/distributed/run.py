"""The input of each section: the engines, two servers, the sizes of the work, and the table to fill."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.distributed.engines import Engines
from benchmarks.distributed.plain import Plain
from benchmarks.server import Running
from benchmarks.table import Table


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work each measurement does. The names of the figures contain the full sizes."""

    runs: int = 21
    """How often a latency is measured."""
    firsts: int = 3
    """Of how many tasks the latency of a first read is measured. All of them fit into the server's cache."""
    searches: int = 300
    """How many reads of other tasks come before these. Each of them asks Elasticsearch."""
    restarts: int = 5
    """How often the latency of a first read after a restart is measured."""
    pings: int = 500
    batch: int = 10_000
    """Events in a body."""
    rounds: int = 5
    bodies: int = 20
    """Bodies in a round, of all clients."""
    small_bodies: int = 300
    wide_bodies: int = 100
    """Bodies for the task of ten series whose histogram is read."""
    other_bodies: int = 25
    """Bodies for each of four other tasks."""
    log_bodies: int = 100
    copied_points: int = 5_000_000
    copied_lines: int = 1_000_000
    watched_tasks: int = 1000
    curve_points: int = 500_000
    """Points of each kind of curves."""
    waits: bool = True
    """Whether what servers and nodes do in the background ends before a figure that it is a part of."""


QUICK = Sizes(
    runs=2,
    firsts=1,
    searches=3,
    restarts=1,
    pings=5,
    batch=500,
    rounds=1,
    bodies=1,
    small_bodies=3,
    wide_bodies=1,
    other_bodies=1,
    log_bodies=1,
    copied_points=20_000,
    copied_lines=2_000,
    watched_tasks=10,
    curve_points=10_000,
    waits=False,
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of all sections."""

    engines: Engines
    plain: Plain
    server: Running
    second: Running
    sizes: Sizes
    table: Table
