"""Requests as large as the schema allows, and one beyond it: of every endpoint, each bound of each of its fields.

A new endpoint is in the tests that use these as soon as its schema is there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from apiserver.rpc.schema import EndpointVersion
from apiserver.rpc.schema_bounds import Schema, is_free
from apiserver.services import loading
from apiserver.services.backend import registry
from tests.services.generated import ENDPOINTS, Requests

loading.load({endpoint.name.partition(".")[0] for endpoint in ENDPOINTS})
#: Of these the handlers read the body by themselves; `tests/events` has their bounds.
RAW = frozenset(handler.name for handler in registry if handler.raw)
#: What bounds the values of each type, by the type; `""` are those without a type.
BOUNDS = {
    "string": ("maxLength",),
    "array": ("maxItems", "maxValues"),
    "map": ("maxProperties", "maxName", "maxValues"),
    "object": ("maxProperties", "maxName", "maxValues", "maxDepth", "maxText"),
    "": ("maxName", "maxValues", "maxDepth", "maxText"),
}
#: How texts of a format begin.
_BEGINNINGS = {"picture": "https://"}
#: How many values one item of a list may hold: by so many a list is less or more than its bound of values in all.
_ABOUT = 64


@dataclass(frozen=True, slots=True)
class Place:
    """A value somewhere in the requests of an endpoint."""

    path: str
    """As errors name it: `metrics[0].variants`."""
    schema: Schema
    wrap: Callable[[Any], dict[str, Any]]
    """The request that has a value there."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What is in the value besides: of the request itself, the least that the endpoint wants."""
    counted: bool = False
    """It is inside a list or map whose values are counted, with all that is in them."""

    @property
    def kind(self) -> str | None:
        """Which of BOUNDS it must have; None for what needs none: numbers, booleans, what is one of a few."""
        if not self.schema.keys().isdisjoint(("enum", "const", "anyOf")):
            return None
        kind = self.schema.get("type", "")
        if kind == "object" and not is_free(self.schema):
            return "map" if isinstance(self.schema.get("additionalProperties"), dict) else None
        return kind if kind in BOUNDS else None


@dataclass(frozen=True, slots=True)
class Case:
    """One bound of one place in the requests of an endpoint."""

    endpoint: EndpointVersion
    place: Place
    keyword: str

    @property
    def bound(self) -> int:
        bound: int = self.place.schema[self.keyword]
        return bound

    def largest(self) -> dict[str, Any] | None:
        """The request that is as large as the bound allows; None when other bounds leave less room."""
        return self._request(self.bound)

    def beyond(self) -> dict[str, Any] | None:
        """The request that is beyond this bound, and no other."""
        return self._request(self.bound + 1)

    def _request(self, size: int) -> dict[str, Any] | None:
        if self.keyword == "maxValues" and self.place.kind in ("array", "map"):
            value, used = _filled_once(json.dumps(self.place.schema), size + (_ABOUT if size > self.bound else -_ABOUT))
            if not size - 2 * _ABOUT < used < size + 2 * _ABOUT:
                return None
        else:
            beside = self.place.beside
            size -= {"maxProperties": len(beside), "maxValues": _values_in(beside)}.get(self.keyword, 0)
            value, used = _of_size(json.dumps(self.place.schema), self.place.kind or "", self.keyword, size)
            if self.keyword != "maxValues" and used > self.place.schema.get("maxValues", math.inf):
                return None
        return self.place.wrap(value)

    def __str__(self) -> str:
        return f"{self.endpoint.name} {self.endpoint.version}: {self.place.path}: {self.keyword} {self.bound}"


def places(endpoint: EndpointVersion, ids: Mapping[str, str] | None = None) -> Iterator[Place]:
    """Every place in the requests of an endpoint (or the lines of a batch), the request itself first.

    A request has the value and what the endpoint requires; fields that name a task, a model … name that of `ids`.
    """
    least = Requests(ids or {}).least(endpoint)
    yield from _inside(Place("", endpoint.item or endpoint.request, lambda value: {**least, **value}, least))


def cases(endpoint: EndpointVersion, ids: Mapping[str, str] | None = None) -> Iterator[Case]:
    """Each bound of each place."""
    for place in places(endpoint, ids):
        for keyword in BOUNDS[place.kind] if place.kind is not None else ():
            if keyword in place.schema:
                yield Case(endpoint, place, keyword)


def all_cases(ids: Mapping[str, str] | None = None) -> Iterator[Case]:
    """Those of every endpoint that has its requests validated."""
    for endpoint in ENDPOINTS:
        if endpoint.name not in RAW:
            yield from cases(endpoint, ids)


def _inside(place: Place) -> Iterator[Place]:
    schema, path, wrap = place.schema, place.path, place.wrap
    counted = place.counted or "maxValues" in schema
    yield place
    for choice in schema.get("anyOf", ()):
        yield from _inside(replace(place, schema=choice))
    for name, inner in schema.get("properties", {}).items():
        least = {one: sample(schema["properties"][one]) for one in schema.get("required", ()) if one != name}
        below = f"{path}.{name}".removeprefix(".")
        yield from _inside(Place(below, inner, partial(_named, wrap, name, least), counted=counted))
    if "items" in schema:
        yield from _inside(
            Place(
                f"{path}[0]",
                schema["items"],
                lambda value: wrap([value] * max(1, schema.get("minItems", 1))),
                counted=counted,
            )
        )
    if isinstance(inner := schema.get("additionalProperties"), dict):
        yield from _inside(Place(f"{path}.a".removeprefix("."), inner, partial(_named, wrap, "a", {}), counted=counted))


def _named(wrap: Callable[[Any], dict[str, Any]], name: str, others: dict[str, Any], value: Any) -> dict[str, Any]:
    return wrap({**others, name: value})


def sample(schema: Schema, number: int = 0) -> Any:
    """A value of the schema; texts of other numbers are other texts."""
    if "enum" in schema or "const" in schema:
        return schema["enum"][0] if "enum" in schema else schema["const"]
    if "anyOf" in schema:
        return sample(schema["anyOf"][0], number)
    match schema.get("type"):
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case "array":
            return [sample(schema["items"], n) for n in range(schema.get("minItems", 0))]
        case "object":
            fields = schema.get("properties", {})
            wanted = {name: field for name, field in fields.items() if field.get("type") not in ("array", "object")}
            wanted |= {name: fields[name] for name in schema.get("required", ())}
            return {name: sample(field, number) for name, field in wanted.items()}
    return _text(schema, number)


def _text(schema: Schema, number: int) -> str:
    """As an id is, if that is not too long."""
    return f"{number:0{_length(schema)}x}"


def _length(schema: Schema) -> int:
    length: int = min(schema.get("maxLength", 32), schema.get("maxText", 32), 32)
    return length


@cache
def _of_size(schema_text: str, kind: str, keyword: str, size: int) -> tuple[Any, int]:
    """A value for which what the keyword bounds is just `size`, and how many values are inside."""
    value = _sized(json.loads(schema_text), kind, keyword, size)
    return value, _values_in(value)


def _sized(schema: Schema, kind: str, keyword: str, size: int) -> Any:
    others = schema.get("additionalProperties")
    names = others if isinstance(others, dict) else {"type": "integer"}
    free = (lambda value: {"a": value}) if kind == "object" else (lambda value: value)
    match keyword:
        case "maxLength" | "maxText":
            beginning = _BEGINNINGS.get(schema.get("format", ""), "")
            return free(beginning + _letters(size - len(beginning)))
        case "maxItems":
            return _items(schema, size)
        case "maxProperties":
            return {f"n{n}": value for n, value in enumerate(_samples(json.dumps(names), size))}
        case "maxName":
            return {_letters(size): sample(names)}
        case "maxDepth":
            return {"a": _nested(size)} if "properties" in schema else _nested(size, in_map=kind == "object")
        case "maxValues":
            return {"a": _texts(size - 1, _length(schema))} if kind == "object" else _texts(size)
    raise AssertionError(keyword)


@cache
def _letters(size: int) -> str:
    return "x" * size


@cache
def _texts(size: int, length: int = 32) -> list[str]:
    return [f"{n:0{length}x}" for n in range(size)]


def _items(schema: Schema, size: int) -> list[Any]:
    items = schema["items"]
    if items.get("type") == "string" and "enum" not in items and items["maxLength"] >= 32:
        return _texts(size)
    return _samples(json.dumps(items), size)


#: The samples of each schema that were wanted before: to make thousands takes long.
_made: dict[str, list[Any]] = {}


def _samples(schema_text: str, count: int) -> list[Any]:
    """Samples of the schema, from number 0 on."""
    made = _made.setdefault(schema_text, [])
    if len(made) < count:
        made += _columns(json.loads(schema_text), range(len(made), count + 1))
    return made[:count]


def _columns(schema: Schema, numbers: range) -> list[Any]:
    """`sample` of each of the numbers, made field by field."""
    flat = {name: field for name, field in schema.get("properties", {}).items() if not _holds_others(field)}
    if schema.get("type") != "object" or any(name not in flat for name in schema.get("required", ())):
        return [sample(schema, number) for number in numbers]
    fields = [_columns(field, numbers) for field in flat.values()]
    return [dict(zip(flat, values, strict=True)) for values in zip(*fields, strict=True)] or [{} for _ in numbers]


def _is_flat(schema: Schema) -> bool:
    """Whether what `_filled` makes of it is its sample, whatever room there is."""
    if schema.get("type", "") == "" and "enum" not in schema:
        return False
    fields = schema.get("properties", {}) if schema.get("type") == "object" else {"": schema}
    named = isinstance(schema.get("additionalProperties"), dict)
    return not named and not any(_holds_others(field) for field in fields.values())


def _holds_others(schema: Schema) -> bool:
    return schema.get("type") in ("array", "object")


def _nested(depth: int, *, in_map: bool = False) -> Any:
    value: Any = []
    for _ in range(depth - 1 - in_map):
        value = [value]
    return {"a": value} if in_map else value


@cache
def _filled_once(schema: str, room: int) -> tuple[Any, int]:
    return _filled(json.loads(schema), room)


def _filled(schema: Schema, room: int) -> tuple[Any, int]:
    """A value of the schema with as many values inside as there is room for, or little fewer; and how many these are.

    >>> _filled({"type": "array", "maxItems": 9, "items": {"type": "array", "maxItems": 2, "items": {}}}, 5)
    ([['0…0', '0…1'], ['0…0']], 5)
    """
    if "anyOf" in schema and "type" not in schema:
        return _filled(schema["anyOf"][0], room)
    kind, used, number = schema.get("type", ""), 0, 0
    inner = schema.get("additionalProperties" if kind == "object" else "items")
    if isinstance(inner, dict) and "anyOf" not in inner and _is_flat(inner):
        value = sample(inner)
        inside = _values_in(value)
        count = max(0, min(-(-room // (1 + inside)), schema["maxProperties" if kind == "object" else "maxItems"]))
        values = dict.fromkeys((f"n{n}" for n in range(count)), value) if kind == "object" else [value] * count
        return values, count * (1 + inside)
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        named: dict[str, Any] = {}
        while used < room and number < schema["maxProperties"]:
            named[f"n{number}"], inside = _filled(schema["additionalProperties"], room - used - 1)
            used, number = used + 1 + inside, number + 1
        return named, used
    if kind == "array":
        listed: list[Any] = []
        while used < room and number < schema["maxItems"]:
            item, inside = _filled(schema["items"], room - used - 1)
            listed.append(item)
            used, number = used + 1 + inside, number + 1
        return listed, used
    if kind == "object":
        known = sample(schema)
        used = _values_in(known)
        for name, field in schema.get("properties", {}).items():
            if field.get("type") in ("array", "object") and name not in known and used < room:
                known[name], inside = _filled(field, room - used - 1)
                used += 1 + inside
        return known, used
    if kind == "" and "enum" not in schema:
        texts = _texts(max(0, min(room, schema.get("maxValues", room))))
        return texts, len(texts)
    return sample(schema), 0


def _values_in(value: Any) -> int:
    if not isinstance(value, (list, dict)):
        return 0
    values = value.values() if isinstance(value, dict) else value
    return len(value) + sum([_values_in(inner) for inner in values if isinstance(inner, (list, dict))])
