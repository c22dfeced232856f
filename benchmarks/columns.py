"""Batches as the event store takes them. They measure the store alone, and fill a data folder faster than HTTP does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from apiserver.events.model import EventBatch, LogColumns, Owner, Scalars
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from benchmarks.bodies import START_MS, log_text

#: Events that a server merges at once.
MERGE_POINTS = 262_144
_LINES = 1000

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Load:
    """Points to write: `points` in all, in so many `series` of a metric, in batches of `batch` points."""

    owner: Owner
    points: int
    series: int
    batch: int
    metric: str = "m"
    seed: int = 0
    first: int = 0
    """The first iteration."""


def variant(number: int) -> str:
    """The name of the variant of one of a load's series."""
    return f"v{number:06}"


def batches(load: Load) -> Iterator[EventBatch]:
    """The batches of a load. Each has consecutive iterations of some series, with random values and jittering times."""
    random = np.random.default_rng(load.seed)
    a_series = min(max(1, load.batch // load.series), load.points // load.series)
    together = min(load.series, load.batch // a_series)
    for first in range(0, load.points // load.series, a_series):
        iters = load.first + np.tile(np.arange(first, first + a_series), together)
        for start in range(0, load.series, together):
            times = START_MS + iters * 50 + random.integers(0, 5, len(iters))
            scalars = Scalars(
                owners=[load.owner],
                owner=[0] * together,
                metrics=[load.metric] * together,
                variants=[variant(number) for number in range(start, start + together)],
                workers=["worker"] * together,
                labels=[None] * together,
                lengths=[a_series] * together,
                iters=iters,
                timestamps=times,
                values=random.normal(size=len(iters)),
            )
            yield EventBatch(START_MS + first, scalars)


def log_batches(owner: Owner, lines: int) -> Iterator[EventBatch]:
    """Log lines, 20 ms apart."""
    for first in range(0, lines, _LINES):
        count = min(_LINES, lines - first)
        columns = LogColumns(
            owner=owner,
            timestamps=START_MS + np.arange(first, first + count) * 20,
            levels=["info"] * count,
            workers=["worker"] * count,
            messages=[log_text(number) for number in range(first, first + count)],
            iters=[None] * count,
            metrics=[""] * count,
            variants=[""] * count,
            digest=b"%016d" % first,
        )
        yield EventBatch(START_MS + first, logs=[columns])


def parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of `size` items."""
    iterator = iter(items)
    while part := list(islice(iterator, max(1, size))):
        yield part


def unhurried(folder: Path) -> EmbeddedEventStore:
    """A store that merges only when it is asked to."""
    return EmbeddedEventStore(folder, max_unmerged_bytes=2**40, merge_points=2**40, merge_seconds=2**20)


async def fill(folder: Path, loads: Iterable[Load]) -> None:
    """Write loads into the store directly, and seal them. Each merge is as large as a server's."""
    store = unhurried(folder)
    await store.open()
    for load in loads:
        for part in parts(batches(load), MERGE_POINTS // load.batch):
            for batch in part:
                await store.add(batch)
            await store.merge()
    await store.seal()
    await store.close()


async def fill_logs(folder: Path, owner: Owner, lines: int) -> None:
    """Write log lines into the store directly."""
    store = unhurried(folder)
    await store.open()
    for part in parts(log_batches(owner, lines), MERGE_POINTS // _LINES):
        for batch in part:
            await store.add(batch)
        await store.merge()
    await store.close()
