"""Turns pages of events, as a store answers them, into batches to be stored: one for each time of receipt.

The batches of a page have to be added in their order. Then lines with equal timestamps keep their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from apiserver.events.model import EventBatch, LogColumns, LogLine, Owner, Sample


def of_lines(owner: Owner, lines: Sequence[LogLine]) -> Iterator[EventBatch]:
    """Batches of the lines, each with a digest of its lines: if the same page is added again, nothing changes."""
    for part in _agreeing(lines):
        by_receipt = sorted(part, key=lambda line: line.received)
        for received, group in groupby(by_receipt, key=lambda line: line.received):
            yield EventBatch(received, logs=[_columns(owner, list(group))])


def of_samples(samples: Sequence[Sample]) -> EventBatch:
    """A batch of the samples; their documents hold the times of receipt."""
    return EventBatch(0, samples=list(samples))


def size(batch: EventBatch) -> int:
    """How many events there are."""
    return len(batch.scalars.iters) + sum(len(logs.messages) for logs in batch.logs) + len(batch.samples)


def _agreeing(lines: Sequence[LogLine]) -> Iterator[list[LogLine]]:
    """Parts of the lines. Within a part, lines with the same timestamp are in the order of their receipt.

    For example, with lines as (timestamp, received): (1, 5) (1, 7) (1, 6) (2, 4) → [(1, 5) (1, 7)] [(1, 6) (2, 4)].
    """
    part: list[LogLine] = []
    for line in lines:
        if part and line.position.timestamp == part[-1].position.timestamp and line.received < part[-1].received:
            yield part
            part = []
        part.append(line)
    if part:
        yield part


def _columns(owner: Owner, lines: list[LogLine]) -> LogColumns:
    digest = hashlib.blake2b(digest_size=16)
    for line in lines:
        digest.update(repr(line).encode("utf-8", "surrogatepass"))
    return LogColumns(
        owner=owner,
        timestamps=np.array([line.position.timestamp for line in lines], np.int64),
        levels=[line.level for line in lines],
        workers=[line.worker for line in lines],
        messages=[line.message for line in lines],
        iters=[line.iter for line in lines],
        metrics=[line.metric for line in lines],
        variants=[line.variant for line in lines],
        digest=digest.digest(),
        extras={number: line.extra for number, line in enumerate(lines) if line.extra is not None},
    )
