"""Bodies in both forms become the same points; bad ones are refused, and reading always ends."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.lines import never
from apiserver.otlp import json_form, protobuf
from apiserver.otlp.points import Malformed, Point, TooMuch
from apiserver.otlp.series import Series
from tests.otlp import written
from tests.otlp.written import double, fixed, gauge, message, metric, number, pairs, request

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
ATTRIBUTES = st.dictionaries(TEXT, VALUES, max_size=3)
UINT64 = st.integers(0, 2**64 - 1)

#: A body with every kind of point.
EVERY_KIND = request(
    {"clearml.task.id": "t"},
    gauge("g", 0.5, {"a": [1, {"b": b"\x00"}]}, 10**18),
    metric("sum", 7, fixed(3, 1) + fixed(6, -7)),
    metric(
        "histogram",
        9,
        pairs(9, {"a": 1}) + fixed(4, 4) + double(5, 10) + double(11, 1) + double(12, 5) + message(6, bytes(16)),
    ),
    metric("exponential", 10, pairs(1, {"a": 2}) + fixed(4, 2) + double(5, 3) + double(12, -1) + double(13, 4)),
    metric("summary", 11, pairs(7, {}) + fixed(4, 0) + double(5, 0) + message(6, double(1, 0.5) + double(2, 7))),
)


@pytest.mark.test
@given(TEXT, ATTRIBUTES, ATTRIBUTES, UINT64, st.floats(allow_nan=False, allow_infinity=False))
def test_both_forms_are_the_same_points(
    name: str, resource: dict[str, Any], attributes: dict[str, Any], nanos: int, value: float
) -> None:
    (read,) = protobuf.points(request(resource, gauge(name, value, attributes, nanos)))
    assert read == Point(name, resource, attributes, nanos, [("", value)])
    point = {"attributes": written.json_pairs(attributes), "timeUnixNano": str(nanos), "asDouble": value}
    in_json = {"name": name, "gauge": {"dataPoints": [point]}, "unknown": [None]}
    scopes = [{"metrics": [in_json]}]
    body = {"resourceMetrics": [{"resource": {"attributes": written.json_pairs(resource)}, "scopeMetrics": scopes}]}
    if all(map(_is_json, (resource, attributes))):
        assert list(json_form.points(json.dumps(body).encode())) == [read]


def _is_json(value: Any) -> bool:
    """Whether JSON can say it: it has no infinities."""
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return not isinstance(value, float) or math.isfinite(value)


def test_every_kind_has_its_figures() -> None:
    g, sum, histogram, exponential, summary = protobuf.points(EVERY_KIND)
    assert g == Point("g", {"clearml.task.id": "t"}, {"a": [1, {"b": b"\x00"}]}, 10**18, [("", 0.5)])
    assert sum.figures == [("", -7)]
    assert histogram.figures == [("count", 4), ("sum", 10), ("min", 1), ("max", 5), ("mean", 2.5)]
    assert histogram.attributes == {"a": 1}
    assert exponential.figures == [("count", 2), ("sum", 3), ("min", -1), ("max", 4), ("mean", 1.5)]
    assert exponential.attributes == {"a": 2}
    assert summary.figures == [("count", 0), ("sum", 0), ("q0.5", 7)]


def test_every_kind_has_its_figures_in_json() -> None:
    counts = {"count": "4", "sum": 10, "min": 1, "max": "5"}
    metrics = [
        {"name": "g", "gauge": {"dataPoints": [{"asInt": "-7"}, {"asDouble": "NaN"}, {"asDouble": "-Infinity"}]}},
        {"name": "h", "exponentialHistogram": {"dataPoints": [{**counts, "positive": {"bucketCounts": ["1"]}}]}},
        {"name": "s", "summary": {"dataPoints": [{"count": 1, "quantileValues": [{"quantile": 1, "value": 2}]}]}},
        {"name": "n", "sum": {"dataPoints": [{"asInt": 3, "flags": 1}]}, "histogram": None},
    ]
    seven, nan, infinite, histogram, summary, none = _json(metrics)
    assert seven.figures == [("", -7)]
    assert math.isnan(nan.figures[0][1])
    assert infinite.figures == [("", -math.inf)]
    assert histogram.figures == [("count", 4), ("sum", 10), ("min", 1), ("max", 5), ("mean", 2.5)]
    assert summary.figures == [("count", 1), ("q1", 2)]
    assert none.figures == ()


def _json(metrics: Any) -> list[Point]:
    return list(json_form.points(json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}).encode()))


def test_a_point_may_have_no_value() -> None:
    (flagged,) = protobuf.points(request({}, gauge("g", 1, {}, more=number(8, 1))))
    (empty,) = protobuf.points(request({}, metric("g", 5, b"")))
    assert (flagged.figures, empty.figures) == ((), ())


def test_fields_come_in_any_order() -> None:
    points = message(5, message(1, double(4, 1) + pairs(7, {"a": 1})))
    scope = message(2, message(2, points + message(1, b"late")))
    body = message(1, scope + message(1, pairs(1, {"r": 1})))
    assert list(protobuf.points(body)) == [Point("late", {"r": 1}, {"a": 1}, 0, [("", 1)])]


def test_what_is_cut_off_is_refused_or_less() -> None:
    whole = list(protobuf.points(EVERY_KIND))
    for length in range(len(EVERY_KIND)):
        try:
            assert list(protobuf.points(EVERY_KIND[:length])) in ([], whole)
        except Malformed:
            continue


@given(st.binary(max_size=60), st.integers(0, len(EVERY_KIND)), st.integers(0, len(EVERY_KIND)))
def test_any_bytes_are_points_or_refused(noise: bytes, start: int, stop: int) -> None:
    for body in (noise, EVERY_KIND[:start] + noise + EVERY_KIND[stop:]):
        with suppress(Malformed):
            Series(protobuf.points(body), never)


NAMES = (
    *("resourceMetrics", "resource", "attributes", "scopeMetrics", "metrics", "name", "gauge", "summary"),
    *("dataPoints", "asInt", "asDouble", "timeUnixNano", "flags", "count", "key", "value", "intValue"),
    *("arrayValue", "values", "kvlistValue", "stringValue", "quantileValues", "quantile"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@pytest.mark.test
@given(JSON, JSON, JSON)
def test_any_json_is_points_or_refused(anything: Any, metrics: Any, point: Any) -> None:
    for body in (
        anything,
        {"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]},
        {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "g", "gauge": {"dataPoints": [point]}}]}]}]},
    ):
        with suppress(Malformed):
            Series(json_form.points(json.dumps(body).encode()), never)


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (protobuf.points, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (protobuf.points, b"\x0a" + b"\xff" * 20),
        (protobuf.points, b"\x0b"),
        (protobuf.points, b'{"resourceMetrics": []}'),
        (json_form.points, b"{"),
        (json_form.points, b"[]"),
        (json_form.points, b"\xff"),
        (json_form.points, b'{"resourceMetrics": ' + b"[" * 100 + b"]" * 100 + b"}"),
        (json_form.points, b'{"resourceMetrics": [1]}'),
    ],
)
def test_bad_bodies_are_refused(read: Callable[[bytes], Iterator[Point]], body: bytes) -> None:
    with pytest.raises(Malformed):
        list(read(body))


@pytest.mark.parametrize(
    "point",
    [
        {"asInt": 0.5},
        {"asInt": "9" * 5000},
        {"asInt": 2**63},
        {"asInt": True},
        {"asDouble": True},
        {"asDouble": "much"},
        {"asDouble": []},
        {"timeUnixNano": "-1"},
        {"timeUnixNano": 2**64},
        {"attributes": {}},
        {"attributes": [{"key": 1}]},
        {"attributes": [{"value": 1}]},
        {"attributes": [{"value": {"stringValue": 1}}]},
        {"attributes": [{"value": {"boolValue": "true"}}]},
    ],
)
def test_what_has_the_wrong_type_is_named(point: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match=r"(asInt|asDouble|timeUnixNano|attributes|key|value|.*Value) must be "):
        _json([{"name": "g", "gauge": {"dataPoints": [point]}}])


def test_deep_lists_are_refused() -> None:
    def nested(levels: int) -> bytes:
        value = b""
        for _ in range(levels):
            value = message(5, message(1, value))
        return request({}, metric("g", 5, message(7, message(1, b"a") + message(2, value))))

    assert len(list(protobuf.points(nested(protobuf.DEEPEST - 1)))) == 1
    for levels in (protobuf.DEEPEST, 10_000):
        with pytest.raises(Malformed, match="deeper"):
            list(protobuf.points(nested(levels)))


def test_crowded_bodies_are_refused() -> None:
    for body in (
        number(3, 1) * 101,
        request({}, metric("g", 5, *[b""] * 101)),
        request({}, metric("g", 5, number(9, 1) * 99)),
    ):
        with pytest.raises(TooMuch):
            list(protobuf.points(body, most=100))
    with pytest.raises(TooMuch):
        list(json_form.points(b"[" + b"[]," * json_form.MOST_VALUES + b"[]]"))
