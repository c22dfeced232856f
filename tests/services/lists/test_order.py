"""From requests to sorts."""

from __future__ import annotations

import pytest

from apiserver.common.errors import Refusal
from apiserver.services.lists.order import sort_of


def test_a_sort_has_few_fields() -> None:
    assert len(sort_of({"order_by": ["name"] * 10})) == 10
    with pytest.raises(Refusal):
        sort_of({"order_by": ["name"] * 11})


def test_sorts() -> None:
    assert sort_of({}) == [("created", 1)]
    assert sort_of({"order_by": ["-last_update", "name"]}) == [("last_update", -1), ("name", 1)]
    assert sort_of({"order_by": ["-id", "@text_score"]}) == [("id", -1)]
    assert sort_of({"order_by": ["-", ""]}) == [("created", 1)]


def test_a_sort_by_a_parameter_is_by_its_value() -> None:
    asked = ["hyperparams.Args.lr", "-hyperparams.Args.lr.value", "-metadata.size", "hyperparams.Args", "metadata"]
    assert sort_of({"order_by": asked}) == [
        *[("hyperparams.Args.lr.value", 1), ("hyperparams.Args.lr.value", -1), ("metadata.size.value", -1)],
        *[("hyperparams.Args", 1), ("metadata", 1)],
    ]
