"""The way of events from a request to the store: bytes become events, and these columns. Bad ones are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from apiserver.events import lines, scan
from apiserver.events.columns import Grouping
from apiserver.events.event_types import SentEvent
from apiserver.events.gathered import gather
from apiserver.events.model import EventBatch, EventType, JsonObject, Owner, Scalars, SeriesName
from apiserver.events.rejects import Reject, Rejects


@dataclass(slots=True)
class Ingest:
    """The events of a request: those that may be stored, and counts of those that were rejected."""

    batch: EventBatch
    locked_allowed: dict[Owner, bool]
    """For each owner of events, whether it may be a published task."""
    rejects: Rejects

    @property
    def accepted(self) -> int:
        """The number of events in the batch."""
        points = len(self.batch.scalars.iters)
        log_lines = sum(len(group.messages) for group in self.batch.logs)
        return points + log_lines + len(self.batch.samples)

    def refuse(self, refusals: Mapping[Owner, str]) -> None:
        """Remove the events of these owners from the batch. Each counts as rejected, for the reason of its owner."""
        if not refusals:
            return
        batch = self.batch
        for number, length in zip(batch.scalars.owner, batch.scalars.lengths, strict=True):
            self._count(refusals, batch.scalars.owners[number], length)
        for logs in batch.logs:
            self._count(refusals, logs.owner, len(logs.messages))
        for sample in batch.samples:
            self._count(refusals, sample.owner, 1)
        batch.scalars = Scalars.of(group for group in batch.scalars if group.owner not in refusals)
        batch.logs = [logs for logs in batch.logs if logs.owner not in refusals]
        batch.samples = [sample for sample in batch.samples if sample.owner not in refusals]

    def refuse_series(self, owner: Owner, is_refused: Callable[[SeriesName], bool], reason: str) -> None:
        """Remove the series of an owner from the batch that the test names."""
        batch, before = self.batch, self.accepted
        batch.scalars = Scalars.of(
            group
            for group in batch.scalars
            if group.owner != owner or not is_refused(SeriesName(EventType.SCALAR, group.metric, group.variant))
        )
        batch.samples = [
            one
            for one in batch.samples
            if one.owner != owner or not is_refused(SeriesName(one.type, one.metric, one.variant))
        ]
        self.rejects.add(Reject(reason, malformed=False), before - self.accepted)

    def _count(self, refusals: Mapping[Owner, str], owner: Owner, count: int) -> None:
        if owner in refusals:
            self.rejects.add(Reject(refusals[owner], malformed=False), count)


def ingest_lines(
    body: bytes,
    *,
    company: str,
    received: int,
    worker: str,
    stop: lines.Stop = lines.never,
    bounded: bool = True,
) -> Ingest:
    """The events of a JSON-lines body. `bounded`: it may have no more series than a client may send.

    Raises Contradiction if nothing of it can be taken, and Stopped when `stop` says so.
    """
    gathered, others, rejects = scan.read(body, stop)
    grouping = Grouping(rejects, company, received, worker)
    grouping.add(gathered, others, body, bounded=bounded)
    return Ingest(grouping.batch, grouping.locked_allowed, rejects)


def ingest_object(event: JsonObject, *, company: str, received: int, worker: str, body: bytes) -> Ingest:
    """The event of a parsed object, and the bytes of the body that it came in."""
    rejects = Rejects()
    parsed: list[SentEvent] = []
    try:
        parsed.append(lines.from_object(event))
    except Reject as reject:
        rejects.add(reject)
    grouping = Grouping(rejects, company, received, worker)
    grouping.add(*gather(parsed), body, bounded=True)
    return Ingest(grouping.batch, grouping.locked_allowed, rejects)
