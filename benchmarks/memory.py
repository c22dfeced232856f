"""Measures memory while four clients write at once."""

from __future__ import annotations

import sys

from benchmarks.bodies import BATCH
from benchmarks.processes import peak_memory_mb
from benchmarks.run import Run
from benchmarks.server import running

_CLIENTS = 4


def measure(run: Run) -> None:
    """The figures memory.peak and write.four."""
    with running(run.folder) as server:
        tasks = [server.task(f"client {number}") for number in range(_CLIENTS)]
        sent = server.send(tasks, "scalars", BATCH, run.sizes.memory_bodies)
        run.table.put("memory.peak", peak_memory_mb(server.pid))
        run.table.put("write.four", len(sent.latencies) * BATCH / sent.seconds)
        sys.stderr.write(f"{sent.refused} of {len(sent.latencies)} batches were refused at first (429 or 503)\n")
