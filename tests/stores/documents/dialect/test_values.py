"""How values compare."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from apiserver.stores.documents.base import InvalidDocument
from apiserver.stores.documents.dialect.values import MISSING, class_of, order, same
from tests.stores.documents import strategies

ASCENDING: list[Any] = [
    *[None, -(2**63), -1.5, 0, 0.5, 1, 2**63 - 1, "", "A", "a", "aa", "é"],
    *[{}, {"b": None}, {"a": 1}, {"a": 1, "b": 1}, {"b": 1}, {"a": "x"}, [], [None], [1], [1, 2], [2], False, True],
]


def test_order() -> None:
    for less, more in pairwise(ASCENDING):
        assert order(less) < order(more), (less, more)


@given(strategies.values)
def test_a_value_is_the_same_after_json(value: Any) -> None:
    assert same(value, json.loads(json.dumps(value)))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, True),
        (0.0, -0.0, True),
        (1, True, False),
        (0, False, False),
        ("", None, False),
        (10**17 + 1, 1e17, False),
        ([1], (1,), True),
        ([True], [1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        (None, MISSING, True),
    ],
)
def test_same(left: Any, right: Any, expected: bool) -> None:
    assert same(left, right) is expected


def test_what_json_has_not_is_of_no_class() -> None:
    with pytest.raises(InvalidDocument, match="cannot hold a bytes"):
        class_of(b"x")
