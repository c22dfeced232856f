"""A point of a metric, whatever the form of the body that it came in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

#: Attributes by name. Values are text, bytes, numbers, booleans, None, and lists and dicts of these.
Attributes = dict[str, Any]

#: What a point says: names and values. A number's name is "".
Figures = Sequence[tuple[str, float]]

#: The first figure of every distribution.
COUNT = "count"

#: The bit of a point's flags that says that it has no value.
NO_RECORDED_VALUE = 1


class Malformed(ValueError):
    """The body is not a request as OTLP has it; the message says why."""


class TooMuch(ValueError):
    """The body holds more than the server reads of one request."""


class Point(NamedTuple):
    """A data point. `nanos` is its time in nanoseconds since 1970, 0 if it has none."""

    metric: str
    resource: Attributes
    """The attributes of what the metric was measured on."""
    attributes: Attributes
    nanos: int
    figures: Figures


def distribution(
    count: int,
    total: float | None,
    least: float | None = None,
    greatest: float | None = None,
    quantiles: Iterable[tuple[float, float]] = (),
) -> Figures:
    """The figures of a histogram, or of a summary with its `quantiles` (each where it is, and its value).

    For example, 4 values with the sum 10 are `count` 4, `sum` 10 and `mean` 2.5.
    """
    mean = total / count if count and total is not None else None
    named = (("sum", total), ("min", least), ("max", greatest), ("mean", mean))
    known = [(name, value) for name, value in named if value is not None]
    return [(COUNT, float(count)), *known, *((f"q{at!r}".removesuffix(".0"), value) for at, value in quantiles)]
