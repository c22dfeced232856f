"""Cuts a TFRecord file into records, block by block, with bounded memory.

A record is its length (8 bytes), a checksum of the length (4), its bytes, and a checksum of these (4). A record whose
bytes do not fit their checksum costs only itself. Behind a wrong length, nothing of the file can be found any more.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.importing.runs import crc32c

#: Bytes that are read at once, and the largest record that is taken.
BLOCK = 4 * 2**20
MAX_RECORD = 64 * 2**20
#: Bytes before and behind a record's own.
HEADER, _TRAILER = 12, 4
_length = struct.Struct("<Q")
_sum = struct.Struct("<I")
#: Records of one length up to so many bytes are checked together.
_SHORT = 4096


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
    starts, lengths, at = [], [], 0
    while at + HEADER <= len(data):
        (length,) = _length.unpack_from(data, at)
        end: int = at + HEADER + length + _TRAILER
        if end > len(data):
            break
        starts.append(at + HEADER)
        lengths.append(length)
        at = end
    block = Block(data, np.array(starts, np.int64), np.array(lengths, np.int64), offset, offset + at)
    bytes_of = np.frombuffer(data, np.uint8)
    wrong = np.flatnonzero(~_fit(bytes_of, block.starts - HEADER, 8))
    if len(wrong):
        first = int(wrong[0])
        block.end = offset + int(block.starts[first]) - HEADER
        block.broken = _no_length(block.end)
        block.starts, block.lengths = block.starts[:first], block.lengths[:first]
    _drop_wrong(block, bytes_of)
    return block


def _long_record(file: BinaryIO, data: bytes, offset: int, stop: int, most: int) -> Block | None:
    """The record at `offset`, of which `data` is only the beginning; None if not all of it is before `stop`.

    Nothing is read unless the length fits its checksum, and the file is that long.
    """
    if len(data) < HEADER:
        return None
    nothing = np.empty(0, np.int64)
    if not _fits(np.frombuffer(data, np.uint8, HEADER)):
        return Block(b"", nothing, nothing, offset, offset, broken=_no_length(offset))
    (length,) = _length.unpack_from(data)
    whole = HEADER + length + _TRAILER
    if min(stop, os.fstat(file.fileno()).st_size) < offset + whole:
        return None
    if length > most:
        problem = f"the record at byte {offset:,} has {length:,} bytes, which is too much"
        return Block(b"", nothing, nothing, offset, offset + whole, [problem])
    file.seek(offset)
    return _cut(file.read(whole), offset)


def _drop_wrong(block: Block, data: crc32c.Bytes) -> None:
    """Take those records out of the block that do not fit their checksums."""
    good = np.ones(len(block.starts), bool)
    for length in np.unique(block.lengths).tolist():
        chosen = np.flatnonzero(block.lengths == length)
        if length <= _SHORT:
            good[chosen] = _fit(data, block.starts[chosen], length)
        else:
            good[chosen] = [_fits(data[start : start + length + 4]) for start in block.starts[chosen].tolist()]
    for start in block.starts[~good].tolist():
        block.problems.append(f"the record at byte {block.at + start - HEADER:,} does not fit its checksum")
    block.starts, block.lengths = block.starts[good], block.lengths[good]


def _fit(data: crc32c.Bytes, starts: Int64Array, length: int) -> np.typing.NDArray[np.bool_]:
    """Whether `length` bytes from each start fit the checksum behind them."""
    rows = data[starts[:, None] + np.arange(length + 4)]
    sums = np.ascontiguousarray(rows[:, length:]).view("<u4")[:, 0]
    fit: np.typing.NDArray[np.bool_] = crc32c.masked(crc32c.of_rows(rows[:, :length])) == sums
    return fit


def _fits(data: crc32c.Bytes) -> bool:
    sums = np.array([crc32c.of_bytes(data[:-4])], np.uint32)
    return bool(crc32c.masked(sums)[0] == _sum.unpack(data[-4:].tobytes())[0])


def _no_length(place: int) -> str:
    return f"from byte {place:,} on it is broken: the length of a record does not fit its checksum"
