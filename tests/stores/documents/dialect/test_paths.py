"""Where paths lead, and what projections keep."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.paths import parse, project, reach
from apiserver.stores.documents.dialect.values import MISSING
from apiserver.stores.documents.query import Document
from tests.stores.documents import strategies


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        ({"a": 1}, "a", [1]),
        ({"a": None}, "a", [None]),
        ({}, "a", [MISSING]),
        ({"a": 1}, "a.b", [MISSING]),
        ({"a": None}, "a.b", [MISSING]),
        ({"a": {"b": [1, 2]}}, "a.b", [[1, 2]]),
        ({"a": [{"b": 1}, {"b": 2}, {}, 3]}, "a.b", [1, 2, MISSING]),
        ({"a": []}, "a.b", []),
        ({"a": [1, None]}, "a.b", []),
        ({"a": [[{"b": 1}]]}, "a.b", []),
        ({"a": [[{"b": 1}]]}, "a.0.b", [1]),
        ({"a": [5, 6]}, "a.1", [6]),
        ({"a": [5, 6]}, "a.2", []),
        ({"a": [{"0": 7}]}, "a.0", [7, {"0": 7}]),
        ({"a": {"0": 7}}, "a.0", [7]),
        ({"a": [5]}, "a.٠", []),
        ({"a": [5]}, "a." + "9" * 5000, []),
    ],
)
def test_reach(value: Document, path: str, expected: list[Any]) -> None:
    assert list(reach(value, parse(path))) == expected


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "$a", "a.$b", ".".join("a" * 101), "\ud800", 1, None])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse(path)


@given(strategies.documents("x"))
def test_projecting_every_field_keeps_everything(document: Document) -> None:
    assert project(document, [(name,) for name in document]) == document


@pytest.mark.test
@given(strategies.documents("x"), strategies.paths)
def test_a_projected_path_reaches_the_same_objects(document: Document, path: str) -> None:
    names = tuple(name if not name.isdigit() else "a" for name in parse(path))
    assert list(reach(project(document, [names]), names)) == list(reach(document, names))
