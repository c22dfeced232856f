"""Corners of what filters mean; the contract of the document stores has the plain cases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.query import (
    AllOf,
    Both,
    Document,
    Filter,
    Greater,
    HasAll,
    Less,
    Matches,
    NoneOf,
    Unequal,
)
from tests.stores.documents import strategies


@pytest.mark.parametrize(
    ("document", "filter", "expected"),
    [
        ({"a": [{"b": 1}, {}]}, {"a.b": None}, True),
        ({"a": [{"b": 1}]}, {"a.b": None}, False),
        ({"a": [1, 2]}, {"a.b": None}, False),
        ({"a": []}, {"a.b": None}, False),
        ({"a": 1}, {"a.b": None}, True),
        ({"a": [[1, 2], 3]}, {"a": [1, 2]}, True),
        ({"a": [[1, 2], 3]}, {"a": 1}, False),
        ({"a": [[1, 2], 3]}, {"a.0": 1}, True),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}}, False),
        ({"a": {"b": 1}}, {"a": {"b": True}}, False),
        ({"a": [1, 9]}, {"a": Both(Greater(4), Less(6))}, True),
        ({"a": [["x"]]}, {"a": HasAll([["x"]])}, True),
        ({"a": {"b": 2}}, {"a": Greater({"b": 1})}, True),
        ({"a": "x"}, {"a": Both(Matches("X", any_case=True), Unequal("y"))}, True),
        ({"a": "y"}, {"a": Both(Matches("Y", any_case=True), Unequal("y"))}, False),
        ({"a": 1}, AllOf([{}]), True),
        ({"a": 1}, NoneOf([{}]), False),
    ],
)
def test_corners(document: Document, filter: Filter, expected: bool) -> None:
    assert meets(parse_filter(filter))(document) is expected


@pytest.mark.test
@given(strategies.documents("x"), strategies.filters)
def test_nor_is_the_opposite(document: Document, filter: Filter) -> None:
    assert meets(parse_filter(NoneOf([filter])))(document) is not meets(parse_filter(filter))(document)


@pytest.mark.test
@given(strategies.documents("x"))
def test_every_field_equals_itself(document: Document) -> None:
    assert meets(parse_filter(document))(document)


@pytest.mark.parametrize("filter", [{"": 1}, {1: 2}, {"a": Both(Less(1), Matches("("))}, NoneOf([{"$a": 1}])])
def test_malformed(filter: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse_filter(filter)
