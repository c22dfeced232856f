"""The history of subjects: workers, queues and containers.

Each week of a subject is an owner of events in the event store, and its values are scalars whose iteration is their
time. So the engines store them and make the buckets of charts as they do for tasks, and an old week is deleted as a
whole. Each week also has a document in the collection `history`, by which it is found: the id begins with company, kind
and week, and the document has the subject, its metrics, and values that are not numbers, such as spans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

import numpy as np

from apiserver.common import answers
from apiserver.common.errors import validation_error
from apiserver.common.repeating import Repeating
from apiserver.common.times import now_ms
from apiserver.events.aggregates import Aggregate, Buckets
from apiserver.events.model import HISTORY, BucketAxis, EventBatch, EventType, MetricSelection, Owner, Scalars
from apiserver.events.queries import BucketQuery, Range, SeriesQuery
from apiserver.services.history.steps import ChartCurve, Steps
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.documents.query import AtLeast, Both, Document, Filter, In, Less, Update
from apiserver.stores.events.base import EventStore, EventStoreError
from apiserver.stores.events.protocols.scalars import OWNERS_AT_ONCE

COLLECTION = "history"
#: The aggregates of a step that a chart shows; some charts show the latest value, too.
_AGGREGATES = frozenset([Aggregate.COUNT, Aggregate.MEAN, Aggregate.MIN, Aggregate.MAX])
DAY = 86_400_000
WEEK = 7 * DAY
#: Seconds between two sweeps for old weeks.
SWEEP_INTERVAL = 3600.0

#: The most points of all curves of one answer, to bound its memory.
MOST_POINTS = 4_000_000

#: How many weeks' metrics are remembered.
_MOST_KNOWN = 10_000
#: How many weeks are deleted at once.
_SWEPT_AT_ONCE = 20

#: A metric and its variant.
HistorySeries = tuple[str, str]


class Subject(NamedTuple):
    """A worker, queue or container with a history. Its name is unique within its company, kind and group."""

    company: str
    kind: str
    """`worker`, `queue` or `container`."""
    name: str
    group: str = ""
    """For a container, the URL of the endpoint that it serves."""


class History:
    """The reports of subjects in at least the last `days`."""

    def __init__(self, events: EventStore, documents: DocumentStore, *, days: int) -> None:
        self._events = events
        self._documents = documents
        self._days = days
        self._known: dict[str, frozenset[str]] = {}
        """By document id, the metrics that the document is known to list."""
        self.sweeping = Repeating(
            "sweeping the history", self.sweep, SWEEP_INTERVAL, expected=(EventStoreError, DocumentStoreError)
        )

    # --- writing -----------------------------------------------------------------------------------

    async def record(self, subject: Subject, at: int, values: Mapping[HistorySeries, float]) -> None:
        """Store the values of one time (epoch ms). They replace earlier values of the same series and time."""
        if not values:
            return
        id, metrics = _id(subject, at), frozenset(metric for metric, _ in values)
        if not metrics <= self._known.get(id, frozenset()):
            await self.note(subject, at, Update(add={"metrics": sorted(metrics)}))
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[id] = self._known.get(id, frozenset()) | metrics
        await self._events.add(_batch(_owner(subject.company, id), at, values))

    async def note(self, subject: Subject, at: int, update: Update) -> None:
        """Update the document of the week that a time (epoch ms) is in; it is made if there is none."""
        id = _id(subject, at)
        new = {**subject._asdict(), "id": id, "week": at // WEEK, "metrics": []}
        await self._documents.update(COLLECTION, {"id": id, "company": subject.company}, update, upsert=new)

    # --- reading -----------------------------------------------------------------------------------

    async def weeks(
        self, company: str, kind: str, *, start: int, stop: int, group: str = "", fields: Collection[str] = ()
    ) -> list[Document]:
        """The documents of all weeks from `start` to `stop` (epoch ms, inclusive), with `name` and these fields."""
        first, beyond = (f"{company}/{kind}/{week:06d}" for week in (start // WEEK, stop // WEEK + 1))
        wanted: Filter = {"company": company, "id": Both(AtLeast(first), Less(beyond)), "group": group}
        return await self._documents.find(COLLECTION, wanted, projection=["name", *fields])

    async def curves(
        self, subjects: Iterable[Subject], metrics: Collection[str], steps: Steps, *, last: bool = False
    ) -> dict[Subject, dict[HistorySeries, ChartCurve]]:
        """The curves of each subject by series, without curves that have no value in the steps.

        `last`: read the latest value of each step, too. Raises Refusal(INVALID) for more than `MOST_POINTS` in all.
        """
        subjects = dict.fromkeys(subjects)
        if steps.count * len(subjects) * len(metrics) > MOST_POINTS:
            raise validation_error(f"more than {MOST_POINTS} points in all: use a longer interval", field="interval")
        weeks = self._kept(steps)
        selection = [MetricSelection(metric) for metric in sorted(metrics)]
        inside = Range(steps.start, steps.stop)
        aggregates = _AGGREGATES | {Aggregate.LAST} if last else _AGGREGATES
        asked = BucketQuery(BucketAxis.TIMESTAMP, lambda *_: steps.width, inside, aggregates)
        curves_of: dict[Subject, dict[HistorySeries, ChartCurve]] = {}
        owners = [
            (subject, _owner(subject.company, _id(subject, week * WEEK))) for subject in subjects for week in weeks
        ]

        async def read(page: Sequence[tuple[Subject, Owner]]) -> list[tuple[Subject, list[Buckets]]]:
            queries = [SeriesQuery(owner, EventType.SCALAR, selection) for _, owner in page]
            of_weeks = await self._events.scalar_buckets_of_each(queries, asked)
            return [(subject, of_week) for (subject, _), of_week in zip(page, of_weeks, strict=True)]

        async with aclosing(answers.some_at_a_time(owners, OWNERS_AT_ONCE, read)) as parts:
            async for part in parts:
                for subject, of_week in part:
                    of_subject = curves_of.setdefault(subject, {})
                    for buckets in of_week:
                        curve = of_subject.setdefault((buckets.metric, buckets.variant), ChartCurve.over(steps))
                        curve.add(steps, buckets)
        filled = {
            subject: {series: curve for series, curve in of_subject.items() if not curve.empty}
            for subject, of_subject in curves_of.items()
        }
        return {subject: of_subject for subject, of_subject in filled.items() if of_subject}

    def _kept(self, steps: Steps) -> range:
        """The weeks that the steps touch, without future weeks and weeks that were swept."""
        if not steps.count:
            return range(0)
        now = now_ms()
        first = max(steps.start // WEEK, self._oldest(now))
        return range(first, min(steps.stop, now + DAY) // WEEK + 1)

    # --- forgetting --------------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Delete the weeks that ended more than `days` ago."""
        old: Filter = {"week": Less(self._oldest(now_ms()))}
        while found := await self._documents.find(COLLECTION, old, projection=["company"], limit=_SWEPT_AT_ONCE):
            await self._events.delete([_owner(document["company"], document["id"]) for document in found])
            await self._documents.delete(COLLECTION, {"id": In([document["id"] for document in found])})

    def _oldest(self, now: int) -> int:
        """The number of the oldest week that is kept."""
        return now // WEEK - -(-self._days // 7)


def plausible(at: int) -> int:
    """The time that a subject reports (epoch ms); the server's time if the two differ by more than a day."""
    now = now_ms()
    return at if abs(at - now) <= DAY else now


def _id(subject: Subject, at: int) -> str:
    """The id of the document of a subject's week."""
    named = f"{len(subject.group)}:{subject.group}{subject.name}".encode("utf-8", "surrogatepass")
    hashed = hashlib.blake2b(named, digest_size=16).hexdigest()
    return f"{subject.company}/{subject.kind}/{at // WEEK:06d}/{hashed}"


def _owner(company: str, id: str) -> Owner:
    return Owner(company, HISTORY + id.removeprefix(f"{company}/"))


def _batch(owner: Owner, at: int, values: Mapping[HistorySeries, float]) -> EventBatch:
    size = len(values)
    times = np.full(size, at, np.int64)
    scalars = Scalars(
        owners=[owner],
        owner=[0] * size,
        metrics=[metric for metric, _ in values],
        variants=[variant for _, variant in values],
        workers=[""] * size,
        labels=[None] * size,
        lengths=[1] * size,
        iters=times,
        timestamps=times,
        values=np.fromiter(values.values(), np.float64, size),
    )
    return EventBatch(now_ms(), scalars)
