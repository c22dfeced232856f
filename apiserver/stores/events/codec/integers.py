"""Encodes columns of whole numbers, at least one long. All int64 values are kept exactly, even if steps wrap around.

    100, 110, 120, 130   equal steps:         first value 100, step 10
    100, 110, 121, 130   steps of 10, 11, 9:  first value 100, least step 9, then 1, 2, 0 in one byte each

Such bytes are compressed if there are 64 or more and that saves a tenth of them. Columns that hardly change again are
encoded by `pco` if that takes fewer bytes. Each column says how it is encoded.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Int64Array
from apiserver.events.queries import GREATEST
from apiserver.stores.events.codec import compression, pco

_HEAD = struct.Struct("<Bqq")  # how, first value, step
_ARITHMETIC, _DELTAS, _COMPRESSED, _PCODEC = 0, 16, 32, 64
_WIDTHS = (1, 2, 4, 8)
_WORTH_COMPRESSING = 64
_RAMP = np.arange(16384, dtype=np.int64)


def encode(column: Int64Array, *, sealed: bool = False, page: int = pco.PAGE) -> bytes:
    """`column` as bytes, which do not say how long it is. `sealed`: in as few bytes as possible, in such pages."""
    if len(column) == 1:
        return _HEAD.pack(_ARITHMETIC, column[0], 0)
    deltas = column[1:] - column[:-1]
    step, largest = int(deltas.min()), int(deltas.max())
    if step == largest:
        return _HEAD.pack(_ARITHMETIC, column[0], step)
    width = next(w for w in _WIDTHS if largest - step < 1 << 8 * w)
    packed = (deltas - step).view(np.uint64).astype(f"<u{width}").tobytes()
    how = _DELTAS
    if len(packed) >= _WORTH_COMPRESSING:
        smaller = compression.compress(packed)
        if len(smaller) < len(packed) * 0.9:
            how, packed = _COMPRESSED, smaller
    if sealed and len(smaller := pco.encode(np.ascontiguousarray(column), page)) < len(packed):
        return _HEAD.pack(_PCODEC, 0, 0) + smaller
    return _HEAD.pack(how | width, column[0], step) + packed


@dataclass(slots=True, frozen=True)
class Progression:
    """The column first, first + step, first + 2 · step, …; only the values at the indices asked for are made."""

    first: int
    step: int
    length: int

    @property
    def last(self) -> int:
        return self.first + (self.length - 1) * self.step

    def __getitem__(self, which: npt.NDArray[np.integer]) -> Int64Array:
        return self.first + self.step * which.astype(np.int64, copy=False)

    def whole(self) -> Int64Array:
        """All values. To count in steps writes them once; `self[…]` would write indices and products first."""
        end = self.last + self.step
        if end <= GREATEST:
            return np.arange(self.first, end, self.step, dtype=np.int64)
        return self[np.arange(self.length)]

    def follows(self, other: Progression) -> bool:
        """Whether `other` and this one, one after the other, are one progression."""
        return self.step == other.step and self.first == other.last + other.step


def progression(encoded: bytes | memoryview, length: int, offset: int = 0) -> Progression | None:
    """The column encoded at `offset` if it has several values and ascends by equal steps, else None."""
    how, first, step = _HEAD.unpack_from(encoded, offset)
    return Progression(first, step, length) if how == _ARITHMETIC and step > 0 else None


def constant(encoded: bytes | memoryview, offset: int = 0) -> int | None:
    """The value of the column encoded at `offset` if all its values are the same, else None."""
    how, first, step = _HEAD.unpack_from(encoded, offset)
    return int(first) if how == _ARITHMETIC and step == 0 else None


def decode(encoded: bytes | memoryview, length: int) -> Int64Array:
    """The column of `length` values that was encoded."""
    column = np.empty(length, np.int64)
    decode_into(encoded, column)
    return column


def decode_part(encoded: bytes | memoryview, length: int, part: slice) -> Int64Array:
    """A part of the column of `length` values; of some encodings, nothing else is decoded."""
    if _HEAD.unpack_from(encoded)[0] != _PCODEC:
        return decode(encoded, length)[part]
    column = np.empty(part.stop - part.start, np.int64)
    pco.decode_into(memoryview(encoded)[_HEAD.size :], column, part.start)
    return column


def decode_into(encoded: bytes | memoryview, out: Int64Array) -> None:
    """Fill `out`, whose length is that of the encoded column."""
    how, first, step = _HEAD.unpack_from(encoded)
    if how == _ARITHMETIC:
        np.multiply(_RAMP[: len(out)] if len(out) <= len(_RAMP) else np.arange(len(out)), step, out=out)
        out += first
        return
    packed = memoryview(encoded)[_HEAD.size :]
    if how == _PCODEC:
        pco.decode_into(packed, out)
        return
    if how & _COMPRESSED:
        packed = memoryview(compression.decompress(packed))
    out[0] = first
    out[1:] = np.frombuffer(packed, f"<u{how & 15}").astype(np.uint64, copy=False).view(np.int64)
    out[1:] += step
    np.cumsum(out, out=out)
