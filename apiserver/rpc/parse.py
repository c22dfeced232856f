"""Requests as text → fields: JSON bodies and query strings."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import parse_qsl

import orjson

from apiserver.rpc.errors import ApiError, bad_request, validation_error
from apiserver.rpc.validate import Invalid, as_api_error

#: How deep objects and arrays may lie in each other.
DEEPEST = 64

_MOST_PARAMETERS = 1000


def parse_json(body: bytes) -> dict[str, Any]:
    """The object in `body`; an empty body is an empty object.

    400/0 for what is not JSON; 400/12 for any value but an object, for nesting deeper than 64, for NaN and infinities.
    """
    if not body.strip():
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "depth limit" in str(error):
            raise _too_deep() from None
        _refuse_non_finite(body)
        raise bad_request(f"The request body is not valid JSON: {error}") from None
    if type(value) is not dict:
        raise validation_error("the request body must be a JSON object")
    if body.count(b"{") + body.count(b"[") > DEEPEST and _is_deep(value):
        raise _too_deep()
    return value


def parse_lines(body: bytes, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The objects of a body of JSON lines; 400/17 when there is none, 400/12 beyond `most`, else as `parse_json`."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    if not lines:
        raise ApiError(400, 17, "Batch request contains no items")
    if most is not None and len(lines) > most:
        raise validation_error(f"expected at most {most} lines, got {len(lines)}")
    return map(parse_json, lines)


def _too_deep() -> ApiError:
    return validation_error(f"the request body is nested deeper than {DEEPEST} levels")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [child for parent in level for child in _children(parent) if type(child) in (dict, list)]
        if not level:
            return False
    return True


def _children(parent: dict[str, Any] | list[Any]) -> Collection[Any]:
    return parent.values() if type(parent) is dict else parent


def _refuse_non_finite(body: bytes) -> None:
    """Name the field when all that is wrong with `body` is a number that JSON does not have, as some clients send."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return
    for path, number in _numbers(value):
        if not math.isfinite(number):
            invalid = Invalid(f"expected a finite number, got {number!r}")
            invalid.steps = path[::-1]
            raise as_api_error(invalid)


def _numbers(value: Any) -> Iterator[tuple[list[str], float]]:
    """Every float in `value` with the steps that lead to it."""
    waiting: list[tuple[list[str], Any]] = [([], value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [([*path, key], child) for key, child in item.items()]
        elif isinstance(item, list):
            waiting += [([*path, f"[{position}]"], child) for position, child in enumerate(item)]
        elif isinstance(item, float):
            yield path, item


def parse_query(query: bytes, arrays: Collection[str]) -> dict[str, Any]:
    """The fields of a query string, as text. A field of `arrays`, or one that comes more than once, is a list."""
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS
        )
    except ValueError:
        raise bad_request("The query string is not valid") from None
    fields: dict[str, Any] = {}
    for name, text in pairs:
        if name in fields:
            earlier = fields[name] if isinstance(fields[name], list) else [fields[name]]
            fields[name] = [*earlier, text]
        else:
            fields[name] = [text] if name in arrays else text
    return fields
