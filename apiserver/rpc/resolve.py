"""Resolves a schema of a file: replaces every `$ref` by its definition, and checks every keyword and value."""

from __future__ import annotations

from typing import Any

from apiserver.rpc.schema_bounds import FREE_BOUNDS, Schema
from apiserver.rpc.validate import TYPES, Invalid, compile_schema

_ANY_TYPE = {"type", "description", "format", "default", "enum", "const", "anyOf", "nullable"}
_OF_TYPE = {
    "": FREE_BOUNDS,
    "object": {"properties", "required", "additionalProperties", "maxProperties", *FREE_BOUNDS},
    "array": {"items", "minItems", "maxItems", "maxValues"},
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
}
_LENGTHS = {"minItems", "maxItems", "minLength", "maxLength", "maxProperties", *FREE_BOUNDS}
_BOUNDS = {"minimum", "maximum"}
_REF = "#/definitions/"


class SchemaFileError(Exception):
    """A schema file is wrong; the message names the file, the endpoint and version, and the field."""


class Resolver:
    """Resolves schemas against `definitions`, which schemas refer to as `#/definitions/<name>`."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions

    def check_definitions(self) -> None:
        """Check every definition, used or not."""
        for name in self._definitions:
            self.resolve({"$ref": _REF + name}, f"definition {name}")

    def resolve(self, node: Any, where: str, within: tuple[str, ...] = ()) -> Schema:
        """The schema `node` without references, ready to compile. Raises SchemaFileError.

        `where` is its place, for errors; `within` names the definitions that it is inside of. Keys beside a `$ref`
        override those of the definition. Keys that begin with an underscore are dropped.
        """
        schema = {key: value for key, value in as_object(node, where).items() if not key.startswith("_")}
        if "$ref" in schema:
            name = self._definition(schema.pop("$ref"), where, within)
            definition = as_object(self._definitions[name], where)
            return self.resolve({**definition, **schema}, where, (*within, name))
        _check_keywords(schema, where)
        self._resolve_inner(schema, where, within)
        _check_required(schema, where)
        _check_values(schema, where)
        return schema

    def _definition(self, reference: Any, where: str, within: tuple[str, ...]) -> str:
        name = str(reference).removeprefix(_REF)
        if name not in self._definitions or not str(reference).startswith(_REF):
            raise SchemaFileError(f"{where}: unknown $ref {reference}")
        if name in within:
            raise SchemaFileError(f"{where}: $ref {reference} leads back to itself")
        return name

    def _resolve_inner(self, schema: Schema, where: str, within: tuple[str, ...]) -> None:
        if "properties" in schema:
            fields = as_object(schema["properties"], where)
            schema["properties"] = {name: self.resolve(fields[name], f"{where}.{name}", within) for name in fields}
        if "items" in schema:
            schema["items"] = self.resolve(schema["items"], f"{where}[]", within)
        if isinstance(schema.get("additionalProperties"), dict):
            schema["additionalProperties"] = self.resolve(schema["additionalProperties"], f"{where}.*", within)
        if "anyOf" in schema:
            schema["anyOf"] = [self.resolve(choice, where, within) for choice in _list(schema["anyOf"], where)]


def as_object(value: Any, where: str) -> dict[str, Any]:
    """`value`, which stands at `where`; SchemaFileError unless it is an object."""
    if not isinstance(value, dict):
        raise SchemaFileError(f"{where}: must be an object")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise SchemaFileError(f"{where}: must be a list that is not empty")
    return value


def _check_keywords(schema: Schema, where: str) -> None:
    kind = schema.get("type")
    if kind is not None and (not isinstance(kind, str) or kind not in TYPES):
        raise SchemaFileError(f"{where}: unknown type {kind}")
    if unknown := schema.keys() - _ANY_TYPE - _OF_TYPE.get(kind or "", set()):
        raise SchemaFileError(
            f"{where}: a schema {f'of type {kind}' if kind else 'without type'} has no {min(unknown)}"
        )
    if "anyOf" in schema and "properties" in schema:
        raise SchemaFileError(f"{where}: anyOf and properties exclude each other")
    for key in schema.keys() & (_LENGTHS | _BOUNDS):
        wanted = (int,) if key in _LENGTHS else (int, float)
        if type(schema[key]) not in wanted:
            raise SchemaFileError(f"{where}: {key} must be a number, not {schema[key]}")
    if not isinstance(schema.get("additionalProperties", True), (bool, dict)):
        raise SchemaFileError(f"{where}: additionalProperties must be true, false or a schema")


def _check_required(schema: Schema, where: str) -> None:
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise SchemaFileError(f"{where}: required must be a list")
    for name in required:
        if name not in schema.get("properties", {}):
            raise SchemaFileError(f"{where}: required field {name} is not in properties")


def _check_values(schema: Schema, where: str) -> None:
    """Check that the schema allows the values that it names itself: `enum`, `const` and `default`."""
    bare = {key: value for key, value in schema.items() if key not in ("enum", "const", "default")}
    for value in _list(schema["enum"], where) if "enum" in schema else ():
        _check_value(bare, value, f"{where}: enum")
    if "const" in schema:
        _check_value(bare, schema["const"], f"{where}: const")
    if "default" in schema:
        _check_value(schema, schema["default"], f"{where}: default")


def _check_value(schema: Schema, value: Any, where: str) -> None:
    try:
        seen = compile_schema(schema)(value)
    except Invalid as invalid:
        raise SchemaFileError(f"{where}: {invalid.message}") from None
    if type(seen) is not type(value):
        raise SchemaFileError(f"{where}: expected a value of type {schema['type']}, got {value!r}")
