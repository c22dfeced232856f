"""CRC-32C, the checksum in TensorBoard's files, of many records at once or of a long one, with numpy.

One step takes a byte of each record: `crc = TABLE[(crc ^ byte) & 255] ^ (crc >> 8)`. A long record is cut into lanes of
equal length, which are taken side by side. The checksums of the lanes are then joined: the checksum of "ab" is that of
"a" followed by as many zeros as "b" has bytes, xor that of "b".
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Sums = npt.NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFF_FFFF
_LANE = 1024


def _table() -> Sums:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), table >> np.uint32(1))
    return table


_TABLE = _table()


def of_rows(rows: Bytes) -> Sums:
    """The checksum of each row of a matrix."""
    return _advanced(np.full(len(rows), _ALL, np.uint32), rows) ^ np.uint32(_ALL)


def of_bytes(data: Bytes) -> int:
    """The checksum of one record."""
    whole = len(data) // _LANE * _LANE
    crc = _ALL
    if whole:
        lanes = data[:whole].reshape(-1, _LANE)
        behind = _behind_zeros()
        for lane in _advanced(np.zeros(len(lanes), np.uint32), lanes).tolist():
            crc = behind[0][crc & 255] ^ behind[1][crc >> 8 & 255] ^ behind[2][crc >> 16 & 255] ^ behind[3][crc >> 24]
            crc ^= lane
    rest = _advanced(np.array([crc], np.uint32), data[whole:].reshape(1, -1))
    return int(rest[0]) ^ _ALL


def masked(sums: Sums) -> Sums:
    """The form in which TFRecord files hold checksums: turned by 15 bits, plus a number."""
    turned = (sums >> np.uint32(15)) | (sums << np.uint32(17))
    return turned + np.uint32(0xA282EAD8)


def _advanced(sums: Sums, rows: Bytes) -> Sums:
    """The states behind one more row each."""
    for column in np.ascontiguousarray(rows.T):
        sums = _TABLE[(sums ^ column) & np.uint32(255)] ^ (sums >> np.uint32(8))
    return sums


@lru_cache(maxsize=1)
def _behind_zeros() -> list[list[int]]:
    """The state behind as many zeros as a lane is long, for each value of each of the four bytes of a state."""
    values = np.arange(256, dtype=np.uint32)
    states = np.concatenate([values << np.uint32(8 * byte) for byte in range(4)])
    for _ in range(_LANE):
        states = _TABLE[states & np.uint32(255)] ^ (states >> np.uint32(8))
    return [part.tolist() for part in states.reshape(4, 256)]
