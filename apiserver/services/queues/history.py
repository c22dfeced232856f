"""The history of queues: how many tasks waited in them over time, and for how long on average.

The state of a queue is recorded at each change. Between changes its tasks go on waiting, so the mean time when they
were added is recorded, too: it stays the same, and gives the waiting time at any moment. A chart ends with the present
state, which is read from the queues' documents.

    08:04  three tasks are added     recorded: length 3, added 08:04
    08:28  a chart asks for this     length 3, waited 24 minutes: 08:28 − 08:04
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from apiserver.common.times import epoch_millis, now_ms
from apiserver.events.model import Float64Array
from apiserver.services.backend import Call
from apiserver.services.history.steps import ChartCurve, Steps
from apiserver.services.history.store import HistorySeries, Subject
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.documents.query import Document
from apiserver.stores.events.base import EventStoreError

log = logging.getLogger(__name__)

Bools = np.ndarray[Any, np.dtype[np.bool_]]

WAITING: HistorySeries = ("waiting", "avg")
LENGTH: HistorySeries = ("length", "total")
#: When the tasks in the queue were added, on average, in epoch seconds. Not recorded for an empty queue.
ADDED: HistorySeries = ("added", "avg")
#: The id of all queues together in an answer.
TOTAL = "total"
#: A chart of all queues also reads so many milliseconds before it begins, for the queues that seldom change.
BEFORE = 3_600_000


async def note(call: Call, queue: Document) -> None:
    """Record a queue's state after a change. If this fails it is logged only: the change is done already."""
    at = now_ms()
    try:
        await call.backend.history.record(_subject(call, queue["id"]), at, _state(queue["entries"], at))
    except (EventStoreError, DocumentStoreError) as error:
        log.warning("the state of queue %s is not recorded: %s", queue["id"], error)


async def charts(call: Call, queues: Sequence[Document], steps: Steps) -> list[dict[str, Any]]:
    """The chart of each queue. Steps without a recorded state are left out, and so are queues without any step."""
    held = await _held(call, queues, steps)
    answers = [_answer(queue["id"], one, one.known, steps) for queue, one in zip(queues, held, strict=True)]
    return [answer for answer in answers if answer["dates"]]


async def chart_of_all(call: Call, queues: Sequence[Document], steps: Steps) -> list[dict[str, Any]]:
    """The chart of all queues together. A queue that did not change in a step counts with its state before."""
    longer = steps.before(BEFORE)
    held = await _held(call, queues, longer)
    shown = np.any([one.known for one in held], axis=0) if held else np.zeros(longer.count, bool)
    shown[: longer.count - steps.count] = False
    length = sum((one.length for one in held), np.zeros(longer.count))
    waiting = sum((one.waiting * one.length for one in held), np.zeros(longer.count))
    mean = np.divide(waiting, length, out=np.zeros(longer.count), where=length > 0)
    return [_answer(TOTAL, _Held(shown, length, mean), shown, longer)] if shown.any() else []


@dataclass(frozen=True, slots=True)
class _Held:
    """A queue's state in each step: the most tasks, and the longest mean waiting time (s)."""

    known: Bools
    """The steps in which the state was recorded, or is the present one."""
    length: Float64Array
    waiting: Float64Array

    @classmethod
    def of(
        cls, curves: dict[HistorySeries, ChartCurve], steps: Steps, now: int, state: Mapping[HistorySeries, float]
    ) -> Self:
        """From the recorded curves, and from the present `state` at `now` (epoch ms) if that is in a step.

        If nothing is recorded, the queue counts as if it had always been in the present state.
        """
        length, added, waiting = (curves.get(series) or ChartCurve.over(steps) for series in (LENGTH, ADDED, WAITING))
        ended = np.minimum(steps.dates + steps.width, min(now, steps.stop)) / 1000
        most, longest = length.values("max"), waiting.values("max")
        length_then, added_then = length.last, added.last
        before: Mapping[HistorySeries, float] = {}
        if (number := _number_of(now, steps)) is not None:
            if not np.isfinite(most).any():
                before = state
            most[number] = np.fmax(most[number], state[LENGTH])
            longest[number] = np.fmax(longest[number], state[WAITING])
            length_then[number], added_then[number] = state[LENGTH], state.get(ADDED, np.nan)
        length_then = _carried(length_then, before.get(LENGTH, 0.0))
        waited = np.where(length_then > 0, ended - _carried(added_then, before.get(ADDED, np.nan)), 0.0)
        known = np.isfinite(most)
        return cls(known, np.where(known, most, length_then), np.fmax(np.fmax(longest, waited), 0.0))


def _carried(values: Float64Array, before: float) -> Float64Array:
    """The values, each unknown one (NaN) replaced by the known one before it: `[n, 3, n, 5]` → `[before, 3, 3, 5]`."""
    last = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), -1))
    carried: Float64Array = np.where(last < 0, before, values[last])
    return carried


def _number_of(now: int, steps: Steps) -> int | None:
    """The step that shows the present state; None if the chart ended more than a step ago, or has not begun."""
    at = min(now, steps.stop) if now <= steps.stop + steps.width else now
    number = steps.number(at)
    return number if 0 <= number < steps.count else None


async def _held(call: Call, queues: Sequence[Document], steps: Steps) -> list[_Held]:
    subjects = [_subject(call, queue["id"]) for queue in queues]
    metrics = [metric for metric, _ in (WAITING, LENGTH, ADDED)]
    curves = await call.backend.history.curves(subjects, metrics, steps, last=True)
    now = now_ms()
    return [
        _Held.of(curves.get(subject, {}), steps, now, _state(queue["entries"], now))
        for subject, queue in zip(subjects, queues, strict=True)
    ]


def _answer(queue: str, held: _Held, shown: Bools, steps: Steps) -> dict[str, Any]:
    return {
        "queue": queue,
        "dates": steps.dates[shown].tolist(),
        "avg_waiting_times": held.waiting[shown].tolist(),
        "queue_lengths": held.length[shown].astype(np.int64).tolist(),
    }


def _state(entries: Sequence[Document], at: int) -> dict[HistorySeries, float]:
    added = [epoch_millis(entry["added"]) or at for entry in entries]
    if not added:
        return {WAITING: 0.0, LENGTH: 0}
    mean = sum(added) / len(added)
    return {WAITING: max(0.0, (at - mean) / 1000), LENGTH: len(added), ADDED: mean / 1000}


def _subject(call: Call, queue: str) -> Subject:
    return Subject(call.identity.company, "queue", queue)
