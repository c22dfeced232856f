"""Scroll ids: bound to their query, signed, and nothing but a position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.reading.scroll import InvalidScroll, Scrolls

SCROLLS = Scrolls("secret")
QUERY = ("get_task_events", "t1", "asc")


@pytest.mark.test
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.booleans()))
def test_a_position_comes_back_as_it_was(position: list[object]) -> None:
    assert SCROLLS.decode(QUERY, SCROLLS.encode(QUERY, position)) == position


def test_any_server_with_the_same_secret_reads_it() -> None:
    assert Scrolls("secret").decode(QUERY, SCROLLS.encode(QUERY, [1])) == [1]


def test_another_secret_or_query_refuses_it() -> None:
    scroll_id = SCROLLS.encode(QUERY, [1])
    with pytest.raises(InvalidScroll):
        Scrolls("other").decode(QUERY, scroll_id)
    with pytest.raises(InvalidScroll):
        SCROLLS.decode(("get_task_events", "t2", "asc"), scroll_id)


@given(st.text())
def test_text_that_is_no_scroll_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidScroll):
        SCROLLS.decode(QUERY, text)


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_changed_scroll_id_is_refused(position: int, change: int) -> None:
    scroll_id = SCROLLS.encode(QUERY, ["a" * 40, 12345])
    at = position % len(scroll_id)
    changed = scroll_id[:at] + chr(33 + (ord(scroll_id[at]) - 33 + change) % 94) + scroll_id[at + 1 :]
    try:
        decoded = SCROLLS.decode(QUERY, changed)
    except InvalidScroll:
        return
    # Base64's last character may carry unused bits: then the bytes are the same.
    assert decoded == ["a" * 40, 12345]
