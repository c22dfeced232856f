"""The events of a data folder as they are at one moment: the database's pages, and the whole records of the journal.

A merge commits to the database that it has merged a segment, and then deletes the segment. So if nothing was committed
from before the moment until the segments were opened, all segments that the database has not merged were still there.
A segment that grows is cut at the end of a record: what is acknowledged later, or half written, is not of the moment.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

from apiserver.stores.events.embedded import journal
from apiserver.stores.events.embedded.names import state
from apiserver.stores.snapshots import Part, Snapshot, SnapshotError
from apiserver.stores.sqlite_pages import Pages, reading

_COUNTED = {
    "points": "SELECT (SELECT coalesce(sum(count), 0) FROM chunk_index) + (SELECT coalesce(sum(tail), 0) FROM scalars)",
    "log lines": "SELECT coalesce(sum(count), 0) FROM log_blocks",
    "samples": "SELECT count(*) FROM samples",
}


class EventsSnapshot(Snapshot):
    """The moment of an events folder. Points, lines and samples that wait in the journal are counted apart."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "events.db").exists():
            raise SnapshotError(f"there are no events in {folder}")
        self._folder = folder
        self._path = folder / "events.db"
        self._pages = Pages(self._path)
        self._segments: dict[Path, tuple[int, int]] = {}
        """Of each segment that is not merged, its descriptor and size."""
        self._journal: tuple[list[Part], Counter[str]] | None = None
        """Of the moment, the segments up to their last whole records, and what is in these; None: not read yet."""

    def begin(self) -> None:
        self._close_segments()
        with reading(self._path):
            self._pages.begin()
            merged = state(self._pages.connection, "merged_journal")
        for number, path in journal.segments(self._folder):
            if number > merged:
                with suppress(FileNotFoundError):  # then a merge has committed since, and the moment does not hold
                    self._segments[path] = (os.open(path, os.O_RDONLY | os.O_CLOEXEC), 0)
        for path, (descriptor, _) in self._segments.items():
            self._segments[path] = (descriptor, os.fstat(descriptor).st_size)

    def holds(self) -> bool:
        return self._pages.holds()

    def close(self) -> None:
        self._close_segments()
        self._pages.close()

    def parts(self) -> list[Part]:
        pages = Part("events/events.db", self._pages.size, self._pages.read, changes_in_place=True)
        return [pages, *self._read_journal()[0]]

    def counts(self) -> dict[str, int]:
        ask = self._pages.connection.execute
        with reading(self._path):
            counts = {name: int(ask(sql).fetchone()[0]) for name, sql in _COUNTED.items()}
        return {**counts, **self._read_journal()[1]}

    def _read_journal(self) -> tuple[list[Part], Counter[str]]:
        if self._journal is None:
            parts, counts = [], Counter[str]()
            for path, (descriptor, size) in self._segments.items():
                content, end = memoryview(_read(descriptor, 0, size)), 0
                with reading(path):
                    for start, end in journal.whole_records(content):
                        record = journal.parsed(content, start, end)
                        counts["points in the journal"] += sum(record.scalars.lengths)
                        counts["log lines in the journal"] += record.lines
                        counts["samples in the journal"] += len(record.samples)
                if end:
                    parts.append(Part(f"events/{path.name}", end, partial(_read, descriptor)))
            self._journal = parts, counts
        return self._journal

    def _close_segments(self) -> None:
        for descriptor, _ in self._segments.values():
            os.close(descriptor)
        self._segments.clear()
        self._journal = None


def _read(descriptor: int, start: int, size: int) -> bytes:
    return os.pread(descriptor, size, start)
