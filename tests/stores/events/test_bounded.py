"""A full memory forgets first what nobody has used for longest."""

from __future__ import annotations

from apiserver.stores.events.bounded import Bounded


def test_what_was_used_last_is_remembered() -> None:
    known: Bounded[str, int] = Bounded(3, lambda key, size: size)
    for key in "abc":
        known.put(key, 1)
    assert known.get("a") == 1
    known.put("d", 1)
    assert [known.get(key) for key in "abcd"] == [1, None, 1, 1]
    known.put("a", 2)
    assert [known.get(key) for key in "acd"] == [2, None, 1]
    known.drop("a")
    known.put("e", 2)
    assert [known.get(key) for key in "ade"] == [None, 1, 2]


def test_what_takes_more_than_all_the_room_is_not_remembered() -> None:
    known: Bounded[str, int] = Bounded(3, lambda key, size: size)
    known.put("a", 1)
    known.put("b", 4)
    assert [known.get(key) for key in "ab"] == [None, None]
    known.put("c", 3)
    assert known.get("c") == 3
    known.clear()
    assert known.get("c") is None
    known.put("d", 3)
    assert known.get("d") == 3
