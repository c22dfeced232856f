"""What reading a body of lines takes."""

from __future__ import annotations

import pytest

from apiserver.events.lines import memory_of


@pytest.mark.parametrize("size", [4 * 2**10, 2 * 2**20])
def test_memory_of_a_body_goes_by_its_lines(size: int) -> None:
    line = b'{"type":"log","msg":"' + b"x" * 480 + b'"}\n'
    assert memory_of(b"{}\n" * (size // 3)) == pytest.approx(size / 3 * 160, rel=0.2)
    assert memory_of(line * (size // len(line))) == pytest.approx(size, rel=0.2)
