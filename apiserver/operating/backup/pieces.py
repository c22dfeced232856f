"""A piece: blocks one after another, and a table of them. Its name is the SHA-256 of all of it.

    EVPIECE1 | block 0 | block 1 | … | SHA-256 and size of block 0, of block 1, … | number of blocks (4 bytes)

So a piece tells by itself what is in it. A backup that was killed had written pieces, but no manifest: the next one
finds them, and writes none of their blocks again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Int64Array
from apiserver.operating.backup.storage import PIECE, BackupError, Storage

MAGIC = b"EVPIECE1"
#: Bytes of blocks in a piece, and how many blocks it has at most: the block with which it exceeds either is its last.
PIECE_BYTES, PIECE_BLOCKS = 16 * 2**20, 4096
#: Bytes of a block of files that change in place, and of other files. Small blocks find more that has not changed: 1 %
#: more points in each series change 2.4 % of all pages of SQLite (4 KB), but 4.2 % of blocks of four pages.
SMALL_BLOCK, LARGE_BLOCK = 4 * 2**10, 2**20
#: Small blocks that a file has at most: larger files have larger ones. Each takes some 60 bytes of memory.
MOST_SMALL_BLOCKS = 4 * 2**20
#: No piece is larger: what claims to be one is not read.
LARGEST = 2 * PIECE_BYTES

ENTRY = np.dtype([("digest", "V32"), ("size", "<u4")])
_COUNT = struct.Struct("<I")

Entries = npt.NDArray[np.void]


class DamagedPiece(BackupError):
    """A piece is not what it was, or was never one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece that was read and checked."""

    content: bytes
    entries: Entries
    """Its table."""
    starts: Int64Array
    """Where each block begins, and where the last one ends."""

    def blocks(self, first: int, count: int) -> memoryview:
        """Adjacent blocks."""
        return memoryview(self.content)[int(self.starts[first]) : int(self.starts[first + count])]


def name_of(digest: str) -> str:
    """The name of a piece at the destination."""
    return f"pieces/{digest[:2]}/{digest}"


def listed(storage: Storage) -> tuple[dict[str, int], list[str]]:
    """The size of each piece at the destination, by its digest; and what lies among pieces, but has no name of one."""
    sizes, strays = {}, []
    for name, size in storage.sizes("pieces").items():
        if parts := PIECE.fullmatch(name):
            sizes[parts[2]] = size
        else:
            strays.append(name)
    return sizes, strays


def small_block(size: int) -> int:
    """Bytes of a block of a file of this size that changes in place."""
    block = SMALL_BLOCK
    while size > block * MOST_SMALL_BLOCKS and block < LARGE_BLOCK:
        block *= 2
    return block


def encode(blocks: Sequence[bytes], digests: Sequence[bytes]) -> bytes:
    """The piece of these blocks."""
    entries = np.empty(len(blocks), ENTRY)
    entries["digest"] = np.frombuffer(b"".join(digests), "V32")
    entries["size"] = [len(block) for block in blocks]
    return b"".join((MAGIC, *blocks, entries.tobytes(), _COUNT.pack(len(blocks))))


def read(storage: Storage, digest: str) -> Piece:
    """The piece of this name; DamagedPiece if it is not what it was, or was never one.

    Each block is compared with the table, too: whoever can write to the destination can make a piece whose name fits,
    but whose table lies. Later backups find blocks by the tables.
    """
    content = storage.read(name_of(digest), 0, LARGEST + 1)
    if hashlib.sha256(content).hexdigest() != digest:
        raise DamagedPiece(f"the piece {digest} is damaged: its content has another SHA-256")
    entries = entries_of(content, digest)
    starts = _starts(entries)
    if content[: len(MAGIC)] != MAGIC or starts[-1] + entries.nbytes + _COUNT.size != len(content):
        raise DamagedPiece(f"the piece {digest} is not a piece of a backup")
    piece = Piece(content, entries, starts)
    for number, said in enumerate(entries["digest"]):
        if hashlib.sha256(piece.blocks(number, 1)).digest() != said.tobytes():
            raise DamagedPiece(f"the piece {digest} is damaged: block {number} is not what its table says")
    return piece


def read_entries(storage: Storage, digest: str, size: int, table: str) -> Entries:
    """The table of a piece of this size, without the blocks; DamagedPiece if its SHA-256 is not `table`.

    If `table` is empty, the table is not checked.
    """
    most = PIECE_BLOCKS * ENTRY.itemsize + _COUNT.size
    entries = entries_of(storage.read(name_of(digest), max(size - most, 0), most), digest)
    if table and digest_of(entries) != table:
        raise DamagedPiece(f"the piece {digest} is damaged: its table has another SHA-256")
    return entries


def digest_of(entries: Entries) -> str:
    """The SHA-256 of a table."""
    return hashlib.sha256(entries.tobytes()).hexdigest()


def entries_of(tail: bytes, digest: str) -> Entries:
    """The table in the last bytes of a piece; DamagedPiece if there is none."""
    if len(tail) >= _COUNT.size:
        (count,) = _COUNT.unpack_from(tail, len(tail) - _COUNT.size)
        start = len(tail) - _COUNT.size - count * ENTRY.itemsize
        if start >= 0 and 0 < count <= PIECE_BLOCKS:
            return np.frombuffer(tail, ENTRY, count, start)
    raise DamagedPiece(f"the piece {digest} is damaged: it has no table")


def _starts(entries: Entries) -> Int64Array:
    return len(MAGIC) + np.concatenate([[0], np.cumsum(entries["size"], dtype=np.int64)])
