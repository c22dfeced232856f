"""What the operating system tells of processes."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.processes import cpu_seconds, thread_seconds


def test_threads_are_told_by_their_names() -> None:
    name = Path("/proc/self/comm").read_text().strip()
    of_threads = thread_seconds(os.getpid(), name)
    assert 0 < of_threads <= cpu_seconds(os.getpid())
    assert thread_seconds(os.getpid(), "no such thread") == 0
