"""Parses JSON bodies and query strings into fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import parse_qsl

import orjson

from apiserver.common.errors import Refusal, Why, validation_error
from apiserver.common.json_structure import has_more_values, is_deeper
from apiserver.rpc.errors import bad_request

#: How deep objects and arrays may be nested.
DEEPEST = 64

#: Most values in all objects and arrays of a body together: a value of two bytes can take a hundred in memory.
MOST_VALUES = 250_000

#: About how many bytes of memory a value takes: an empty list takes 72, an object with one field 232.
_EACH_VALUE = 128

_LONGEST_QUERY = 64 * 2**10
_MOST_PARAMETERS = 1000


def parse_json(body: bytes) -> dict[str, Any]:
    """The object in `body`; an empty body is an empty object.

    400/0 if the body is not JSON; NaN and infinities are not. 400/12 if it is not an object, is nested deeper than 64
    levels, or holds more than 250,000 values.
    """
    if not body.strip():
        return {}
    if is_deeper(body, DEEPEST):
        raise validation_error(f"the request body is nested deeper than {DEEPEST} levels")
    _check_values(body)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"The request body is not valid JSON: {error}") from None
    if type(value) is not dict:
        raise validation_error("the request body must be a JSON object")
    return value


def memory_of(body: bytes) -> int:
    """About how many bytes of memory a JSON body and its values take."""
    values = min(sum(map(body.count, (b"[", b"{", b","))), MOST_VALUES)
    return max(len(body), _EACH_VALUE * values)


def parse_lines(body: bytes, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The objects in a body of JSON lines; 400/17 if there is none, 400/12 beyond `most`, else like `parse_json`."""
    _check_values(body)
    lines = [line for line in body.split(b"\n") if line.strip()]
    if not lines:
        raise Refusal(Why.NOTHING_SENT, "Batch request contains no items")
    if most is not None and len(lines) > most:
        raise validation_error(f"expected at most {most} lines, got {len(lines)}")
    return map(parse_json, lines)


def _check_values(body: bytes) -> None:
    if has_more_values(body, MOST_VALUES):
        raise validation_error(f"the request body holds more than {MOST_VALUES:,} values")


def parse_query(query: bytes, arrays: Collection[str]) -> dict[str, Any]:
    """The fields of a query string, as text. A field in `arrays`, or one that comes more than once, is a list.

    400/0 if the query string has more than 64 KB or 1,000 fields, or is not UTF-8.
    """
    if not query:
        return {}
    if len(query) > _LONGEST_QUERY:
        raise bad_request(f"The query string is longer than {_LONGEST_QUERY} bytes")
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS
        )
    except ValueError:
        raise bad_request("The query string is not valid") from None
    fields: dict[str, list[str]] = {}
    for name, text in pairs:
        fields.setdefault(name, []).append(text)
    return {name: texts if name in arrays or len(texts) > 1 else texts[0] for name, texts in fields.items()}
