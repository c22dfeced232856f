"""Which fragments the lines of a chunk came with: so lines that are sent again after compaction are known.

A chunk names each fragment that had lines where the chunk is, also if these lines were deleted since
(`log_deletion.py`). It says the fragment's place, its id, and between which timestamps these lines lie. If chunks are
made anew, each one gets the fragments of its own times. For example, of a body with two lines at 5 and one at 9:

    chunk a    from the beginning up to 7     names the body's fragment, from 5 to 5
    chunk b    from 7 on                      names it, too: from 9 to 9
    all lines up to 6 are deleted             chunk a is made anew without them, and names it still
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from apiserver.events.model import Int64Array
from apiserver.stores.events.codec import integers
from apiserver.stores.events.codec.lines import BODY_ID, body_id

#: Bytes of the part of a fragment's id that says which batch it is of: the id of a body, and which part of the body.
BATCH_ID = BODY_ID + 2
#: Bytes of memory that a fragment takes here.
_BYTES = BATCH_ID + 3 * 8
_IDS = f"V{BATCH_ID}"

_decoder = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes, bytes])


def batch_of(body: bytes, number: int, *, is_last: bool) -> bytes:
    """What says that a fragment has this part of a body with this digest. Parts are put one after another."""
    return body_id(body) + (2 * number + is_last).to_bytes(2, "big")


def whole_bodies(batches: Iterable[bytes]) -> set[bytes]:
    """The ids of bodies whose last part is among these batches, so that all of their parts are kept."""
    return {batch[:BODY_ID] for batch in batches if batch[-1] & 1}


@dataclass(frozen=True, slots=True)
class Batches:
    """Columns of the same length: places and ids of fragments, and the first and the last timestamp of their lines."""

    places: Int64Array
    ids: npt.NDArray[np.void]
    firsts: Int64Array
    lasts: Int64Array

    @classmethod
    def of(cls, fragments: Sequence[tuple[int, bytes, int, int]]) -> Batches:
        """The columns with these rows."""
        numbers = np.array([(place, first, last) for place, _, first, last in fragments], np.int64).reshape(-1, 3)
        ids = np.frombuffer(b"".join([id for _, id, _, _ in fragments]), _IDS)
        return cls(numbers[:, 0], ids, numbers[:, 1], numbers[:, 2])

    def __len__(self) -> int:
        return len(self.places)

    @property
    def size(self) -> int:
        """Bytes of memory that they take, about."""
        return _BYTES * len(self)

    def between(self, first: int, last: int) -> Batches:
        """Those with lines between two timestamps, with only these lines."""
        at = np.flatnonzero((self.firsts <= last) & (self.lasts >= first))
        firsts, lasts = np.maximum(self.firsts[at], first), np.minimum(self.lasts[at], last)
        return Batches(self.places[at], self.ids[at], firsts, lasts)

    def encode(self) -> bytes:
        """The columns as bytes."""
        numbers = (self.places, self.firsts, self.lasts - self.firsts)
        places, firsts, spans = (integers.encode(column) if len(self) else b"" for column in numbers)
        return msgspec.msgpack.encode((places, self.ids.tobytes(), firsts, spans))

    @classmethod
    def decode(cls, encoded: bytes | memoryview) -> Batches:
        """The columns that were encoded."""
        places, ids, *times = _decoder.decode(encoded)
        if not ids:
            return cls.of([])
        count = len(ids) // BATCH_ID
        firsts, spans = (integers.decode(column, count) for column in times)
        return cls(integers.decode(places, count), np.frombuffer(ids, _IDS), firsts, firsts + spans)


def joined(batches: Sequence[Batches]) -> Batches:
    """All of them, each once, in the order of their places."""
    ids = np.concatenate([part.ids for part in batches])
    if not len(ids):
        return Batches.of([])
    order = np.argsort(ids, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], ids[order][1:] != ids[order][:-1]]))
    places, firsts, lasts = (
        np.concatenate([getattr(part, name) for part in batches])[order] for name in ("places", "firsts", "lasts")
    )
    once = Batches(
        places[starts], ids[order][starts], np.minimum.reduceat(firsts, starts), np.maximum.reduceat(lasts, starts)
    )
    by_place = np.argsort(once.places, kind="stable")
    return Batches(once.places[by_place], once.ids[by_place], once.firsts[by_place], once.lasts[by_place])
