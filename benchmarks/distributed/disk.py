"""Measures what events take on disk once they are merged."""

from __future__ import annotations

import time

from benchmarks.distributed.run import Run


def measure(run: Run) -> None:
    """The figures disk.*"""
    run.engines.flush()
    time.sleep(run.sizes.seconds_to_settle)
    run.table.put("disk.points", run.engines.merged_bytes("scalars"))
    run.table.put("disk.lines", run.engines.merged_bytes("logs"))
