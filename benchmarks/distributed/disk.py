"""Measures what events take on disk once they are compacted and merged, and what the plain documents of them take."""

from __future__ import annotations

from benchmarks.distributed.figures import PLAIN
from benchmarks.distributed.plain import LINES, POINTS
from benchmarks.distributed.run import Run


def measure(run: Run, points: int, lines: int) -> None:
    """The figures disk.*, of so many points and lines in all."""
    if run.sizes.waits:
        run.server.wait_until_compacted()
        run.engines.wait_until_let_go()
    for key, pattern, kind, count in (
        ("disk.points", "*scalars", POINTS, points),
        ("disk.lines", "*logs", LINES, lines),
    ):
        taken = run.engines.merged_bytes(f"{run.engines.name}-{pattern}-*") / count
        run.table.put(key, taken, {PLAIN: run.engines.merged_bytes(run.plain.index(kind)) / count})
