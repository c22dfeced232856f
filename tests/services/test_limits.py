"""Everything in a request that there may be more of has a bound, and one more than that is an error that names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.schema_bounds import DEEPEST, LONGEST_NAME, LONGEST_TEXT, MOST_ITEMS, MOST_VALUES
from apiserver.rpc.validate import Validator, compile_request
from tests.services.generated import ENDPOINTS
from tests.services.largest import BOUNDS, RAW, all_cases, places

#: Types whose values hold no others.
FLAT = ("string", "integer", "number", "boolean")


def test_everything_has_a_bound() -> None:
    for endpoint in ENDPOINTS:
        for place in places(endpoint):
            inner = place.schema.get("items", place.schema.get("additionalProperties"))
            flat = isinstance(inner, dict) and (inner.get("type") in FLAT or "enum" in inner)
            wanted = {*BOUNDS.get(place.kind or "number", ())} - ({"maxValues"} if flat or place.counted else set())
            assert wanted <= place.schema.keys(), (endpoint.name, place.path, wanted - place.schema.keys())


def test_batches_have_a_bound() -> None:
    for endpoint in ENDPOINTS:
        assert endpoint.item is None or endpoint.name in RAW or endpoint.most_items, endpoint.name


@pytest.mark.test
def test_one_beyond_a_bound_is_an_error_that_names_field_and_bound() -> None:
    validators: dict[int, Validator] = {}
    for case in all_cases():
        request = case.beyond()
        if request is None:
            continue
        key = id(case.endpoint)
        if key not in validators:
            validators[key] = compile_request(case.endpoint.item or case.endpoint.request)
        try:
            validators[key](request)
        except Refusal as refused:
            error = refused
        else:
            raise AssertionError(f"taken: {case}")
        assert error.why is Why.INVALID, case
        field = "" if case.place.path == "" else f"'{case.place.path}"
        assert f"at most {case.bound} " in error.message, (str(case), error.message)
        assert field in error.message, (str(case), error.message)
        assert len(error.message) < 500


@pytest.mark.check
def test_as_much_as_a_bound_allows_is_taken() -> None:
    validators: dict[int, Validator] = {}
    for case in all_cases():
        request = case.largest()
        key = id(case.endpoint)
        if key not in validators:
            validators[key] = compile_request(case.endpoint.item or case.endpoint.request)
        if request is not None:
            validators[key](request)


def test_raw_endpoints_are_few() -> None:
    assert {"events.add", "events.add_batch"} == RAW


def test_the_documented_bounds_are_those_of_the_code() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| ([0-9,]+) \|$", text.partition("### Limits")[2].partition("\n## ")[0], re.MULTILINE)
    bounds = [MOST_ITEMS, MOST_VALUES, LONGEST_TEXT, LONGEST_NAME, DEEPEST]
    assert rows == [f"{bound:,}" for bound in bounds]
