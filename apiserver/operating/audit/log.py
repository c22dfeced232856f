"""Takes entries from a server and writes them in a thread, so that no request waits for the disk.

A line is written some milliseconds after the answer. It survives `kill -9` from then on, and a power loss if the
server's `durability` is `fsync`. What may happen very often, such as wrong secrets, is counted: the first time is
written at once, and others within a minute become one line with their number.

Strangers have a count of their own, so that they can neither hide what known callers do nor fill the log: of all
strangers together, at most 50 different things are told a minute, and the rest becomes one line, `audit.others`. What
known callers do is never left out: beyond 1,000 different things a minute, each further one is a line at once.

If the disk is full, up to 10,000 lines wait in memory. The server goes on, and further lines are lost; when there is
room again, a line says how many. `waiting` and `lost` are in `/metrics`, and the log of the server says so once.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

from apiserver.common.gauges import Gauges
from apiserver.operating.audit.entries import NOTHING, Entry, hash_of, line_of
from apiserver.operating.audit.files import AuditFiles
from apiserver.settings.settings import Settings

log = logging.getLogger(__name__)

#: Lines that are written at once.
_AT_ONCE = 1000
_PATIENCE = 10


@dataclass(frozen=True, slots=True)
class AuditBounds:
    """Limits of the log of one process. Times are in seconds."""

    waiting: int = 10_000
    """Most lines that wait."""
    counted_seconds: float = 60
    """Equal entries within this time are counted, and become one line."""
    counted: int = 1000
    """Most different things of known callers that are counted at a time."""
    counted_of_strangers: int = 50
    """The same of strangers."""
    again_seconds: float = 1
    """After this, a failed write is tried again."""


@dataclass(slots=True)
class _Count:
    """How often something happened again, and until when that is counted."""

    entry: Entry
    until: float
    times: int = 0


class AuditLog:
    """The log of one process. `open` starts it; until then, and without a place to write to, nothing is taken."""

    def __init__(self, settings: Settings, folder: Path, bounds: AuditBounds | None = None) -> None:
        """`folder`: where the files are."""
        self._bounds = bounds or AuditBounds()
        sync = settings.durability == "fsync"
        files = AuditFiles(folder, sync=sync, most_bytes=settings.audit_bytes)
        self._write = {"file": files.append, "stdout": _Printed().append}.get(settings.audit)
        self._waiting: deque[Entry] = deque()
        self._counts: dict[Hashable, _Count] = {}
        self._of_strangers: dict[Hashable, _Count] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._lost_since = 0
        self.lost = 0
        """Lines that were lost."""

    @property
    def waiting(self) -> int:
        """Lines that wait to be written."""
        return len(self._waiting)

    def gauges(self) -> Gauges:
        """Its numbers in `/metrics`."""
        return {
            "audit_waiting": ("Lines of the audit log that wait to be written.", lambda: self.waiting),
            "audit_lost": ("Lines of the audit log that were lost.", lambda: self.lost),
        }

    def open(self) -> None:
        """Start to write."""
        if self._write is not None and self._thread is None:
            self._is_closed = False
            self._thread = threading.Thread(target=self._work, name="audit log", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Write the waiting lines, and stop; they are lost if the disk takes nothing."""
        if self._thread is None:
            return
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(_PATIENCE)
        self._thread = None

    def add(self, entry: Entry) -> None:
        """Take an entry. It never waits for the disk."""
        if self._thread is None:
            return
        with self._changed:
            self._take(entry)

    def count(self, key: Hashable, entry: Entry, *, by_stranger: bool = False) -> None:
        """Take an entry that may come often; entries with the same `key` are counted together."""
        if self._thread is None:
            return
        bounds = self._bounds
        counts, most = self._counts, bounds.counted
        if by_stranger:
            counts, most = self._of_strangers, bounds.counted_of_strangers
        with self._changed:
            if key not in counts and len(counts) >= most:
                if not by_stranger:
                    self._take(entry)
                    return
                key, entry = None, Entry("audit.others", entry.code)  # too many different things to tell apart
            counted = counts.get(key)
            if counted is None:
                counts[key] = _Count(entry, time.monotonic() + bounds.counted_seconds)
                self._take(entry)
            else:
                counted.times += 1

    def _take(self, entry: Entry) -> None:
        if len(self._waiting) >= self._bounds.waiting:
            self.lost += 1
            self._lost_since += 1
            return
        self._waiting.append(entry)
        self._changed.notify()

    def _work(self) -> None:
        has_failed = False
        while True:
            with self._changed:
                if not self._waiting and not self._is_closed:
                    self._changed.wait(self._bounds.again_seconds if self._counts or self._of_strangers else None)
                self._tell_counts()
                entries = [self._waiting[n] for n in range(min(_AT_ONCE, len(self._waiting)))]
                lost = self._lost_since
            if not entries:
                if self._is_closed:
                    return
                continue
            try:
                assert self._write is not None
                self._write([*entries, Entry("audit.lost", 507, times=lost)] if lost else entries)
            except OSError as error:
                if not has_failed:
                    log.error("the audit log cannot be written, its lines wait in memory: %s", error)
                has_failed = True
                if self._is_closed:
                    return
                time.sleep(self._bounds.again_seconds)
                continue
            has_failed = False
            with self._changed:
                self._lost_since -= lost
                for _ in entries:
                    self._waiting.popleft()

    def _tell_counts(self) -> None:
        """Take the entries that were counted long enough; all of them if the log is closed."""
        now = time.monotonic()
        for counts in (self._counts, self._of_strangers):
            for key in [key for key, count in counts.items() if count.until <= now or self._is_closed]:
                count = counts.pop(key)
                if count.times:
                    self._take(count.entry.repeated(count.times))


class _Printed:
    """Writes lines to standard output, with a chain that begins with the process."""

    def __init__(self) -> None:
        self._number, self._last = 0, NOTHING

    def append(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._number += 1
            line = line_of(entry, self._number, self._last)
            self._last = hash_of(line)
            sys.stdout.write(f"{line.decode()}\n")
        sys.stdout.flush()
