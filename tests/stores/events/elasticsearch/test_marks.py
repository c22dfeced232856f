"""Which marks go with a batch: those that others might take for a dead server's before the next one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import orjson

from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.marks import RENEWED, Marks
from tests.contract.event_stores import OWNER

NOW = 1_700_000_000.0


def marks() -> Marks:
    cluster: Any = SimpleNamespace(prefix="events", wrote=lambda indices: None)
    return Marks(cast(Cluster, cluster))


def test_a_mark_goes_with_every_batch_until_it_is_known_to_be_set() -> None:
    made = marks()
    (first,) = made.items([OWNER], NOW).values()
    (again,) = made.items([OWNER], NOW + 1).values()
    (action, mark), (action_again, mark_again) = (map(orjson.loads, item.splitlines()) for item in (first, again))
    assert action == action_again
    assert (mark["at"], mark_again["at"]) == (NOW * 1000, (NOW + 1) * 1000)


def test_the_age_of_a_mark_counts_from_when_it_was_made_however_long_it_took_to_be_set() -> None:
    made = marks()
    made.are_set(made.items([OWNER], NOW), NOW)
    assert not made.items([OWNER], NOW + RENEWED - 1)
    assert made.items([OWNER], NOW + RENEWED)


def test_a_batch_that_took_longer_than_the_next_one_makes_no_mark_older() -> None:
    made = marks()
    slow, quick = made.items([OWNER], NOW), made.items([OWNER], NOW + 5)
    made.are_set(quick, NOW + 5)
    made.are_set(slow, NOW)
    assert not made.items([OWNER], NOW + RENEWED)


def test_marks_are_renewed_when_the_clock_was_set_back() -> None:
    made = marks()
    made.are_set(made.items([OWNER], NOW), NOW)
    earlier = NOW - 3600
    made.are_set(made.items([OWNER], earlier), earlier)
    assert not made.items([OWNER], earlier + RENEWED - 1)
    assert made.items([OWNER], earlier + RENEWED)
