"""What documents sort by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.sorts import Term, in_order, parse_sort
from apiserver.stores.documents.dialect.values import MISSING, order
from apiserver.stores.documents.query import Sort


@pytest.mark.parametrize(
    ("found", "least", "greatest"),
    [
        ([3, 1, 2], 1, 3),
        ([[3, 1], 2], 1, 3),
        ([["x", 7]], 7, "x"),
        ([False, 0], 0, False),
    ],
)
def test_a_document_sorts_by_its_least_or_greatest_value(found: list[Any], least: Any, greatest: Any) -> None:
    assert Term(("n",)).place(found) == order(least)
    assert Term(("n",), descending=True).place(found) == order(greatest)


@pytest.mark.parametrize("found", [[], [MISSING], [None], [""], [[]], [{}], [["x", None]], [[[]]], [1, MISSING]])
def test_what_is_no_value(found: list[Any]) -> None:
    assert Term(("n",)).place(found) is Term(("n",), descending=True).place(found) is None


def test_texts_that_are_numbers_sort_as_numbers_if_they_are_to() -> None:
    texts = ["10", "2", "-1.5", "+3.", ".5", "1e1000", "-2E+2", "1_0", "0x1", "nan", "inf", " 1", "٣", "a"]
    documents = [{"id": f"{place:02}", "n": text} for place, text in enumerate([*texts, 4])]
    numbers = ["-2E+2", "-1.5", ".5", "2", "+3.", 4, "10", "1e1000"]
    others = sorted(text for text in texts if text not in numbers)
    assert [found["n"] for found in in_order(documents, parse_sort([("n", 1)], ["n"]))] == [*numbers, *others]
    assert [found["n"] for found in in_order(documents, parse_sort([("n", 1)]))] == [4, *sorted(texts)]


def test_a_sort_ends_with_the_id_in_the_direction_of_its_last_field() -> None:
    assert parse_sort([]) == []
    assert parse_sort([("a", 1), ("b", -1)]) == [Term(("a",)), Term(("b",), True), Term(("id",), True)]
    assert parse_sort([("a", -1), ("id", 1), ("b", 1)]) == [Term(("a",), True), Term(("id",))]


@pytest.mark.parametrize("sort", [[("n", 2)], [("", 1)], [("$n", 1)]])
def test_a_malformed_sort_is_refused(sort: Sort) -> None:
    with pytest.raises(InvalidFilter, match="field"):
        parse_sort(sort)


@pytest.mark.test
@given(st.lists(st.integers(0, 3) | st.none()), st.sampled_from([1, -1]))
def test_documents_without_a_value_come_last_and_ties_by_id(given: list[int | None], direction: int) -> None:
    documents = [{"id": f"{place:03}", "n": value} for place, value in enumerate(given)]
    found = in_order(reversed(documents), parse_sort([("n", direction)]))
    there = [(one["n"], one["id"]) for one in found if one["n"] is not None]
    missing = [one["id"] for one in found if one["n"] is None]
    assert [(one["n"], one["id"]) for one in found[: len(there)]] == there == sorted(there, reverse=direction < 0)
    assert missing == sorted(missing, reverse=direction < 0)
