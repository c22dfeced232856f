"""Series are known by numbers, as many as there is room for, and no company takes the room of another."""

from __future__ import annotations

from typing import cast

from apiserver.events.model import Owner
from apiserver.services.quotas.known_series import KnownSeries
from apiserver.stores.events.base import EventStore

NO_STORE = cast(EventStore, None)


def test_new_ones_are_told_once_in_their_order() -> None:
    known = KnownSeries(NO_STORE)
    owner = Owner("c", "t")
    assert known.of(owner).new([5, -3, 5, 9]) == [5, -3, 9]
    known.add(owner, [5, -3])
    assert known.of(owner).new([9, 5, 2**62, -3, -(2**62), 9]) == [9, 2**62, -(2**62)]
    assert known.of(owner).new([5, -3]) == []


def test_the_company_with_most_series_forgets_those_asked_for_longest_ago() -> None:
    known = KnownSeries(NO_STORE, most=1000)
    small, *large = (Owner("small", "t"), *(Owner("large", f"t{n}") for n in range(5)))
    known.add(small, range(100))
    for n, owner in enumerate(large):
        known.add(owner, range(200))
        if n:
            assert known.of(large[0]).new(range(200)) == []  # it is asked for all the time
    assert known.of(small).new(range(100)) == []
    forgotten = [owner for owner in large if len(known.of(owner).numbers) == 0]
    assert forgotten == large[1:3]
