"""An index of the blocks that are at the destination already, in columns: a backup of 100 GB has millions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.operating.backup.pieces import Entries


class BlockIndex:
    """The place of each block, by its digest: the number of its piece, and its number in the piece."""

    def __init__(self, pieces: Sequence[tuple[int, Entries]]) -> None:
        """`pieces`: the number of each piece, and its table."""
        digests = np.concatenate([np.empty(0, "V32"), *(entries["digest"] for _, entries in pieces)])
        order = np.argsort(_key(digests), kind="stable")
        self._digests = digests[order]
        self._keys = _key(self._digests)
        places = [np.stack([np.full(len(e), n, "i4"), np.arange(len(e), dtype="i4")], axis=1) for n, e in pieces]
        self._places = np.concatenate([np.empty((0, 2), np.int32), *places])[order]

    def find(self, digests: Sequence[bytes]) -> Int64Array:
        """The piece of each block, and its place in the piece, as two columns; -1 for a block without entry."""
        places = np.full((len(digests), 2), -1, np.int64)
        if len(self._keys):
            sought = np.frombuffer(b"".join(digests), "V32")
            at = np.minimum(np.searchsorted(self._keys, _key(sought)), len(self._keys) - 1)
            same = self._digests[at] == sought
            places[same] = self._places[at[same]]
        return places


def _key(digests: np.ndarray[tuple[int], np.dtype[np.void]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The first eight bytes of each digest. If two blocks have the same, one is not found, and written twice."""
    return np.ascontiguousarray(digests).view("<u8").reshape(-1, 4)[:, 0]
