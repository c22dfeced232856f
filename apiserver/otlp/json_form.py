"""OTLP in JSON: bodies with metrics as points, and answers.

Names are in camelCase, 64-bit integers are text or numbers, and members that nobody knows are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.common.json_structure import has_more_values, is_deeper
from apiserver.otlp.points import NO_RECORDED_VALUE, Attributes, Figures, Malformed, Point, TooMuch, distribution

#: The most values that a body may hold, and how deep they may be nested.
MOST_VALUES = 250_000
DEEPEST = 64

_INTEGER = re.compile(r"-?[0-9]{1,20}")
#: The kinds of metrics, and whether their points are distributions.
_KINDS = {"gauge": False, "sum": False, "histogram": True, "exponentialHistogram": True, "summary": True}

_Object = dict[str, Any]


def points(body: bytes) -> Iterator[Point]:
    """The points of a body. Raises Malformed and TooMuch."""
    if has_more_values(body, MOST_VALUES):
        raise TooMuch(f"The request holds more than {MOST_VALUES:,} values: send fewer points at once")
    if is_deeper(body, DEEPEST):
        raise Malformed(f"The body is nested deeper than {DEEPEST} levels")
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"The body is not valid JSON: {error}") from None
    if not isinstance(request, dict):
        raise Malformed("The body must be a JSON object")
    for of_resource in _objects(request, "resourceMetrics"):
        resource = _attributes(_object(of_resource, "resource"))
        for scope in _objects(of_resource, "scopeMetrics"):
            for metric in _objects(scope, "metrics"):
                yield from _of_metric(metric, resource)


def _of_metric(metric: _Object, resource: Attributes) -> Iterator[Point]:
    name = metric.get("name") or ""
    if not isinstance(name, str):
        raise _wrong("name", "text")
    for kind, is_distribution in _KINDS.items():
        for point in _objects(_object(metric, kind), "dataPoints"):
            figures: Figures = ()
            if not (_integer(point, "flags") or 0) & NO_RECORDED_VALUE:
                figures = _distribution(point) if is_distribution else _number(point)
            nanos = _integer(point, "timeUnixNano", least=0, most=2**64 - 1) or 0
            yield Point(name, resource, _attributes(point), nanos, figures)


def _number(point: _Object) -> Figures:
    value = _float(point, "asDouble")
    if value is None:
        value = _integer(point, "asInt")
    return () if value is None else [("", float(value))]


def _distribution(point: _Object) -> Figures:
    quantiles = [
        (_float(one, "quantile") or 0.0, _float(one, "value") or 0.0) for one in _objects(point, "quantileValues")
    ]
    sum, least, greatest = (_float(point, name) for name in ("sum", "min", "max"))
    return distribution(_integer(point, "count", least=0, most=2**64 - 1) or 0, sum, least, greatest, quantiles)


def _attributes(of: _Object) -> Attributes:
    return _pairs(of, "attributes")


def _pairs(of: _Object, name: str) -> Attributes:
    attributes: Attributes = {}
    for pair in _objects(of, name):
        key = pair.get("key") or ""
        if not isinstance(key, str):
            raise _wrong("key", "text")
        attributes[key] = _value(_object(pair, "value"))
    return attributes


def _value(value: _Object) -> Any:
    """The value of an attribute."""
    if value.get("intValue") is not None:
        return _integer(value, "intValue")
    if value.get("doubleValue") is not None:
        return _float(value, "doubleValue")
    if value.get("arrayValue") is not None:
        return [_value(item) for item in _objects(_object(value, "arrayValue"), "values")]
    if value.get("kvlistValue") is not None:
        return _pairs(_object(value, "kvlistValue"), "values")
    for name, kind in (("stringValue", str), ("boolValue", bool), ("bytesValue", str)):
        text = value.get(name)
        if text is not None:
            if not isinstance(text, kind):
                raise _wrong(name, "text" if kind is str else "true or false")
            return text
    return None


def _object(of: _Object, name: str) -> _Object:
    value = of.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(name, "an object")
    return value


def _objects(of: _Object, name: str) -> list[_Object]:
    values = of.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise _wrong(name, "a list of objects")
    return values


def _integer(of: _Object, name: str, *, least: int = -(2**63), most: int = 2**63 - 1) -> int | None:
    value = of.get(name)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if value is None or (type(value) is int and least <= value <= most):
        return value
    raise _wrong(name, "an integer of 64 bits")


def _float(of: _Object, name: str) -> float | None:
    value = of.get(name)
    if value is None:
        return None
    try:
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)  # also of "NaN", "Infinity" and "-Infinity"
    except ValueError:
        pass
    raise _wrong(name, "a number")


def _wrong(name: str, wanted: str) -> Malformed:
    return Malformed(f"{name} must be {wanted}")


def taken(rejected: int, message: str) -> bytes:
    """The answer to a request that was taken but for `rejected` points."""
    if not rejected:
        return b"{}"
    return orjson.dumps({"partialSuccess": {"rejectedDataPoints": str(rejected), "errorMessage": message}})


def refused(message: str) -> bytes:
    """The answer to a request that was not taken: a google.rpc.Status."""
    return orjson.dumps({"message": message})
