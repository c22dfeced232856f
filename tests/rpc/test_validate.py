"""Compiled validators: what requests may look like and what handlers get."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.validate import compile_request

NAN, INFINITY = float("nan"), float("inf")


def validate(fields: dict[str, Any], request: dict[str, Any], **schema: Any) -> dict[str, Any]:
    return compile_request({"type": "object", "properties": fields, **schema})(request)


def value(field: dict[str, Any], given: Any) -> Any:
    """What a field `f` of that schema becomes."""
    return validate({"f": field}, {"f": given})["f"]


def refusal(field: dict[str, Any], given: Any) -> str:
    """Why a field `f` of that schema refuses a value: the text after its name."""
    with pytest.raises(Refusal) as refused:
        value(field, given)
    error = refused.value
    assert error.why is Why.INVALID
    name = error.data["field"]
    assert error.message.startswith(f"Validation error (field '{name}': ")
    return f"{name}: {error.message.split(': ', 1)[1][:-1]}"


STRING, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
STRINGS = {"type": "array", "items": STRING}


@pytest.mark.parametrize(
    ("field", "given", "becomes"),
    [
        (STRING, "", ""),
        (STRING, "5", "5"),
        (INTEGER, 5, 5),
        (INTEGER, "5", 5),
        (INTEGER, "-5", -5),
        (INTEGER, 5.0, 5),
        (INTEGER, "5.0", 5),
        (INTEGER, "1e3", 1000),
        (INTEGER, 2**63 - 1, 2**63 - 1),
        (INTEGER, -(2**63), -(2**63)),
        (NUMBER, 5, 5),
        (NUMBER, 5.5, 5.5),
        (NUMBER, "5.5", 5.5),
        (NUMBER, "5", 5),
        (NUMBER, "-1.5e-3", -0.0015),
        (BOOLEAN, True, True),
        (BOOLEAN, "true", True),
        (BOOLEAN, "False", False),
        (BOOLEAN, "1", True),
        (BOOLEAN, "0", False),
        (STRINGS, [], []),
        (STRINGS, ["a", "b"], ["a", "b"]),
        ({"type": "array"}, [1, None, {"a": []}], [1, None, {"a": []}]),
        ({"type": "object"}, {"any": {"thing": None}}, {"any": {"thing": None}}),
        ({}, [1, "a", None], [1, "a", None]),
        ({"type": "integer", "enum": [1, 2]}, "2", 2),
        ({"const": "x"}, "x", "x"),
    ],
)
def test_values_become_what_the_schema_says(field: dict[str, Any], given: Any, becomes: Any) -> None:
    got = value(field, given)
    assert got == becomes
    assert type(got) is type(becomes)


@pytest.mark.test
@pytest.mark.parametrize(
    ("field", "given", "reason"),
    [
        (STRING, 5, "f: expected a string, got 5"),
        (STRING, True, "f: expected a string, got a boolean"),
        (STRING, ["a"], "f: expected a string, got an array"),
        (STRING, {}, "f: expected a string, got an object"),
        (INTEGER, "abc", "f: expected an integer, got 'abc'"),
        (INTEGER, "", "f: expected an integer, got ''"),
        (INTEGER, " 5", "f: expected an integer, got ' 5'"),
        (INTEGER, "1_000", "f: expected an integer, got '1_000'"),
        (INTEGER, "٥", "f: expected an integer, got '٥'"),
        (INTEGER, "0x10", "f: expected an integer, got '0x10'"),
        (INTEGER, 8.9, "f: expected an integer, got 8.9"),
        (INTEGER, True, "f: expected an integer, got a boolean"),
        (INTEGER, [5], "f: expected an integer, got an array"),
        (INTEGER, NAN, "f: expected an integer, got nan"),
        (INTEGER, INFINITY, "f: expected an integer, got inf"),
        (INTEGER, "1e999", "f: expected an integer, got '1e999'"),
        (INTEGER, 2**63, "f: expected at most 9223372036854775807, got 9223372036854775808"),
        (INTEGER, 1e19, "f: expected at most 9223372036854775807, got 10000000000000000000"),
        (INTEGER, -(2**63) - 1, "f: expected at least -9223372036854775808, got -9223372036854775809"),
        (NUMBER, "x", "f: expected a number, got 'x'"),
        (NUMBER, "nan", "f: expected a number, got 'nan'"),
        (NUMBER, "Infinity", "f: expected a number, got 'Infinity'"),
        (NUMBER, False, "f: expected a number, got a boolean"),
        (NUMBER, NAN, "f: expected a finite number, got nan"),
        (NUMBER, -INFINITY, "f: expected a finite number, got -inf"),
        (NUMBER, "1e999", "f: expected a finite number, got '1e999'"),
        (BOOLEAN, 1, "f: expected a boolean, got 1"),
        (BOOLEAN, "yes", "f: expected a boolean, got 'yes'"),
        (BOOLEAN, [], "f: expected a boolean, got an array"),
        (STRINGS, "a", "f: expected an array, got 'a'"),
        (STRINGS, {}, "f: expected an array, got an object"),
        (STRINGS, ["a", 5], "f[1]: expected a string, got 5"),
        (STRINGS, ["a", None], "f[1]: expected a string, got null"),
        ({"type": "object"}, [], "f: expected an object, got an array"),
        ({"type": "string", "enum": ["asc", "desc"]}, "up", "f: expected one of 'asc', 'desc', got 'up'"),
        ({"enum": [1, "a"]}, True, "f: expected one of 1, 'a', got a boolean"),
        ({"enum": [1, "a"]}, [], "f: expected one of 1, 'a', got an array"),
        ({"const": "x"}, "y", "f: expected one of 'x', got 'y'"),
        ({"type": "integer", "maximum": 6000}, 6001, "f: expected at most 6000, got 6001"),
        ({"type": "integer", "minimum": 1}, "0", "f: expected at least 1, got 0"),
        ({"type": "number", "maximum": 0.5}, 0.6, "f: expected at most 0.5, got 0.6"),
        ({"type": "array", "minItems": 1}, [], "f: expected at least 1 items, got 0"),
        ({"type": "array", "maxItems": 2}, [1, 2, 3], "f: expected at most 2 items, got 3"),
        ({"type": "string", "maxLength": 3}, "long", "f: expected at most 3 characters, got 4"),
        ({"type": "string", "minLength": 1}, "", "f: expected at least 1 characters, got 0"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_the_field_and_the_reason(
    field: dict[str, Any], given: Any, reason: str
) -> None:
    assert refusal(field, given) == reason


def test_a_long_value_is_cut_in_the_reason() -> None:
    assert len(refusal(INTEGER, "x" * 10_000)) < 120
    assert len(refusal(INTEGER, int("9" * 1000))) < 150


def test_a_required_field_that_is_missing_or_null_is_named() -> None:
    for request in ({}, {"task": None}):
        with pytest.raises(Refusal) as refused:
            validate({"task": STRING}, request, required=["task"])
        assert refused.value.message == "Validation error (field 'task': is required)"
        assert refused.value.data == {"field": "task"}


def test_null_means_not_given() -> None:
    fields = {"user": STRING, "samples": {**INTEGER, "default": 6000}}
    assert validate(fields, {"user": None, "samples": None}) == {"samples": 6000}


def test_null_is_kept_where_it_means_something() -> None:
    fields = {"project": {**STRING, "nullable": True}, "n": {**INTEGER, "nullable": True, "default": 5}}
    assert validate(fields, {"project": None, "n": None}) == {"project": None, "n": None}
    assert validate(fields, {}) == {"n": 5}
    assert "expected a string" in refusal(fields["project"], 5)


def test_defaults_are_filled_in_also_for_required_fields() -> None:
    assert validate({"n": {**INTEGER, "default": 5}}, {}, required=["n"]) == {"n": 5}


def test_defaults_are_fresh_for_each_request() -> None:
    validator = compile_request({"type": "object", "properties": {"tags": {"type": "array", "default": [{"a": 1}]}}})
    validator({})["tags"][0]["a"] = 2
    assert validator({}) == {"tags": [{"a": 1}]}


def test_defaults_inside_a_given_object_are_filled_in() -> None:
    inner = {"type": "object", "properties": {"n": {**INTEGER, "default": 5}, "m": INTEGER}}
    assert validate({"o": inner}, {"o": {"m": 1}}) == {"o": {"n": 5, "m": 1}}
    assert validate({"o": inner}, {}) == {}


def test_unknown_fields_are_left_out() -> None:
    assert validate({"task": STRING}, {"task": "a", "whatever": {"x": 1}, "method": "get"}) == {"task": "a"}
    assert validate({}, {"whatever": 1}, additionalProperties=False) == {}


def test_unknown_fields_of_nested_objects_are_left_out_too() -> None:
    item = {"type": "object", "properties": {"metric": STRING}}
    request = {"metrics": [{"metric": "loss", "method": "get"}]}
    assert validate({"metrics": {"type": "array", "items": item}}, request) == {"metrics": [{"metric": "loss"}]}


def test_any_field_is_kept_where_the_schema_allows_it_but_for_the_junk_of_the_sdk() -> None:
    request = {"n": "5", "other": [1], "null": None, "method": "get"}
    assert validate({"n": INTEGER}, request, additionalProperties=True) == {"n": 5, "other": [1]}
    assert compile_request({"type": "object"})(request) == {"n": "5", "other": [1]}


def test_a_method_that_the_schema_knows_is_a_field() -> None:
    assert validate({"method": STRING}, {"method": "get"}) == {"method": "get"}


def test_other_fields_may_have_a_schema() -> None:
    assert validate({}, {"a": "1", "b": None}, additionalProperties=INTEGER) == {"a": 1}
    with pytest.raises(Refusal, match=r"field 'b': expected an integer"):
        validate({}, {"b": "x"}, additionalProperties=INTEGER)


def test_the_path_of_a_field_deep_inside_is_dotted() -> None:
    metric = {"type": "object", "required": ["metric"], "properties": {"metric": STRING, "variants": STRINGS}}
    fields = {"metrics": {"type": "array", "items": metric}}
    for item, path in (
        ({"metric": 5}, "metrics[1].metric"),
        ({}, "metrics[1].metric"),
        ({"metric": "a", "variants": ["x", 5]}, "metrics[1].variants[1]"),
        (7, "metrics[1]"),
    ):
        with pytest.raises(Refusal) as refused:
            validate(fields, {"metrics": [{"metric": "ok"}, item]})
        assert refused.value.data == {"field": path}
        assert f"field '{path}': " in refused.value.message


def test_odd_field_names_do_no_harm() -> None:
    for name in ("", "[", "a.b", "\ud800", "x" * 1000):
        with pytest.raises(Refusal) as refused:
            validate({}, {name: "x"}, additionalProperties=INTEGER)
        refused.value.message.encode()


EVENT = {
    "anyOf": [
        {
            "type": "object",
            "required": ["task", "type"],
            "properties": {"type": {"const": "scalar"}, "task": STRING, "value": NUMBER},
        },
        {
            "type": "object",
            "required": ["task", "type"],
            "properties": {"type": {"const": "log"}, "task": STRING, "msg": STRING},
        },
    ]
}


def test_the_first_alternative_that_fits_decides() -> None:
    event = compile_request({"type": "object", **EVENT})
    assert event({"type": "log", "task": "t", "msg": "m", "value": 5}) == {"type": "log", "task": "t", "msg": "m"}
    assert event({"type": "scalar", "task": "t", "value": "5.5"}) == {"type": "scalar", "task": "t", "value": 5.5}
    assert value({"anyOf": [INTEGER, STRING]}, "x") == "x"


def test_the_reason_is_that_of_the_alternative_that_was_meant() -> None:
    assert refusal(EVENT, {"type": "log", "task": "t", "msg": 5}) == "f.msg: expected a string, got 5"
    assert refusal(EVENT, {"type": "scalar", "task": "t", "value": "x"}) == "f.value: expected a number, got 'x'"
    assert refusal(EVENT, {"type": "log"}) == "f.task: is required"
    assert refusal(EVENT, {"type": "nope", "task": "t"}) == "f.type: expected one of 'scalar', got 'nope'"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.sampled_from("abcdefg"), inner)
    ),
    max_leaves=12,
)

EVERYTHING: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "integer", "minimum": -5, "maximum": 2**70},
        "b": {"type": "number", "enum": [1, 2.5]},
        "c": {"type": "array", "items": {"type": "object", "properties": {"a": BOOLEAN}, "required": ["a"]}},
        "d": EVENT,
        "e": {"type": "object", "additionalProperties": NUMBER},
        "f": {"type": "string", "maxLength": 3, "default": "x"},
        "g": {"enum": ["a", 1], "default": 1},
    },
    "additionalProperties": {"type": "array", "maxItems": 2, "items": INTEGER},
}


@pytest.mark.test
@given(st.dictionaries(st.sampled_from("abcdefgh") | st.text(), json_values))
def test_whatever_json_comes_nothing_but_an_api_error_is_raised_and_it_is_left_alone(request: dict[str, Any]) -> None:
    before = copy.deepcopy(request)
    validator = compile_request(EVERYTHING)
    try:
        validated = validator(request)
    except Refusal as error:
        error.message.encode()
    else:
        assert set(validated) >= {"a", "f", "g"}
        assert validator(validated) == validated
    assert repr(request) == repr(before)


def test_formats_that_matter_to_browsers_are_looked_at() -> None:
    stored, picture = ({"type": "string", "format": name} for name in ("stored-file", "picture"))
    assert value(stored, "hdfs://n/m") == "hdfs://n/m"
    assert value(picture, "") == ""
    assert refusal(stored, "javascript:x") == "f: expected the address of a stored file, got 'javascript:x'"
    assert refusal(picture, "/v2.1/x.y").startswith("f: expected an address of http, https,")
