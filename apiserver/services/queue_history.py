"""What queues held over time: how many tasks, and for how long these had waited on average.

It is noted with each change. What a queue holds now is known anyway, so that a chart also ends with that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from apiserver.events.model import Float64Array
from apiserver.services.backend import Call
from apiserver.services.history.steps import Curve, Steps
from apiserver.services.history.store import Series, Source
from apiserver.stores.documents.base import Document, DocumentStoreError
from apiserver.stores.events.base import EventStoreError
from apiserver.times import epoch_millis, now_ms

log = logging.getLogger(__name__)

WAITING: Series = ("waiting", "avg")
LENGTH: Series = ("length", "total")
#: What all queues together are called.
TOTAL = "total"
#: Milliseconds before a chart of all queues, in which those that change seldom are looked for.
BEFORE = 3_600_000


async def note(call: Call, queue: Document) -> None:
    """Note what a queue holds now; the change that led to it holds, also when this cannot be noted."""
    at = now_ms()
    try:
        await call.backend.history.record(_source(call, queue["id"]), at, _state(queue["entries"], at))
    except (EventStoreError, DocumentStoreError) as error:
        log.warning("what queue %s holds is not noted: %s", queue["id"], error)


async def charts(call: Call, queues: Sequence[Document], steps: Steps) -> list[dict[str, Any]]:
    """The chart of each queue, without steps in which nothing changed, and without queues that have no steps then."""
    held = await _held(call, queues, steps)
    answers = [_answer(queue["id"], one, one.known, steps) for queue, one in zip(queues, held, strict=True)]
    return [answer for answer in answers if answer["dates"]]


async def chart_of_all(call: Call, queues: Sequence[Document], steps: Steps) -> list[dict[str, Any]]:
    """The chart of all queues together: a queue that did not change in a step holds what it held before."""
    longer = steps.before(BEFORE)
    held = await _held(call, queues, longer)
    shown = np.any([one.known for one in held], axis=0) if held else np.zeros(longer.count, bool)
    shown[: longer.count - steps.count] = False
    whole = _Held(np.zeros(longer.count), np.zeros(longer.count))
    for one in (one.filled() for one in held):
        whole.length += one.length
        whole.waiting += one.waiting * one.length
    whole.waiting = np.divide(whole.waiting, whole.length, out=np.zeros(longer.count), where=whole.length > 0)
    return [_answer(TOTAL, whole, shown, longer)] if shown.any() else []


@dataclass(slots=True)
class _Held:
    """What a queue held in each step, NaN where nothing is known: the most tasks, and the longest mean waiting (s)."""

    length: Float64Array
    waiting: Float64Array

    @classmethod
    def of(cls, curves: dict[Series, Curve], steps: Steps) -> Self:
        return cls(*((curves.get(series) or Curve.over(steps)).values("max") for series in (LENGTH, WAITING)))

    @property
    def known(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.isfinite(self.length)

    def filled(self) -> _Held:
        """With what was known last where nothing is known, and nothing before."""
        last = np.maximum.accumulate(np.where(self.known, np.arange(len(self.length)), -1))
        return _Held(*(np.where(last < 0, 0.0, column[last]) for column in (self.length, self.waiting)))


async def _held(call: Call, queues: Sequence[Document], steps: Steps) -> list[_Held]:
    sources = [_source(call, queue["id"]) for queue in queues]
    curves = await call.backend.history.curves(sources, [WAITING[0], LENGTH[0]], steps)
    held = [_Held.of(curves.get(source, {}), steps) for source in sources]
    now = now_ms()
    at = min(now, steps.stop) if now <= steps.stop + steps.width else now
    number = steps.number(at)
    if 0 <= number < steps.count:
        for one, queue in zip(held, queues, strict=True):
            state = _state(queue["entries"], now)
            one.length[number] = np.fmax(one.length[number], state[LENGTH])
            one.waiting[number] = np.fmax(one.waiting[number], state[WAITING])
    return held


def _answer(queue: str, held: _Held, shown: np.ndarray[Any, np.dtype[np.bool_]], steps: Steps) -> dict[str, Any]:
    return {
        "queue": queue,
        "dates": steps.dates[shown].tolist(),
        "avg_waiting_times": held.waiting[shown].tolist(),
        "queue_lengths": held.length[shown].astype(np.int64).tolist(),
    }


def _state(entries: Sequence[Document], at: int) -> dict[Series, float]:
    added = [epoch_millis(entry["added"]) or at for entry in entries]
    waited = at * len(added) - sum(added)
    return {WAITING: max(0.0, waited / len(added) / 1000) if added else 0.0, LENGTH: len(added)}


def _source(call: Call, queue: str) -> Source:
    return Source(call.identity.company, "queue", queue)
