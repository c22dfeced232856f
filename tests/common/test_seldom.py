"""What is told seldom."""

from __future__ import annotations

from apiserver.common.seldom import Seldom


def test_each_thing_is_due_once_an_hour() -> None:
    now = [0.0]
    told = Seldom(lambda: now[0])
    assert [told.due(thing) for thing in ("a", "a", "b", "a")] == [True, False, True, False]
    now[0] = 3599.0
    assert not told.due("a")
    now[0] = 3600.0
    assert [told.due(thing) for thing in ("a", "a")] == [True, False]


def test_no_more_is_remembered_than_told() -> None:
    told = Seldom(lambda: 0.0, most=2)
    assert [told.due(thing) for thing in ("a", "b", "c", "c", "b", "a")] == [True, True, True, False, False, True]
