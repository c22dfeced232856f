"""The append-only journal: it has all acknowledged events that are not merged yet, in numbered segment files.

- Records are wholly in their segment before `append` returns. If it fails, nothing of them stays.
- A segment is read up to the first record that is torn or has a wrong checksum.
- A segment is written by one process, and never opened for writing again.

For example, the process was killed while it wrote its third record to journal-0000000007.log:

    EVJRNL01
    checksum, sizes, sequence | columns | meta    1,000 points
    checksum, sizes, sequence | columns | meta    20 log lines
    checksum, sizes, sequence | colu              torn: it was not acknowledged, and is not read

The next process reads two records of segment 7, and writes to segment 8.
"""

from __future__ import annotations

import logging
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.embedded import records
from apiserver.stores.events.embedded.records import Record
from apiserver.stores.syncing import sync_folder

#: The first bytes of each journal.
MAGIC = b"EVJRNL01"
_HEAD = struct.Struct("<IIQQ")  # checksum of all that follows, bytes of meta, bytes of columns, sequence
HEAD_BYTES = _HEAD.size
_CHECKED = struct.Struct("<IQQ")
_RETRY_AFTER = 5
_MOST_BUFFERS = 512

logger = logging.getLogger(__name__)


def segments(folder: Path) -> list[tuple[int, Path]]:
    """The segments in `folder`, oldest first, by number."""
    return sorted((int(path.stem.removeprefix("journal-")), path) for path in folder.glob("journal-*.log"))


def segment_path(folder: Path, number: int) -> Path:
    """Where segment `number` lies."""
    return folder / f"journal-{number:010d}.log"


def replay(path: Path) -> Iterator[Record]:
    """The whole records of a segment, in order; raise EventStoreError for a whole one of a form that is not known."""
    content = memoryview(path.read_bytes())
    end = len(MAGIC)
    if not MAGIC.startswith(content[:end]):  # a segment that was just begun may have a part of it
        logger.warning("%s is not a journal: its %d bytes are not read", path, len(content))
        return
    for at, end in whole_records(content):
        try:
            record = parsed(content, at, end)
        except (ValueError, IndexError) as error:  # msgspec's errors are ValueErrors
            raise EventStoreError(
                f"the journal {path} has a record at byte {at} that this version cannot read: {error}"
            ) from error
        yield record
    if end < len(content):
        logger.warning(
            "journal %s is read up to byte %d of %d, the end of its last whole record", path, end, len(content)
        )


def whole_records(content: memoryview) -> Iterator[tuple[int, int]]:
    """Where each record of a segment begins and ends, up to the first that is torn or has a wrong checksum."""
    at = len(MAGIC)
    while content[: len(MAGIC)] == MAGIC and (end := end_of_whole(content, at)) is not None:
        yield at, end
        at = end


def end_of_whole(content: memoryview, at: int) -> int | None:
    """Where the whole record that begins at `at` ends; None if there is none, or its checksum is wrong."""
    if at + _HEAD.size > len(content):
        return None
    checksum, meta_size, columns_size, _ = _HEAD.unpack_from(content, at)
    end: int = at + _HEAD.size + columns_size + meta_size
    return end if end <= len(content) and zlib.crc32(content[at + 4 : end]) == checksum else None


def parsed(content: memoryview, at: int, end: int) -> Record:
    """The whole record at `at`; ValueError or IndexError if it has a form that is not known."""
    _, _, columns_size, sequence = _HEAD.unpack_from(content, at)
    body = at + _HEAD.size
    return records.parse(
        bytes(content[body : body + columns_size]), bytes(content[body + columns_size : end]), sequence
    )


class Journal:
    """The segment that is being written. Only one thread at a time may call it."""

    def __init__(self, folder: Path, number: int, *, fsync: bool) -> None:
        self._folder = folder
        self._fsync = fsync
        self._file: int | None = None
        self._end = 0
        self._torn = False
        self._failing = False
        self.number = number
        """The number of the segment to which the next record goes."""

    def append(self, group: Sequence[Record]) -> None:
        """Keep all records; keep none and raise EventStoreBusy if the disk does not take them."""
        buffers = [buffer for record in group for buffer in _buffers(record)]
        try:
            if self._file is None:
                self._file = self._begin()
            elif self._torn:
                self._cut()
            file, at = self._file, self._end
            for start in range(0, len(buffers), _MOST_BUFFERS):
                at = _write_all(file, buffers[start : start + _MOST_BUFFERS], at)
            if self._fsync:
                os.fdatasync(file)
        except OSError as error:
            self._torn = True
            with suppress(OSError):
                self._cut()
            if not self._failing:  # say it once, and not again for each batch that is sent meanwhile
                logger.warning("the journal in %s cannot be written: %s", self._folder, error.strerror)
            self._failing = True
            raise EventStoreBusy(
                f"the journal in {self._folder} cannot be written: {error.strerror}",
                retry_after=_RETRY_AFTER,
                overloaded=False,
            ) from error
        self._end = at
        if self._failing:
            logger.warning("the journal in %s can be written again", self._folder)
        self._failing = False

    def rotate(self) -> None:
        """End this segment. The next record begins another one."""
        self.close()
        self.number += 1

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin(self) -> int:
        path = segment_path(self._folder, self.number)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self._end = _write_all(file, [MAGIC], 0)
            if self._fsync:
                sync_folder(self._folder)
        except OSError:
            os.close(file)
            raise
        return file

    def _cut(self) -> None:
        """Remove the bytes that a failed write left. Nothing more is written before this succeeds."""
        if self._file is not None:
            os.ftruncate(self._file, self._end)
        self._torn = False


def _buffers(record: Record) -> tuple[bytes, bytes, bytes]:
    sizes = _CHECKED.pack(len(record.meta), len(record.columns), record.sequence)
    checksum = zlib.crc32(record.meta, zlib.crc32(record.columns, zlib.crc32(sizes)))
    return checksum.to_bytes(4, "little") + sizes, record.columns, record.meta


def _write_all(file: int, buffers: list[bytes], at: int) -> int:
    """Write the buffers at offset `at`; return the offset where they end."""
    written = os.pwritev(file, buffers, at)
    end = at + sum(map(len, buffers))
    if at + written < end:  # because of a signal, or a full disk: then writing the rest fails
        rest = memoryview(b"".join(buffers))
        while at + written < end:
            written += os.pwrite(file, rest[written:], at + written)
    return end
