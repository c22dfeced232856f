"""Measures time, and asks the operating system for the CPU time, memory and disk of processes and folders."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process, the processes that it started, those that these started, and so on."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time, user and system, that a process and those it started have used."""
    return sum(_ticks(Path(f"/proc/{one}")) for one in family(pid)) / _TICKS


def thread_seconds(pid: int, name: str) -> float:
    """The same of the threads of a process whose names contain a text, as far as they have not ended."""
    ticks = 0
    for path in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has just ended
            ticks += _ticks(path) if name in (path / "comm").read_text() else 0
    return ticks / _TICKS


def busy_seconds() -> float:
    """CPU time that all processes have used since the machine was started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq) / _TICKS


def own_seconds() -> float:
    """CPU time of this process, and of those that it started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _ticks(folder: Path) -> int:
    """What the folder of a process or a thread says that it has used."""
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def resident_mb(pid: int) -> float:
    """Resident memory of one process."""
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmRSS") / 1024


def anonymous_mb(pid: int) -> float:
    """Memory of one process without pages of files, which the system takes back when it needs them."""
    return _kilobytes(Path(f"/proc/{pid}/status"), "RssAnon") / 1024


def family_mb(pid: int) -> float:
    """Resident memory of a process and those it started. Memory that they share counts once."""
    return sum(_kilobytes(Path(f"/proc/{one}/smaps_rollup"), "Pss") for one in family(pid)) / 1024


def peak_memory_mb(pid: int) -> float:
    """The most resident memory that one process ever had."""
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmHWM") / 1024


def _kilobytes(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise RuntimeError(f"no {name} in {path}")


def folder_bytes(folder: Path) -> int:
    """Bytes of all files in a folder and the folders in it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0


def settled(value: Callable[[], float], seconds: float = 1.5, limit: float = 60) -> float:
    """The value once it has stayed the same for some seconds, or else after `limit` seconds."""
    deadline = time.monotonic() + limit
    last, since = value(), time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < seconds:
        time.sleep(0.1)
        if (now := value()) != last:
            last, since = now, time.monotonic()
    return last


def median_ms(action: Callable[[], object], runs: int) -> float:
    """The median time of an action in milliseconds, after one run that does not count."""
    action()
    return statistics.median(timed_ms(action) for _ in range(runs))


def timed_ms(action: Callable[[], object]) -> float:
    """The time of one run of an action in milliseconds."""
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def median_cpu_ns(action: Callable[[], object], runs: int) -> float:
    """The median CPU time of this thread for an action in nanoseconds, after one run that does not count."""
    action()
    taken = []
    for _ in range(runs):
        started = time.thread_time_ns()
        action()
        taken.append(time.thread_time_ns() - started)
    return statistics.median(taken)
