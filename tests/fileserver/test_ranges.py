"""Range headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.fileserver.ranges import NotSatisfiable, requested_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=0-9", (0, 10)),
        ("bytes=3-", (3, 10)),
        ("bytes=3-100", (3, 10)),
        ("bytes=-4", (6, 10)),
        ("bytes=-400", (0, 10)),
        ("Bytes= 2 - 3 ", (2, 4)),
    ],
)
def test_one_range(header: str, expected: tuple[int, int]) -> None:
    assert requested_range(header, 10) == expected


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-2",
        "bytes=0-1,3-4",
        "lines=0-1",
        "bytes=--1",
        "bytes=1-" + "9" * 40,
    ],
)
def test_what_cannot_be_read_asks_for_all(header: str | None) -> None:
    assert requested_range(header, 10) is None


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=10-12", 10), ("bytes=-0", 10), ("bytes=-1", 0)]
)
def test_beyond_the_end(header: str, size: int) -> None:
    with pytest.raises(NotSatisfiable):
        requested_range(header, size)


@given(st.text("bytes=-0123456789, ", max_size=30), st.integers(0, 2**63))
def test_a_range_is_never_outside_the_file(header: str, size: int) -> None:
    try:
        wanted = requested_range(header, size)
    except NotSatisfiable:
        return
    assert wanted is None or 0 <= wanted.start < wanted.stop <= size
