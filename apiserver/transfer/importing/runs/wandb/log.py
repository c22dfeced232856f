"""Cuts a `.wandb` file into records. It begins with seven bytes of its own, and is a log of LevelDB's form.

The file is a row of blocks of 32 KB. In a block are pieces: a checksum (4 bytes), a length (2), a kind (1), and bytes.
A record is one whole piece, or a first one, middle ones and a last one. A block ends with zeros where no piece fits.
Behind a piece that is broken, reading goes on with the next block.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.runs.model import Problem

START = 7
MAX_RECORD = 64 * 2**20
_MAGIC = b":W&B"
_BLOCK = 32 * 2**10
_header = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_SUMS = {kind: zlib.crc32(bytes([kind])) for kind in (_FULL, _FIRST, _MIDDLE, _LAST)}


class Begun(Malformed):
    """A file that is not whole, but may only have been begun."""


class Record(NamedTuple):
    """A record, and the place in the file behind it."""

    data: bytes
    end: int


def records(path: Path, offset: int = START, most: int = MAX_RECORD) -> Iterator[Record | Problem]:
    """The whole records from `offset` on, of up to `most` bytes. Raises OSError, and Malformed for another file.

    A file that ends in the middle of a record may still be written to.
    """
    with path.open("rb") as file:
        if (magic := file.read(len(_MAGIC))) != _MAGIC:
            raise (Begun if _MAGIC.startswith(magic) else Malformed)(f"{path.name} is not a file of W&B")
        record: list[bytes] | None = None
        size = 0
        for piece in _pieces(file, path, offset):
            if isinstance(piece, Problem):
                yield piece
                record = None
                continue
            kind, content, end = piece
            if kind in (_FULL, _FIRST):
                record, size = [], 0
            if record is None:  # the beginning of the record is lost
                continue
            size += len(content)
            if size <= most:
                record.append(content)
            if kind in (_FULL, _LAST):
                if size > most:
                    yield Problem(path.name, f"a record of {size:,} bytes is too long")
                else:
                    yield Record(b"".join(record), end)
                record = None
        if record is not None:
            yield _cut(path, file.tell())


def _pieces(file: BinaryIO, path: Path, offset: int) -> Iterator[tuple[int, bytes, int] | Problem]:
    """The kind, the content and the end of each piece from `offset` on, and a problem for each that is broken."""
    start = offset // _BLOCK * _BLOCK
    file.seek(start)
    while block := file.read(_BLOCK):
        at = max(0, offset - start)
        while at + _header.size <= len(block):
            crc, length, kind = _header.unpack_from(block, at)
            end = at + _header.size + length
            if not kind and not length:
                break
            if end > len(block) and len(block) < _BLOCK:
                yield _cut(path, start + at)
                return
            content = block[at + _header.size : end]
            if kind not in _SUMS or end > len(block) or zlib.crc32(content, _SUMS[kind]) != crc:
                yield Problem(path.name, f"it is broken at byte {start + at:,}; reading goes on with the next block")
                break
            at = end
            yield kind, content, start + at
        if len(block) < _BLOCK and at + _header.size > len(block) and any(block[at:]):
            yield _cut(path, start + at)
            return
        start += len(block)


def _cut(path: Path, at: int) -> Problem:
    return Problem(path.name, f"from byte {at:,} on it ends in the middle of a record", may_come=True)
