"""Shapes notice what is not there, and what is of another type."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.web_ui.shapes import Each, Either, misfit


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("x", str),
        (1, float),
        (1.5, float),
        (1, int),
        (True, bool),
        (None, None),
        (None, object),
        ("a", "a"),
        ([], []),
        ([], list),
        ([1, 2], [int]),
        ({"a": 1, "more": 2}, {"a": int}),
        ({"loss": {"x": [0]}}, Each({"x": [int]})),
        (None, Either(None, str)),
    ],
)
def test_values_of_a_shape(value: Any, shape: Any) -> None:
    assert misfit(value, shape) is None


@pytest.mark.parametrize(
    ("value", "shape", "where"),
    [
        (None, str, "data is"),
        (True, int, "data is"),
        (1.5, int, "data is"),
        ("b", "a", "data is"),
        (1, True, "data is"),
        ([1], [], "data is"),
        ([], [int], "data is"),
        ([1, "2"], [int], "data[1] is"),
        ({}, {"a": int}, "data has no a"),
        ({"a": {"b": [{"c": None}]}}, {"a": {"b": [{"c": str}]}}, "data.a.b[0].c is"),
        ([], {"a": int}, "data is"),
        ({}, Each(int), "data is"),
        ({"loss": "x"}, Each(int), "data.loss is"),
        (1, Either(None, str), "data is '1', not None and data is '1', not <class 'str'>"),
    ],
)
def test_other_values(value: Any, shape: Any, where: str) -> None:
    assert str(misfit(value, shape)).startswith(where)
