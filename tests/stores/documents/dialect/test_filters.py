"""Corners of what filters mean; the contract of the document stores has the plain cases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from apiserver.stores.documents.base import Document, Filter, InvalidFilter
from apiserver.stores.documents.dialect.filters import parse_filter
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
        ({"a": [1, 9]}, {"a": {"$gt": 4, "$lt": 6}}, True),
        ({"a": [["x"]]}, {"a": {"$all": [["x"]]}}, True),
        ({"a": {"b": 2}}, {"a": {"$gt": {"b": 1}}}, True),
        ({"a": "x"}, {"a": {"$regex": "X", "$options": "i", "$ne": "y"}}, True),
        ({"a": "y"}, {"a": {"$regex": "Y", "$options": "i", "$ne": "y"}}, False),
        ({"a": 1}, {"$and": [{}]}, True),
        ({"a": 1}, {"$nor": [{}]}, False),
    ],
)
def test_corners(document: Document, filter: Filter, expected: bool) -> None:
    assert parse_filter(filter).matches(document) is expected


@given(strategies.documents("x"), strategies.filters)
def test_nor_is_the_opposite(document: Document, filter: Filter) -> None:
    assert parse_filter({"$nor": [filter]}).matches(document) is not parse_filter(filter).matches(document)


@given(strategies.documents("x"))
def test_every_field_equals_itself(document: Document) -> None:
    assert parse_filter(document).matches(document)


@pytest.mark.parametrize("filter", [None, [], "x", {"a": {"b": 1, "$gt": 1}}, {1: 2}, {"a": {"$all": 1}}])
def test_malformed(filter: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse_filter(filter)
