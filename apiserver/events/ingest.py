"""The write path before any store: bytes of a request → lines → columns, with what was rejected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from apiserver.events import columns, lines, scan
from apiserver.events.gathered import gather
from apiserver.events.model import EventBatch, JsonObject, Owner, Scalars
from apiserver.events.rejects import Reject, Rejects


@dataclass(slots=True)
class Ingest:
    """A request's events: what may be stored so far, and what was rejected."""

    batch: EventBatch
    locked_allowed: dict[Owner, bool]
    """For each owner, whether its events may go to a published task; also the list of all owners."""
    rejects: Rejects

    @property
    def accepted(self) -> int:
        """How many events the batch holds."""
        points = len(self.batch.scalars.iters)
        log_lines = sum(len(group.messages) for group in self.batch.logs)
        return points + log_lines + len(self.batch.samples)

    def refuse(self, refusals: Mapping[Owner, str]) -> None:
        """Take the events of these owners out of the batch, each counted under its owner's reason."""
        if not refusals:
            return
        batch = self.batch
        for number, length in zip(batch.scalars.owner, batch.scalars.lengths, strict=True):
            self._count(refusals, batch.scalars.owners[number], length)
        for logs in batch.logs:
            self._count(refusals, logs.owner, len(logs.messages))
        for sample in batch.samples:
            self._count(refusals, sample.owner, 1)
        batch.scalars = batch.scalars.without(refusals)
        batch.logs = [logs for logs in batch.logs if logs.owner not in refusals]
        batch.samples = [sample for sample in batch.samples if sample.owner not in refusals]

    def refuse_series(self, owner: Owner, refused: Collection[tuple[str, str | None]], reason: str) -> None:
        """Take events of an owner out of the batch: of scalar series (metric, variant), of samples' (metric, None)."""
        batch, before = self.batch, self.accepted
        batch.scalars = Scalars.of(
            group for group in batch.scalars if group.owner != owner or (group.metric, group.variant) not in refused
        )
        batch.samples = [one for one in batch.samples if one.owner != owner or (one.metric, None) not in refused]
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
    """The events of a JSON-lines body; `bounded`: so many series as a client may send in a batch, no more.

    Raises Contradiction when nothing of it can be taken, Stopped when told to `stop`.
    """
    gathered, others, rejects = scan.read(body, stop)
    batch, locked_allowed = columns.group(
        gathered,
        others,
        rejects,
        company=company,
        received=received,
        worker=worker,
        body=body,
        bounded=bounded,
    )
    return Ingest(batch, locked_allowed, rejects)


def ingest_object(event: JsonObject, *, company: str, received: int, worker: str, body: bytes) -> Ingest:
    """The one event of an already parsed object; `body` are the bytes it came in."""
    rejects = Rejects()
    parsed: list[lines.EventLine] = []
    try:
        parsed.append(lines.from_object(event))
    except Reject as reject:
        rejects.add(reject)
    batch, locked_allowed = columns.group(
        *gather(parsed), rejects, company=company, received=received, worker=worker, body=body
    )
    return Ingest(batch, locked_allowed, rejects)
