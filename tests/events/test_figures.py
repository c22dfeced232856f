"""What the text of a figure tells, also as Python writes it: with NaN and infinities."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.figures import facts, without_nan

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["NaN", "-Infinity", '"NaN"', "\\"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_VALUES)
def test_only_numbers_that_json_lacks_become_null(value: Any) -> None:
    text = json.dumps(value)
    assert json.loads(without_nan(text)) == json.loads(text, parse_constant=lambda _: None)


def test_an_unfinished_text_is_looked_at_once() -> None:
    text = "NaN" + '"' + '\\"' * 500_000
    assert without_nan(text) == "null" + text[3:]


def test_a_figure_with_nan_shows_its_images() -> None:
    figure = {"data": [{"z": [float("nan")]}], "layout": {"images": [{"source": "http://files/p"}]}}
    assert facts(json.dumps(figure), skip_validation=False)["source_urls"] == ["http://files/p"]
