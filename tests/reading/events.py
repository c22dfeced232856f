"""Events for tests, written as users think of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson

from apiserver.events.model import EventBatch, EventType, LogColumns, Owner, Sample, ScalarColumns, Scalars
from apiserver.events.queries import SeriesQuery

TASK = Owner("acme", "t1")
SCALARS, LOGS, PLOTS = (SeriesQuery(TASK, type) for type in (EventType.SCALAR, EventType.LOG, EventType.PLOT))
NOW = 1_700_000_000_000


def scalars(
    points: Sequence[tuple[int, float]], metric: str = "m", variant: str = "v", owner: Owner = TASK
) -> EventBatch:
    iters = np.array([iter for iter, _ in points], dtype=np.int64)
    values = np.array([value for _, value in points], dtype=np.float64)
    return EventBatch(NOW, Scalars.of([ScalarColumns(owner, metric, variant, "w", iters, NOW + iters, values)]))


def lines(timestamps: Sequence[int], owner: Owner = TASK) -> EventBatch:
    count = len(timestamps)
    blank = [""] * count
    messages = [f"line {number}" for number in range(count)]
    stamps = np.array(timestamps, dtype=np.int64)
    logs = LogColumns(owner, stamps, ["info"] * count, blank, messages, [None] * count, blank, blank)
    return EventBatch(NOW, logs=[logs])


def sample(
    iter: int, metric: str = "p", variant: str = "v", type: EventType = EventType.PLOT, owner: Owner = TASK
) -> Sample:
    document = orjson.dumps({"type": type, "iter": iter, "metric": metric, "variant": variant})
    return Sample(owner, type, metric, variant, iter, "", NOW + iter, document)


def samples(*batch: Sample) -> EventBatch:
    return EventBatch(NOW, samples=list(batch))
