"""Values and depth of JSON texts, against what a parser makes of them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.json_structure import has_more_values, is_deeper, structure_of

TEXTS = st.text(alphabet='"\\[]{},:a', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers(0, 99) | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=30
)


def measured(value: Any) -> tuple[int, int]:
    """How many values there are, and how deep they lie."""
    children = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    below = [measured(child) for child in children]
    depth = 1 + max((depth for _, depth in below), default=0) if isinstance(value, (dict, list)) else 0
    return 1 + sum(count for count, _ in below), depth


@pytest.mark.test
@pytest.mark.parametrize("at_once", [1, 2, 7, 2**16])
@given(VALUES)
def test_depth_is_exact_and_values_are_not_more(at_once: int, value: Any) -> None:
    text = orjson.dumps(value)
    values, depth = measured(value)
    found = structure_of(text, at_once)
    assert found.depth == depth
    assert values <= found.values <= 2 * values


def test_a_limit_may_be_reached() -> None:
    text = b'{"a": [1, 2, "[,"]}'
    assert [has_more_values(text, limit) for limit in (4, 5, 6)] == [True, False, False]
    assert [is_deeper(text, levels) for levels in (1, 2)] == [True, False]


@pytest.mark.parametrize("text", [b"", b"\\", b'"', b'"\\', b"]]]", b"\xff" * 99])
def test_what_is_no_json_does_no_harm(text: bytes) -> None:
    assert structure_of(text).depth <= 0
