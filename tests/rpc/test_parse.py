"""JSON bodies and query strings."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.errors import Refusal
from apiserver.rpc.errors import ApiError
from apiserver.rpc.parse import MOST_VALUES, parse_json, parse_lines, parse_query
from apiserver.rpc.statuses import known_error


def refused(body: bytes) -> ApiError:
    with pytest.raises((ApiError, Refusal)) as error:
        parse_json(body)
    answer = known_error(error.value, {})
    assert answer is not None
    return answer


@pytest.mark.parametrize("body", [b"", b" ", b"\r\n", b"{}"])
def test_an_empty_body_is_an_empty_object(body: bytes) -> None:
    assert parse_json(body) == {}


def test_line_ends_of_windows_are_fine() -> None:
    assert parse_json(b'{\r\n  "task": "a"\r\n}\r\n') == {"task": "a"}


@pytest.mark.parametrize(
    "body",
    [b'{"task": ', b"task=a", b"{'a': 1}", b'{"a": 1} x', b"\xff", b'{"a": "\\ud800"}', b'{"a": ' + b"1" * 5000 + b"}",
     b"\x00", b'{"a": NaN', b'{"value": NaN}', b'{"a": [1, {"b": -Infinity}]}', b'{"a": 1e999}'],
)  # fmt: skip
def test_what_is_not_json_is_a_bad_request(body: bytes) -> None:
    error = refused(body)
    assert (error.code, error.subcode) == (400, 0)
    assert error.message.startswith("The request body is not valid JSON")


@pytest.mark.parametrize("body", [b"[]", b'["a"]', b"5", b'"text"', b"null", b"true"])
def test_any_value_but_an_object_is_refused(body: bytes) -> None:
    error = refused(body)
    assert (error.code, error.subcode) == (400, 12)
    assert error.message == "Validation error (the request body must be a JSON object)"


def nested(depth: int, opening: bytes = b'{"a":', closing: bytes = b"}") -> bytes:
    """An object with values nested so that it is `depth` levels deep in all."""
    return b'{"a":' + opening * (depth - 1) + b"1" + closing * (depth - 1) + b"}"


@pytest.mark.parametrize(("opening", "closing"), [(b'{"a":', b"}"), (b"[", b"]"), (b"[1,", b"]")])
def test_nesting_has_a_limit(opening: bytes, closing: bytes) -> None:
    assert parse_json(nested(64, opening, closing))
    for depth in (65, 500, 5000):
        error = refused(nested(depth, opening, closing))
        assert (error.code, error.subcode) == (400, 12)
    assert refused(nested(65, opening, closing)).message == (
        "Validation error (the request body is nested deeper than 64 levels)"
    )


def test_many_brackets_are_not_depth() -> None:
    assert len(parse_json(b'{"a":[' + b",".join([b"[{}]"] * 1000) + b'], "b": "[[[[{{{{"}')["a"]) == 1000
    assert parse_json(b'{"a": "' + b"[" * 1000 + b'"}')


@pytest.mark.test
@pytest.mark.parametrize(("value", "weight"), [(b"[]", 2), (b"1", 1), (b'""', 1), (b"{}", 2)])
def test_a_body_holds_so_many_values_at_most(value: bytes, weight: int) -> None:
    def holding(count: int) -> bytes:
        return b'{"a":[' + b",".join([value] * count) + b"]}"

    count = MOST_VALUES // weight - 2
    assert len(parse_json(holding(count))["a"]) == count
    error = refused(holding(count + 3))
    assert (error.code, error.subcode) == (400, 12)
    assert error.message == "Validation error (the request body holds more than 250,000 values)"
    with pytest.raises(Refusal, match="more than 250,000 values"):
        parse_lines(b"\n".join([b'{"a":' + value + b"}"] * MOST_VALUES))


def test_marks_in_a_text_are_no_values() -> None:
    assert parse_json(b'{"a":"' + rb"[{,\"" * MOST_VALUES + b'"}') == {"a": '[{,"' * MOST_VALUES}


@given(st.binary(max_size=50) | st.text(alphabet='{}[]":,\\unaNI1e9- ', max_size=40).map(str.encode))
def test_whatever_comes_is_an_object_or_a_clear_error(body: bytes) -> None:
    try:
        assert isinstance(parse_json(body), dict)
    except (ApiError, Refusal) as error:
        orjson.dumps([error.message, error.data])


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        (b"", {}),
        (b"task=a", {"task": "a"}),
        (b"task=a&task=b", {"task": ["a", "b"]}),
        (b"task=a&task=b&task=c", {"task": ["a", "b", "c"]}),
        (b"tags=a", {"tags": ["a"]}),
        (b"tags=a&tags=b", {"tags": ["a", "b"]}),
        (b"name=a%20b+c%C3%A9", {"name": "a b cé"}),
        (b"name=", {"name": ""}),
        (b"name", {"name": ""}),
        (b"a=1;b=2", {"a": "1;b=2"}),
    ],
)
def test_a_query_string_has_fields(query: bytes, fields: dict[str, Any]) -> None:
    assert parse_query(query, {"tags"}) == fields


@pytest.mark.parametrize("query", [b"a=%ff", b"\xff=1", b"&".join([b"a=1"] * 1001), b"a" * 65_537])
def test_a_query_string_that_makes_no_sense_is_refused(query: bytes) -> None:
    with pytest.raises(ApiError) as error:
        parse_query(query, ())
    assert (error.value.code, error.value.subcode) == (400, 0)
