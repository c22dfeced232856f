"""Writes the types of the API for the pages: what each endpoint that they call takes, and what it answers.

    python -m docs.endpoints

writes viewer/src/api/endpoints.ts from `schemas/*.conf`, of which `/openapi.json` is made, too. A definition of the
schemas is one type, wherever it is used. Bounds are not written: the server checks them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from textwrap import indent

import orjson

from apiserver.common.resources import PARSED
from apiserver.rpc.hocon import read_hocon
from apiserver.rpc.resolve import Resolver
from apiserver.rpc.schema import SHARED_DEFINITIONS, EndpointVersion, load_schemas
from apiserver.rpc.schema_bounds import Schema

_ROOT = Path(__file__).parents[1]
SCHEMAS = _ROOT / "schemas"
SOURCES = _ROOT / "viewer" / "src"
MODULE = SOURCES / "api" / "endpoints.ts"

_HEAD = """\
// Made from schemas/*.conf by `python -m docs.endpoints`, for the endpoints that the pages call: do not edit it.

/** Fields of a request that are named by their path, such as "models.input.model". */
export interface Paths {
  readonly [path: `${string}.${string}`]: unknown;
}
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", None: "unknown"}


def module(schemas: Path = SCHEMAS, sources: Path = SOURCES) -> str:
    """The module as it ought to be now: what all endpoints take and answer that the sources name."""
    table, types = load_schemas(schemas, schemas / PARSED), _Types(_definitions(schemas))
    texts = (path.read_text("utf-8") for path in sources.rglob("*.ts*") if path != MODULE)
    named = {name for text in texts for name in re.findall(r'"(\w+\.\w+)"', text)}
    endpoints = [types.of_endpoint(table[name][-1]) for name in sorted(table.keys() & named)]
    said = "/** By endpoint, the body of a request, and the `data` of the answer. */\n"
    return "\n".join([_HEAD, *types.declarations(), f"{said}export interface Endpoints {_braces(endpoints)}\n"])


class _Types:
    """Writes schemas as types. Those that are as a definition of their service are its name, which is declared once."""

    def __init__(self, definitions: Iterable[tuple[str, str, Schema]]) -> None:
        self._definitions: dict[str, tuple[str, Schema]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._used: set[str] = set()
        for service, title, schema in definitions:
            self._definitions[title] = service, schema
            if (shape := _shape(schema))[0] == "{":
                self._names[service, shape] = title

    def of_endpoint(self, endpoint: EndpointVersion) -> str:
        """The line of an endpoint."""
        write = partial(self._write, endpoint.name.partition(".")[0])
        paths = " & Paths" if endpoint.request.get("additionalProperties") is True else ""
        request, answer = f"request: {write(endpoint.request)}{paths};", f"answer: {write(endpoint.response)};"
        return f'"{endpoint.name}": {_braces([request, answer])};'

    def declarations(self) -> Sequence[str]:
        """The types that what was written so far names, and those that these name, by name."""
        written: dict[str, str] = {}
        while waiting := self._used - written.keys():
            for name in waiting:
                service, schema = self._definitions[name]
                written[name] = f"export interface {name} {_written(schema, partial(self._write, service))}\n"
        return [written[name] for name in sorted(written)]

    def _write(self, service: str, schema: Schema) -> str:
        name = self._names.get((service, _shape(schema)))
        if name is None:
            return _or_null(schema, _written(schema, partial(self._write, service)))
        self._used.add(name)
        return _or_null(schema, name)


def _definitions(schemas: Path) -> Iterator[tuple[str, str, Schema]]:
    """Each service's definitions, and those that it shares: service, name of the type, schema.

    The service is part of the name where another one has a definition of the same name.
    """
    trees = {file.stem: read_hocon(file, schemas / PARSED) for file in sorted(schemas.glob("*.conf"))}
    shared = trees.pop(Path(SHARED_DEFINITIONS).stem, {})
    own = {service: tree.get("_definitions", {}) for service, tree in trees.items()}
    owners = Counter([*shared, *(name for names in own.values() for name in names)])
    for service, names in own.items():
        resolver = Resolver({**shared, **names})
        for name in {**shared, **names}:
            is_own = name in names and owners[name] > 1
            schema = resolver.resolve({"$ref": f"#/definitions/{name}"}, name)
            yield service, _title(f"{service}_{name}" if is_own else name), schema


def _title(name: str) -> str:
    """`last_metric` → `LastMetric`"""
    return "".join(word.capitalize() for word in name.split("_"))


def _shape(schema: Schema) -> str:
    """The schema as a type without names: schemas of the same shape are one type."""
    return _written(schema, lambda inner: _or_null(inner, _shape(inner)))


def _or_null(schema: Schema, text: str) -> str:
    return f"{text} | null" if schema.get("nullable") else text


def _written(schema: Schema, write: Callable[[Schema], str]) -> str:
    """The schema as a type, but for null; `write` writes the schemas in it."""
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " | ".join(orjson.dumps(value).decode() for value in values)
    if "anyOf" in schema:
        return " | ".join(map(write, schema["anyOf"]))
    if schema.get("type") == "array":
        item = write(schema.get("items", {}))
        outside = re.sub(r"[{<].*[}>]", "", item, flags=re.DOTALL)
        return f"readonly ({item})[]" if "readonly " in outside or " | " in outside else f"readonly {item}[]"
    if schema.get("type") != "object":
        return _PLAIN[schema.get("type")]
    if "properties" in schema:
        return _fields(schema, write)
    others = schema.get("additionalProperties")
    return f"Readonly<Record<string, {write(others) if isinstance(others, dict) else 'unknown'}>>"


def _fields(schema: Schema, write: Callable[[Schema], str]) -> str:
    """An object with its fields. Nothing is known of further ones."""
    needed = {name for name in schema.get("required", ()) if "default" not in schema["properties"][name]}
    fields = [
        f"readonly {name}{'' if name in needed else '?'}: {write(field)};"
        for name, field in schema["properties"].items()
    ]
    return _braces(fields) if fields else "Readonly<Record<string, never>>"


def _braces(lines: Sequence[str]) -> str:
    return "\n".join(["{", *(indent(line, "  ") for line in lines), "}"])


if __name__ == "__main__":
    MODULE.write_text(module(), "utf-8")
