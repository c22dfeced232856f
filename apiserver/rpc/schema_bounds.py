"""Bounds on what a request may hold: every list, map, text and free value of a schema gets one.

A schema says its own bounds where clients need more, or where that much would cost too much. All others get the
defaults here. Fields that are not in a schema need no bounds: they are left out after parsing.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

#: Items of a list, or names of a map.
MOST_ITEMS = 10_000
#: Items and names at all depths together, for nested lists and maps and for values of any type.
MOST_VALUES = 100_000
#: Characters of a text.
LONGEST_TEXT = 65_536
#: Characters of a name in a map.
LONGEST_NAME = 4096
#: How deep lists and maps may be nested in a value of any type.
DEEPEST = 32

_ANY: Schema = {"maxValues": MOST_VALUES, "maxDepth": DEEPEST, "maxText": LONGEST_TEXT, "maxName": LONGEST_NAME}
#: Keywords that bound values of any type. They are this server's own: JSON Schema does not have them.
FREE_BOUNDS = frozenset(_ANY)


def bounded(schema: Schema, *, counted: bool = False) -> Schema:
    """A resolved schema with the default bounds where it says none.

    `counted`: the schema is inside a list or map with `maxValues`, which counts its values already.
    """
    schema = dict(schema)
    if "enum" in schema or "const" in schema:
        return schema
    if "anyOf" in schema:
        schema["anyOf"] = [bounded(choice, counted=counted) for choice in schema["anyOf"]]
    match schema.get("type"):
        case "string":
            return {"maxLength": LONGEST_TEXT, **schema}
        case "array":
            schema |= _counting(schema, schema.get("items", {}), counted=counted)
            schema["items"] = bounded(schema.get("items", {}), counted="maxValues" in schema or counted)
            return {"maxItems": MOST_ITEMS, **schema}
        case "object":
            return _bounded_object(schema, counted=counted)
        case None if "anyOf" not in schema:
            return {**_any(counted=counted), **schema}
    return schema


def is_free(schema: Schema) -> bool:
    """Whether a resolved schema allows any names with any values."""
    others = schema.get("additionalProperties", "properties" not in schema and "anyOf" not in schema)
    return schema.get("type") == "object" and others is True


def _bounded_object(schema: Schema, *, counted: bool) -> Schema:
    others = schema.get("additionalProperties")
    if is_free(schema):
        schema = {"maxProperties": MOST_ITEMS, **_any(counted=counted), **schema}
    elif isinstance(others, dict):
        schema |= _counting(schema, others, counted=counted)
        others = bounded(others, counted="maxValues" in schema or counted)
        schema = {"maxProperties": MOST_ITEMS, "maxName": LONGEST_NAME, **schema, "additionalProperties": others}
    if "properties" in schema:
        inside = "maxValues" in schema or counted
        fields = {name: bounded(field, counted=inside) for name, field in schema["properties"].items()}
        schema["properties"] = fields
    return schema


def _any(*, counted: bool) -> Schema:
    return {keyword: bound for keyword, bound in _ANY.items() if keyword != "maxValues" or not counted}


def _counting(schema: Schema, inner: Schema, *, counted: bool) -> Schema:
    """`maxValues` for a list or map that holds other lists or maps; none where an outer one counts the values."""
    holds_many = inner.get("type") in ("array", "object", None) and inner.keys().isdisjoint(("enum", "const"))
    return {"maxValues": schema.get("maxValues", MOST_VALUES)} if holds_many and not counted else {}
