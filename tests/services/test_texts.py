"""Texts that a pattern could try in very many ways take no longer than others. With one that does, these never end."""

from __future__ import annotations

import pytest

from apiserver.common.errors import Refusal
from apiserver.events.odd import normalize
from apiserver.events.rejects import Reject
from apiserver.fileserver.ranges import requested_range
from apiserver.services.lists.conditions import QuerySpec, build_filter
from apiserver.stores.documents.dialect.sorts import parse_sort

LONG = 300_000


@pytest.mark.test
@pytest.mark.parametrize("field", ["timestamp", "value", "iter"])
def test_a_long_number_that_is_none_costs_its_event(field: str) -> None:
    with pytest.raises(Reject):
        normalize({"type": "training_stats_scalar", "task": "t", field: "1" * LONG + "x"})


def test_long_numbers_sort_as_texts() -> None:
    term = parse_sort([("value", 1)], numeric=["value"])[0]
    number, long, text = [term.place([value]) or () for value in ("9", "1" * LONG + "x", "2x")]
    assert number < long < text


def test_a_long_time_is_an_error() -> None:
    with pytest.raises(Refusal):
        build_filter({"created": [">=" + " " * LONG + "x"]}, QuerySpec())


def test_a_range_of_many_blanks_is_the_whole_file() -> None:
    assert requested_range("bytes=" + " " * 60_000, 5) is None
