"""Looks at the folder of an embedded store, which a server may be using: at a snapshot of `events.db`, and the journal.

The journal is read first. Whatever a server merges meanwhile, the snapshot says up to which segment it has everything,
and segments up to that one do not count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import zstandard

from apiserver.common.sizes import counted
from apiserver.stores import sqlite_files
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.codec import compression
from apiserver.stores.events.codec.checked import Damaged
from apiserver.stores.events.codec.points import Workers
from apiserver.stores.events.embedded import journal, references
from apiserver.stores.events.embedded.checking import PARTS
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.journal_gaps import Contents, contents_of
from apiserver.stores.events.embedded.names import state
from apiserver.stores.events.embedded.repair import Repair
from apiserver.stores.events.embedded.usage import usage
from apiserver.stores.events.inspection import EventInspection
from apiserver.stores.events.usage import Usage
from apiserver.stores.inspection import Finding, Held

#: Seconds after which a record that was being written is whole.
WRITTEN = 0.5


@asynccontextmanager
async def looking_at(folder: Path, written: float = WRITTEN) -> AsyncIterator[FolderInspection]:
    """A look at a folder while the block is open; EventStoreError: there is nothing to look at.

    What is torn at the end of a segment is read again after `written` seconds.
    """
    stack = ExitStack()
    try:
        yield await asyncio.to_thread(FolderInspection, folder, stack, written)
    finally:
        await asyncio.to_thread(stack.close)


class _Segment(NamedTuple):
    number: int
    path: Path
    table: Memtable
    bytes: int
    findings: list[Finding]


class FolderInspection(EventInspection):
    """One look at a folder: it has read the journal, and begun a snapshot, which ends with the stack."""

    def __init__(self, folder: Path, stack: ExitStack, written: float) -> None:
        self._folder = folder
        if not folder.is_dir():
            raise EventStoreError(f"there is no folder {folder}")
        try:
            segments = [one for some in journal.segments(folder) if (one := _segment(*some, written)) is not None]
            self._snapshot = stack.enter_context(sqlite_files.opened_to_read(folder / "events.db"))
            merged = state(self._snapshot, "merged_journal")
        except (OSError, *sqlite_files.ERRORS) as error:
            raise EventStoreError(f"{folder} cannot be looked at: {error}") from error
        self._segments = [one for one in segments if one.number > merged]

    async def usage(self) -> Usage:
        """How much is kept of each owner; EventStoreError if the database is too damaged to tell."""
        tables = [segment.table for segment in self._segments]
        try:
            return await asyncio.to_thread(usage, self._snapshot, tables)
        except sqlite_files.ERRORS as error:
            raise EventStoreError(f"nobody can tell how much is kept: {error}") from error

    async def texts(self) -> AsyncIterator[list[bytes]]:
        """The samples as JSON; damaged ones are left out."""
        for segment in self._segments:
            owners = segment.table.owners.values()
            samples = [
                one
                for hot in owners
                for some in hot.samples.values()
                for each in some.values()
                for one in each.values()
            ]
            yield [one.document for one in samples]
        cursor = self._snapshot.execute("SELECT body FROM sample_documents")
        while rows := await asyncio.to_thread(cursor.fetchmany, _SAMPLES_AT_ONCE):
            yield [text for (body,) in rows if (text := _decompressed(body)) is not None]

    async def held(self) -> list[Held]:
        return await asyncio.to_thread(self._held)

    def _held(self) -> list[Held]:
        execute = self._snapshot.execute
        size, pages, free = (execute(f"PRAGMA {name}").fetchone()[0] for name in _PAGES)
        held = [Held("events.db", size * pages), Held("of it free", size * free)]
        log = self._folder / "events.db-wal"
        if log.exists():
            held.append(Held("its log", log.stat().st_size))
        segments = [segment.bytes for segment in self._segments]
        held.append(Held("journal", sum(segments), len(segments), "segments"))
        return [*held, *(Held(part.name, None, part.count(self._snapshot), "rows") for part in PARTS)]

    async def findings(self) -> AsyncIterator[Finding]:
        """Damage of the journal, then of the database, then of what is in it."""
        found = self._findings()
        while (finding := await asyncio.to_thread(next, found, None)) is not None:
            yield finding

    async def repair(self, findings: Collection[Finding], kept: Path) -> list[str]:
        """Mend the folder; EventStoreError if that fails: the database is as it was."""
        try:
            return await asyncio.to_thread(Repair(self._folder, kept).run, findings)
        except (OSError, Damaged, *sqlite_files.ERRORS) as error:
            raise EventStoreError(f"{self._folder} cannot be repaired: {error}") from error

    def _findings(self) -> Iterator[Finding]:
        for segment in self._segments:
            yield from segment.findings
        problems = sqlite_files.problems_of(self._snapshot)
        if problems:
            yield sqlite_files.finding_of("events", "events.db", problems)
        for part in PARTS:
            try:
                after: int | None = -(2**63)
                while after is not None:
                    step = part.step(self._snapshot, after)
                    yield from step.findings
                    after = step.last
            except sqlite_files.ERRORS as error:
                yield sqlite_files.unreadable("events", "events.db", part.name, error)
        try:
            yield from references.findings(self._snapshot)
        except sqlite_files.ERRORS as error:
            yield sqlite_files.unreadable("events", "events.db", "references", error)


_SAMPLES_AT_ONCE = 50
_PAGES = ("page_size", "page_count", "freelist_count")


def _segment(number: int, path: Path, written: float) -> _Segment | None:
    """What a segment of the journal has; None if a server has just merged it."""
    try:
        content = memoryview(path.read_bytes())
        contents = contents_of(content)
        if contents.gaps and contents.gaps[-1].stop == len(content):  # it may just be being written
            time.sleep(written)
            content = memoryview(path.read_bytes())
            contents = contents_of(content)
    except FileNotFoundError:
        return None
    table, workers, findings = Memtable(number), Workers(), []
    for start, stop in contents.records:
        try:
            table.add(journal.parsed(content, start, stop), workers)
        except (ValueError, IndexError) as error:
            findings.append(
                Finding(
                    *("events", "unknown-record", path.name, f"{path.name} has a record at byte {start} of a new form"),
                    f"a server of this version does not start with it ({error}): use the version that wrote it",
                )
            )
    return _Segment(number, path, table, len(content), [*_gaps(path, contents, len(content)), *findings])


def _gaps(path: Path, contents: Contents, size: int) -> list[Finding]:
    """What is damaged in a segment."""
    findings = []
    if not contents.magic:
        findings.append(
            Finding(
                *("events", "damaged-journal", path.name, f"the beginning of {path.name} is damaged"),
                "the next start of the server would not read"
                f" {counted(len(contents.records), 'batches')} of events in it",
                "the beginning is written anew, and nothing is lost; the file as it was is kept",
            )
        )
    for start, stop in contents.gaps:
        behind = sum(record.start >= stop for record in contents.records)
        if behind:
            damage = f"{path.name} is damaged from byte {start:,} to {stop:,}"
            findings.append(
                Finding(
                    *("events", "damaged-journal", path.name, damage),
                    "the events there are lost, and the next start would not read"
                    f" {counted(behind, 'whole batches')} behind it",
                    "the journal is written anew without these bytes, so that the next start reads all others;"
                    " the file as it was is kept",
                )
            )
        else:
            findings.append(
                Finding(
                    *("events", "torn-journal", path.name, f"the end of {path.name} is torn from byte {start:,} on"),
                    "most likely they were being written when the server was killed, and never acknowledged",
                    "the bytes are cut off, as the next start would leave them out, too; the file as it was is kept",
                )
            )
    return findings


def _decompressed(body: bytes) -> bytes | None:
    try:
        return compression.decompress(body)
    except (ValueError, zstandard.ZstdError):
        return None
