"""When workers were there, and when they were busy, as spans of time.

Reports that are at most `GAP` apart make one span. So a worker that reports steadily has one span, which grows with
each report, instead of thousands of points, and workers are counted without looking at reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.services.history.steps import Steps

#: Milliseconds. Agents report every half minute.
GAP = 120_000

#: The first and the last report, in epoch ms. Documents hold it as a list.
Span = Sequence[int]


def joined(span: Span | None, at: int) -> tuple[list[int], list[int] | None]:
    """The span that goes on after a report at this time, and the one that ended, if any."""
    if span is None:
        return [at, at], None
    first, last = span
    if first - GAP <= at <= last + GAP:
        return [min(first, at), max(last, at)], None
    earlier, later = sorted(([first, last], [at, at]))
    return later, earlier


def counts(steps: Steps, spans: Iterable[tuple[str, Span]]) -> Int64Array:
    """How many different names have a span that touches each step."""
    changes = np.zeros(steps.count + 1, np.int64)
    name, done = None, -1
    for of, (first, last) in sorted(spans):
        if of != name:
            name, done = of, -1
        begin = max(steps.number(first), done + 1)
        end = min(steps.number(last), steps.count - 1)
        if begin <= end:
            changes[begin] += 1
            changes[end + 1] -= 1
            done = end
    return np.cumsum(changes)[: steps.count]
