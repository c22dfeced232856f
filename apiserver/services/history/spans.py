"""Spans of time in which workers were present, or busy.

Reports that are at most `GAP` apart make one span. So a worker that reports steadily has one span, which grows with
each report, instead of thousands of points, and workers are counted without reading their reports.
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
    """The current span after a report at this time (epoch ms), and the span that ended, if one did."""
    if span is None:
        return [at, at], None
    first, last = span
    if first - GAP <= at <= last + GAP:
        return [min(first, at), max(last, at)], None
    earlier, later = sorted(([first, last], [at, at]))
    return later, earlier


def counts(steps: Steps, spans: Iterable[tuple[str, Span]]) -> Int64Array:
    """For each step, how many names have a span that touches it. `spans` are (name, span) pairs in any order.

    A name adds 1 at its first step and −1 behind its last; the sums of these are the counts:

        steps              0  1  2  3  4
        "a": steps 1 to 3     +1       −1
        "b": steps 3 to 4           +1    (−1 behind the end)
        sums               0  1  1  2  1
    """
    changes = np.zeros(steps.count + 1, np.int64)
    previous, done = None, -1  # `done`: the last step in which this name is counted already
    for name, (first, last) in sorted(spans):
        if name != previous:
            previous, done = name, -1
        begin = max(steps.number(first), done + 1)
        end = min(steps.number(last), steps.count - 1)
        if begin <= end:
            changes[begin] += 1
            changes[end + 1] -= 1
            done = end
    return np.cumsum(changes)[: steps.count]
