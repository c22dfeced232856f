"""CRC-32C: known checksums, and the same by rows, by lanes and bit by bit."""

from __future__ import annotations

import random

import numpy as np
import pytest

from apiserver.importing.runs import crc32c


def plain(data: bytes) -> int:
    crc = 0xFFFF_FFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFF_FFFF


def test_known_checksums() -> None:
    # RFC 3720, B.4
    for data, known in ((b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)):
        assert crc32c.of_bytes(np.frombuffer(data, np.uint8)) == known
        assert crc32c.of_rows(np.frombuffer(data, np.uint8).reshape(1, -1)).tolist() == [known]


@pytest.mark.test
@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 5000])
def test_rows_lanes_and_bits_agree(size: int, dice: random.Random) -> None:
    rows = [dice.randbytes(size) for _ in range(3)]
    matrix = np.frombuffer(b"".join(rows), np.uint8).reshape(3, size)
    expected = [plain(row) for row in rows]
    assert crc32c.of_rows(matrix).tolist() == expected
    assert [crc32c.of_bytes(row) for row in matrix] == expected
