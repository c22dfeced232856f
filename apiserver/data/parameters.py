"""Parameters that several addresses have, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from typing import Annotated, Any

import re2
from fastapi import Query

from apiserver.common import answers
from apiserver.common.times import epoch_millis
from apiserver.data.calls import DataCall, bad_parameter
from apiserver.events.model import BucketAxis, EventType, MetricSelection, Owner, Selection, selection_of
from apiserver.events.queries import Range
from apiserver.events.smoothing import MOST_OF_MEAN, MOST_OF_MEDIAN, Kind, Smoothing

_MOST_NAMES = 1000
#: Bytes of memory that the name of a series takes, about.
_NAME_BYTES = 200

Names = Annotated[list[str], Query(max_length=_MOST_NAMES)]
Metrics = Annotated[
    list[str], Query(alias="metric", max_length=_MOST_NAMES, description="May repeat; `*` stands for any text.")
]
Variants = Annotated[
    list[str], Query(alias="variant", max_length=_MOST_NAMES, description="May repeat; `*` stands for any text.")
]


class Axis(StrEnum):
    """What `from`, `to` and the x of buckets are: iterations, epoch milliseconds, or milliseconds since the start."""

    ITER = "iter"
    TIMESTAMP = "timestamp"
    RELATIVE = "relative"

    @property
    def column(self) -> BucketAxis:
        """The axis as stores know it."""
        return BucketAxis.DURATION if self is Axis.RELATIVE else BucketAxis(self.value)


_X = {"anyOf": [{"type": "integer"}, {"type": "string", "format": "date-time"}, {"type": "null"}]}
_TIMES = "Of times, epoch milliseconds or ISO 8601, in UTC if it names no zone."
From = Annotated[
    str | None, Query(alias="from", max_length=100, description=f"The least x. {_TIMES}", json_schema_extra=_X)
]
To = Annotated[
    str | None, Query(alias="to", max_length=100, description=f"The greatest x. {_TIMES}", json_schema_extra=_X)
]
Time = Annotated[str | None, Query(max_length=100, description=_TIMES, json_schema_extra=_X)]
Smooth = Annotated[
    str | None,
    Query(
        max_length=40,
        pattern=r"^[a-z_]+(:[0-9.]+)?$",
        description="`ema:0.9` (exponential, as TensorBoard's), `x_ema:0.9` (by x, as W&B's), `mean:31`, `median:31`, "
        "or `derivative`.",
    ),
]
PlainCsv = Annotated[
    str | None,
    Query(
        alias="csv",
        pattern="^plain$",
        description="`plain`: texts in CSV stay as they are, even where a spreadsheet would run them as a formula.",
    ),
]


def range_of(start: str | None, stop: str | None, axis: Axis) -> Range:
    """The range from `start` to `stop` on an axis; None: without an end. 400 for what is no x, or an empty range."""
    read = time_of if axis is Axis.TIMESTAMP else _number_of
    least = None if start is None else read("from", start)
    greatest = None if stop is None else read("to", stop)
    if least is not None and greatest is not None and least > greatest:
        raise bad_parameter("from", "it must not be greater than 'to'")
    return Range.of(least, greatest)


def time_of(parameter: str, text: str) -> int:
    """The epoch milliseconds of a time in a parameter; 400 if it is none.

    A `+` that is not escaped in an address arrives as a space: `2026-11-21T08:00:00 02:00`.
    """
    if (number := _integer(text)) is not None:
        return number
    for one in (text, "+".join(text.rsplit(" ", 1))):
        if (time := epoch_millis(one)) is not None:
            return time
    raise bad_parameter(parameter, "it must be epoch milliseconds or an ISO-8601 time, such as 2026-11-21T08:00:00Z")


def _number_of(parameter: str, text: str) -> int:
    if (number := _integer(text)) is None:
        more = "; times are for axis=timestamp" if epoch_millis(text) is not None else ""
        raise bad_parameter(parameter, f"it must be a whole number of at most 64 bits{more}")
    return number


def _integer(text: str) -> int | None:
    """The 64-bit integer in a text."""
    if not re.fullmatch(r"[+-]?[0-9]{1,19}(\.0*)?", text.strip(), re.ASCII):
        return None
    number = int(text.partition(".")[0])
    return number if -(2**63) <= number < 2**63 else None


def smoothing_of(smooth: str | None) -> Smoothing | None:
    """What `smooth` asks for; 400 if there is no such smoothing."""
    if smooth is None:
        return None
    name, _, amount = smooth.partition(":")
    try:
        kind = Kind(name)
        number = float(amount) if amount else None
    except ValueError:
        raise bad_parameter("smooth", f"it is one of {', '.join(Kind)}, most with an amount: ema:0.9") from None
    match kind:
        case Kind.DERIVATIVE:
            return Smoothing(kind)
        case Kind.EXPONENTIAL | Kind.EXPONENTIAL_BY_X:
            weight = 0.6 if number is None else number
            if not 0 <= weight < 1:
                raise bad_parameter("smooth", "the weight must be at least 0 and less than 1")
            return Smoothing(kind, weight=weight)
    points = 11 if number is None else number
    most = MOST_OF_MEDIAN if kind is Kind.MEDIAN else MOST_OF_MEAN
    if not 1 <= points <= most or points != int(points):
        raise bad_parameter("smooth", f"the window must have a whole number of points, from 1 to {most}")
    return Smoothing(kind, points=int(points))


def selects_all(patterns: Sequence[str]) -> bool:
    """Whether the patterns of a parameter mean every name."""
    return not patterns or "*" in patterns


def is_exact(patterns: Sequence[str]) -> bool:
    """Whether the patterns are names."""
    return bool(patterns) and not any("*" in one for one in patterns)


def simple_selection(metrics: Sequence[str], variants: Sequence[str]) -> Selection | None:
    """The series that the patterns mean, if that can be told without knowing what series there are; else None."""
    if selects_all(metrics) and selects_all(variants):
        return ()
    if is_exact(metrics) and (selects_all(variants) or is_exact(variants)):
        chosen = () if selects_all(variants) else tuple(dict.fromkeys(variants))
        return [MetricSelection(metric, chosen) for metric in dict.fromkeys(metrics)]
    return None


#: Returns which series of an owner are meant; None if it has none of them.
Selector = Callable[[Owner], Coroutine[Any, Any, Selection | None]]


def selector(call: DataCall, type: EventType, metrics: Sequence[str], variants: Sequence[str]) -> Selector:
    """Selects the series of any owner that the patterns mean. `answers.will_read` counts their names.

    All owners get the same selection, which may be long, if that can be told without knowing their series.
    """
    simple = simple_selection(metrics, variants)
    means = matching(metrics, variants) if simple is None else None

    async def select(owner: Owner) -> Selection | None:
        if means is None:
            return simple
        known = await call.backend.events.series(owner, [type])
        found = [name for one in known if means(name := (one.metric, one.variant))]
        answers.will_read(_NAME_BYTES * len(found))
        return selection_of(found) or None

    return select


def matching(metrics: Sequence[str], variants: Sequence[str]) -> Callable[[tuple[str, str]], bool]:
    """A function that says whether the patterns mean a series (metric, variant)."""
    of_metrics, of_variants = _pattern(metrics), _pattern(variants)
    return lambda name: bool(of_metrics.fullmatch(name[0]) and of_variants.fullmatch(name[1]))


def _pattern(patterns: Sequence[str]) -> Any:
    """The names that one of the patterns matches. RE2 takes no longer for a pattern of many stars than for one."""
    each = [".*".join(map(re2.escape, one.split("*"))) for one in patterns or ["*"]]
    try:
        return re2.compile("(?s)" + "|".join(each))
    except re2.error:
        raise bad_parameter("metric", "the patterns are too long") from None
