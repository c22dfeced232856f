"""The input of each section of the benchmark: a folder for its data, the sizes of the work, and the table to fill."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.table import Table


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work each measurement does. The names of the figures contain the full sizes."""

    runs: int = 21
    """How often a latency is measured."""
    restarts: int = 5
    pings: int = 500
    bodies: int = 200
    """Bodies of 10k events, by one client."""
    small_bodies: int = 500
    client_bodies: int = 1500
    """Bodies of 100 events, by each of eight clients."""
    bounded_rounds: int = 100
    """Of some batches of each shape, for servers with bounds and without."""
    bounded_batches: int = 40
    """At most so many of a shape in a round."""
    log_bodies: int = 150
    memory_bodies: int = 250
    """Bodies of 10k events, by each of four clients."""
    engine_points: int = 2_000_000
    engine_small_points: int = 1_000_000
    wide_points: int = 100_000
    """Points of each of ten series."""
    long_points: int = 10_000_000
    shared_points: int = 50_000
    """Points of each of ten series, in each of ten tasks."""
    log_lines: int = 10_000_000
    sealed_points: int = 1_000_000
    statistics_series: int = 5000
    group_runs: int = 1000
    group_points: int = 10_000
    """Points of one series of each of these runs."""
    monitored_points: int = 20_160
    """Points of each of 57 series."""
    preview_bodies: int = 100
    """Bodies of 10k log lines."""
    listed_tasks: int = 100_000
    listed_projects: int = 1_000
    list_runs: int = 7
    sdks: tuple[int, int] = (1000, 2500)
    sdk_rounds: int = 6
    sdk_seconds: float = 5
    """Of a round, in which each SDK reports once."""
    exported_points: int = 10_000_000
    charted_runs: int = 200
    watched_tasks: int = 1000
    live_tasks: int = 200
    live_readers: int = 2000
    live_seconds: float = 30
    live_pause: float = 3
    """Seconds until all readers that have begun are taken to wait."""
    viewed_points: int = 100_000
    """Points of each of 200 series of the run that the pages show."""
    viewed_runs: tuple[int, int] = (100, 1000)
    """Runs that a page shows one by one, and in groups."""
    viewed_tasks: int = 100_000
    followed_seconds: float = 60
    scrolled_seconds: float = 3
    compared_points: int = 10_000
    """Points of each of 200 series that web UIs show."""
    import_points: int = 2_000_000
    deleted_points: int = 1_000_000
    backup_points: int = 20_000_000
    """In a thousand series."""
    backup_bodies: int = 300
    """Bodies of 10k points, by each of two clients."""
    backup_rounds: int = 5
    """How often clients write during backups, and without."""
    other_points: int = 1_000_000
    growth_points: int = 100_000_000
    """Points in other tasks after the data folder has grown (`other_points` before); 0: it does not grow."""
    documents: int = 20_000
    peer_bodies: int = 200
    """Bodies of 1000 points, the most that MLflow takes."""
    peer_points: int = 100_000
    """Points of each of ten series."""
    waits: bool = True
    """Whether to wait until background work has ended, if that belongs to the figure."""


QUICK = Sizes(
    runs=2,
    restarts=1,
    pings=5,
    bodies=2,
    small_bodies=5,
    client_bodies=3,
    bounded_rounds=2,
    bounded_batches=1,
    log_bodies=2,
    memory_bodies=1,
    engine_points=20_000,
    engine_small_points=10_000,
    wide_points=1000,
    long_points=20_000,
    shared_points=200,
    log_lines=20_000,
    sealed_points=20_000,
    statistics_series=50,
    group_runs=20,
    group_points=300,
    monitored_points=1000,
    preview_bodies=1,
    listed_tasks=300,
    listed_projects=20,
    list_runs=1,
    sdks=(5, 10),
    sdk_rounds=1,
    sdk_seconds=0.2,
    exported_points=20_000,
    charted_runs=5,
    watched_tasks=20,
    live_tasks=3,
    live_readers=10,
    live_seconds=2,
    live_pause=0.1,
    viewed_points=100,
    viewed_runs=(3, 5),
    viewed_tasks=300,
    followed_seconds=0.1,
    scrolled_seconds=0.3,
    compared_points=100,
    import_points=2_000,
    deleted_points=10_000,
    backup_points=100_000,
    backup_bodies=1,
    backup_rounds=1,
    other_points=20_000,
    growth_points=60_000,
    documents=10,
    peer_bodies=2,
    peer_points=200,
    waits=False,
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a section."""

    folder: Path
    sizes: Sizes
    table: Table
