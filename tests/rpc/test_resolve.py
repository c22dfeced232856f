"""Single schemas: references and every mistake that can be made in one."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.rpc.resolve import Resolver, SchemaFileError


def resolve(node: Any, **definitions: Any) -> Any:
    return Resolver(definitions).resolve(node, "here")


def test_a_reference_is_replaced_and_what_stands_beside_it_wins() -> None:
    text = {"type": "string", "description": "of the definition"}
    assert resolve({"$ref": "#/definitions/text", "description": "own"}, text=text) == {
        "type": "string",
        "description": "own",
    }


def test_references_are_replaced_at_every_depth() -> None:
    node = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"$ref": "#/definitions/outer"}},
            "map": {"type": "object", "additionalProperties": {"$ref": "#/definitions/inner"}},
            "either": {"anyOf": [{"$ref": "#/definitions/inner"}, {"type": "string"}]},
        },
    }
    inner, outer = {"type": "integer"}, {"type": "object", "properties": {"n": {"$ref": "#/definitions/inner"}}}
    assert resolve(node, inner=inner, outer=outer)["properties"] == {
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": inner}}},
        "map": {"type": "object", "additionalProperties": inner},
        "either": {"anyOf": [inner, {"type": "string"}]},
    }


def test_a_definition_may_be_used_often() -> None:
    node = {"type": "object", "properties": {name: {"$ref": "#/definitions/n"} for name in "ab"}}
    assert resolve(node, n={"type": "integer"})["properties"]["b"] == {"type": "integer"}


def test_keys_with_an_underscore_are_for_people() -> None:
    assert resolve({"type": "string", "_todo": "say more"}) == {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "integer", "enum": [1, 2], "default": 2},
        {"type": "number", "default": 5},
        {"type": "object", "default": {}},
        {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "default": {}},
        {"type": "array", "default": []},
        {"type": "array", "items": {"type": "string"}, "default": ["a"]},
        {"type": "string", "const": "x"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}], "default": 5},
        {"type": "string", "format": "date-time"},
        {"type": "number", "minimum": 0.5, "maximum": 1},
    ],
)
def test_right_schemas_stay_as_they_are(schema: dict[str, Any]) -> None:
    assert resolve(schema) == schema


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (5, "here: must be an object"),
        ({"type": "strnig"}, "here: unknown type strnig"),
        ({"type": ["string"]}, r"here: unknown type \['string'\]"),
        ({"$ref": "#/definitions/nope"}, "here: unknown \\$ref #/definitions/nope"),
        ({"$ref": "text"}, "here: unknown \\$ref text"),
        ({"$ref": 5}, "here: unknown \\$ref 5"),
        ({"$ref": "#/definitions/loop"}, "here.again: \\$ref #/definitions/loop leads back to itself"),
        ({"$ref": "#/definitions/number"}, "here: must be an object"),
        ({"type": "string", "requierd": ["a"]}, "here: a schema of type string has no requierd"),
        ({"type": "string", "minimum": 5}, "here: a schema of type string has no minimum"),
        ({"properties": {}}, "here: a schema without type has no properties"),
        ({"type": "object", "properties": []}, "here: must be an object"),
        ({"type": "object", "properties": {"a": 5}}, "here.a: must be an object"),
        ({"type": "object", "required": ["a"]}, "here: required field a is not in properties"),
        ({"type": "object", "required": "a"}, "here: required must be a list"),
        ({"type": "object", "additionalProperties": 5}, "here: additionalProperties must be true, false or a schema"),
        ({"type": "object", "additionalProperties": {"type": "x"}}, "here\\.\\*: unknown type x"),
        ({"type": "object", "properties": {}, "anyOf": [{}]}, "here: anyOf and properties exclude each other"),
        ({"type": "array", "items": {"type": "x"}}, "here\\[\\]: unknown type x"),
        ({"type": "array", "minItems": "1"}, "here: minItems must be a number, not 1"),
        ({"type": "array", "minItems": 1.5}, "here: minItems must be a number, not 1.5"),
        ({"type": "integer", "maximum": True}, "here: maximum must be a number, not True"),
        ({"anyOf": []}, "here: must be a list that is not empty"),
        ({"anyOf": {"type": "string"}}, "here: must be a list that is not empty"),
        ({"type": "string", "enum": []}, "here: must be a list that is not empty"),
        ({"type": "string", "enum": ["on", True]}, "here: enum: expected a string, got a boolean"),
        ({"type": "integer", "enum": ["1"]}, "here: enum: expected a value of type integer, got '1'"),
        ({"type": "string", "const": 5}, "here: const: expected a string, got 5"),
        ({"type": "string", "default": 5}, "here: default: expected a string, got 5"),
        ({"type": "string", "default": None}, "here: default: expected a string, got null"),
        ({"type": "integer", "default": "5"}, "here: default: expected a value of type integer, got '5'"),
        ({"type": "boolean", "default": "true"}, "here: default: expected a value of type boolean, got 'true'"),
        ({"type": "integer", "maximum": 5, "default": 6}, "here: default: expected at most 5, got 6"),
        ({"type": "string", "enum": ["a"], "default": "b"}, "here: default: expected one of 'a', got 'b'"),
        ({"type": "array", "items": {"type": "string"}, "default": [5]}, "here: default: expected a string, got 5"),
    ],
)
def test_a_mistake_is_named_with_its_place(schema: Any, message: str) -> None:
    loop = {"type": "object", "properties": {"again": {"$ref": "#/definitions/loop"}}}
    with pytest.raises(SchemaFileError, match=f"^{message}$"):
        resolve(schema, loop=loop, number=5)
