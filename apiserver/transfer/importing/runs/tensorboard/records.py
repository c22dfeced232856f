"""Cuts a TFRecord file into records, block by block, with bounded memory.

A record is its length (8 bytes), a checksum of the length (4), its bytes, and a checksum of these (4). A record whose
bytes do not fit their checksum costs only itself. Behind a wrong length, nothing of the file can be read any more.

The checksum is CRC-32C, masked: turned by 15 bits, plus a number.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import google_crc32c
import numpy as np

from apiserver.events.model import Int64Array

#: Bytes that are read at once, and the largest record that is taken.
BLOCK = 4 * 2**20
MAX_RECORD = 64 * 2**20
#: Bytes before and behind a record's own.
HEADER, TRAILER = 12, 4
_length = struct.Struct("<Q")
_sum = struct.Struct("<I")


@dataclass(slots=True)
class Block:
    """Records of a file: where they start and how long they are in `data`, which is at `at` in the file.

    `end` is the place in the file behind them.
    """

    data: bytes
    starts: Int64Array
    lengths: Int64Array
    at: int
    end: int
    problems: list[str] = field(default_factory=list)
    broken: str = ""
    """Why nothing behind it can be read."""

    def record(self, number: int) -> bytes:
        """The bytes of a record."""
        start = int(self.starts[number])
        return self.data[start : start + int(self.lengths[number])]


def blocks(
    path: Path, offset: int, *, stop: int | None = None, block_bytes: int = BLOCK, most: int = MAX_RECORD
) -> Iterator[Block]:
    """The whole records of up to `most` bytes from `offset` on, at most to `stop`; `block_bytes` are read at once.

    A record that is not complete yet ends them. Raises OSError."""
    with path.open("rb") as file:
        stop = os.fstat(file.fileno()).st_size if stop is None else stop
        block = None
        while block is None or not block.broken:
            file.seek(offset)
            data = file.read(max(0, min(block_bytes, stop - offset)))
            block = _cut(data, offset)
            if block.end == offset and not block.broken:
                block = _long_record(file, data, offset, stop, most)
            if block is None:
                return
            yield block
            offset = block.end


def _cut(data: bytes, offset: int) -> Block:
    """The whole records in `data`, which is at `offset` in the file."""
    starts, lengths, problems, broken, at = [], [], [], "", 0
    while at + HEADER <= len(data):
        if not _fits(data, at, _length.size):
            broken = f"from byte {offset + at:,} on it is broken: the length of a record does not fit its checksum"
            break
        (length,) = _length.unpack_from(data, at)
        start = at + HEADER
        if start + length + TRAILER > len(data):
            break
        if _fits(data, start, length):
            starts.append(start)
            lengths.append(length)
        else:
            problems.append(f"the record at byte {offset + at:,} does not fit its checksum")
        at = start + length + TRAILER
    places = np.array(starts, np.int64), np.array(lengths, np.int64)
    return Block(data, *places, offset, offset + at, problems, broken)


def _long_record(file: BinaryIO, data: bytes, offset: int, stop: int, most: int) -> Block | None:
    """The record at `offset`, of which `data` is only the beginning; None if not all of it is before `stop`.

    Nothing is read unless the file is as long as the record says.
    """
    if len(data) < HEADER:
        return None
    (length,) = _length.unpack_from(data)
    whole = HEADER + length + TRAILER
    if min(stop, os.fstat(file.fileno()).st_size) < offset + whole:
        return None
    if length > most:
        problem = f"the record at byte {offset:,} has {length:,} bytes, which is too much"
        nothing = np.empty(0, np.int64)
        return Block(b"", nothing, nothing, offset, offset + whole, [problem])
    file.seek(offset)
    return _cut(file.read(whole), offset)


def _fits(data: bytes, start: int, length: int) -> bool:
    """Whether `length` bytes from `start` fit the checksum behind them."""
    checksum: int = google_crc32c.value(data[start : start + length])
    masked = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFF_FFFF
    return bool(masked == _sum.unpack_from(data, start + length)[0])
