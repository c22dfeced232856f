"""The input of each section: the engines, two servers, the sizes of the work, and the table to fill."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.distributed.engines import Engines
from benchmarks.server import Running
from benchmarks.table import Table


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work each measurement does. The names of the figures contain the full sizes."""

    runs: int = 21
    """How often a latency is measured."""
    pings: int = 500
    batch: int = 10_000
    """Events in a body."""
    rounds: int = 5
    bodies: int = 10
    """Bodies in a round, by one client."""
    small_bodies: int = 300
    wide_bodies: int = 100
    """Bodies for the task of ten series whose histogram is read."""
    other_bodies: int = 25
    """Bodies for each of four other tasks."""
    log_bodies: int = 100
    watched_tasks: int = 1000
    seconds_to_settle: float = 35
    """How long after a flush the node keeps sources to bring replicas up to date, and some more."""


QUICK = Sizes(
    runs=2,
    pings=5,
    batch=500,
    rounds=1,
    bodies=1,
    small_bodies=3,
    wide_bodies=1,
    other_bodies=1,
    log_bodies=1,
    watched_tasks=10,
    seconds_to_settle=0,
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of all sections."""

    engines: Engines
    server: Running
    second: Running
    sizes: Sizes
    table: Table
