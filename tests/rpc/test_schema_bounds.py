"""The bounds of a schema: what it says itself stays, and all else gets the defaults."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.resolve import Resolver, SchemaFileError
from apiserver.rpc.schema_bounds import DEEPEST, LONGEST_NAME, LONGEST_TEXT, MOST_ITEMS, MOST_VALUES, bounded
from apiserver.rpc.validate import compile_request

TEXT = {"type": "string", "maxLength": LONGEST_TEXT}
ANY = {"maxValues": MOST_VALUES, "maxDepth": DEEPEST, "maxText": LONGEST_TEXT, "maxName": LONGEST_NAME}
INSIDE = {name: bound for name, bound in ANY.items() if name != "maxValues"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, TEXT),
        ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 5}),
        ({"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": "integer"}, {"type": "integer"}),
        ({}, ANY),
        ({"maxValues": 1}, {**ANY, "maxValues": 1}),
        (
            {"type": "array", "items": {"type": "string"}},
            {"type": "array", "items": TEXT, "maxItems": MOST_ITEMS},
        ),
        (
            {"type": "array", "items": {}},
            {"type": "array", "items": INSIDE, "maxItems": MOST_ITEMS, "maxValues": MOST_VALUES},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {
                "type": "object",
                "additionalProperties": TEXT,
                "maxProperties": MOST_ITEMS,
                "maxName": LONGEST_NAME,
            },
        ),
        ({"type": "object"}, {"type": "object", "maxProperties": MOST_ITEMS, **ANY}),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"type": "object", "properties": {"a": TEXT}},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [TEXT, {"type": "integer"}]}),
        ({"type": "object", "anyOf": [{"type": "object", "properties": {}}]}, None),
    ],
    ids=str,
)
def test_what_a_schema_does_not_say_is_the_default(schema: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert bounded(schema) == (schema if expected is None else expected)


FREE = {"maxValues": 5, "maxDepth": 2, "maxText": 3, "maxName": 4}


def refused(field: dict[str, Any], value: Any) -> str:
    with pytest.raises(Refusal) as error:
        compile_request({"type": "object", "properties": {"f": field}})({"f": value})
    assert (error.value.why, error.value.data) == (Why.INVALID, {"field": "f"})
    return error.value.message


@pytest.mark.parametrize("kind", [{}, {"type": "object"}])
def test_values_of_any_type_are_bounded_as_a_whole(kind: dict[str, Any]) -> None:
    field = {**kind, **FREE}
    fine = {"a": ["xxx", 1, None, 2.5]}
    assert compile_request({"type": "object", "properties": {"f": field}})({"f": fine}) == {"f": fine}
    assert "at most 5 values in all" in refused(field, {"a": [1, 2, 3, 4, 5]})
    assert "at most 2 levels" in refused(field, {"a": [[]]})
    assert "at most 3 characters in a text, got 4" in refused(field, {"a": ["xxxx"]})
    assert "at most 4 characters in a name, got 5" in refused(field, {"xxxxx": 1})


def test_a_text_for_any_type_is_bounded() -> None:
    assert "at most 3 characters in a text, got 4" in refused(FREE, "xxxx")


def test_lists_in_lists_are_counted_with_all_that_is_in_them() -> None:
    rows = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}, "maxValues": 6}
    assert compile_request({"type": "object", "properties": {"f": rows}})({"f": [[1], [2, 3]]}) == {"f": [[1], [2, 3]]}
    assert "at most 6 values in all" in refused(rows, [[1, 2], [3, 4], [5]])


def test_maps_have_a_number_of_names() -> None:
    labels = {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1, "maxName": 4}
    assert "at most 1 names, got 2" in refused(labels, {"a": 1, "b": 2})
    assert "at most 4 characters in a name, got 5" in refused(labels, {"xxxxx": 1})


def test_the_error_is_of_the_choice_that_has_the_type() -> None:
    either = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string", "maxLength": 3}]}
    assert "at most 3 characters, got 4" in refused(either, "xxxx")
    assert "expected an array, got 5" in refused(either, 5)


@pytest.mark.parametrize("keyword", ["maxValues", "maxDepth", "maxText", "maxName"])
def test_bounds_are_for_types_that_can_have_them(keyword: str) -> None:
    assert Resolver({}).resolve({keyword: 5}, "here") == {keyword: 5}
    with pytest.raises(SchemaFileError, match=keyword):
        Resolver({}).resolve({"type": "integer", keyword: 5}, "here")
    with pytest.raises(SchemaFileError, match=keyword):
        Resolver({}).resolve({keyword: "5"}, "here")
