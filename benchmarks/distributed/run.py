"""What a section gets, and how much it is to do."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.distributed.engines import Engines
from benchmarks.server import Running
from benchmarks.table import Table


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything. The names of the figures tell the full sizes."""

    runs: int = 21
    """How often a latency is measured."""
    pings: int = 500
    batch: int = 10_000
    """Events of a body."""
    rounds: int = 5
    bodies: int = 10
    """A round, by one client."""
    small_bodies: int = 300
    wide_bodies: int = 100
    """For the task of ten series whose histogram is read."""
    other_bodies: int = 25
    """To each of four other tasks."""
    log_bodies: int = 100
    seconds_to_settle: float = 35
    """After which what is on disk needs nothing more to bring other nodes up to date."""


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
    seconds_to_settle=0,
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the engines, two servers on them, and the table to fill."""

    engines: Engines
    server: Running
    second: Running
    sizes: Sizes
    table: Table
