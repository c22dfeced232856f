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
from typing import NamedTuple

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
        if (found := file.read(len(_MAGIC))) != _MAGIC:
            raise (Begun if _MAGIC.startswith(found) else Malformed)(f"{path.name} is not a file of W&B")
        start = offset // _BLOCK * _BLOCK
        file.seek(start)
        kept: list[bytes] | None = None
        size = 0
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
                piece = block[at + _header.size : end]
                if kind not in _SUMS or end > len(block) or zlib.crc32(piece, _SUMS[kind]) != crc:
                    yield Problem(
                        path.name, f"it is broken at byte {start + at:,}; reading goes on with the next block"
                    )
                    kept = None
                    break
                at = end
                if kind in (_FULL, _FIRST):
                    kept, size = [], 0
                if kept is None:  # the beginning of the record is lost
                    continue
                size += length
                if size <= most:
                    kept.append(piece)
                if kind in (_FULL, _LAST):
                    if size > most:
                        yield Problem(path.name, f"a record of {size:,} bytes is too long")
                    else:
                        yield Record(b"".join(kept), start + at)
                    kept = None
            if len(block) < _BLOCK and at + _header.size > len(block) and any(block[at:]):
                yield _cut(path, start + at)
                return
            start += len(block)
        if kept is not None:
            yield _cut(path, start)


def _cut(path: Path, at: int) -> Problem:
    return Problem(path.name, f"from byte {at:,} on it ends in the middle of a record", may_come=True)
