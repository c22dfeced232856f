"""Plots and debug images: the newest of each series, and walks over iterations in both directions.

A walk goes over the iterations of one owner that hold a selected sample. Its position is the range of iterations that
the reader has seen last; "earlier" goes on below it, "later" above it, so that new iterations show up by themselves.
Images whose files were overwritten by later ones are not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from apiserver.aggregation import images
from apiserver.events.model import EventType, Owner, Sample, Selection
from apiserver.stores.events.base import EventStore

#: (least, greatest) iteration of the page a reader saw last.
Seen = tuple[int, int]


@dataclass(slots=True)
class WalkPage:
    """The iterations of one owner with their samples, newest first, and the position behind them."""

    iterations: list[tuple[int, Sequence[Sample]]]
    seen: Seen | None


async def latest_of(
    store: EventStore, owner: Owner, type: EventType, selection: Selection, *, iterations: int, of_each_series: bool
) -> list[Sample]:
    """The samples of the newest `iterations` iterations: those of each series, or those of all that is selected."""
    if of_each_series:
        return await store.latest_samples(owner, type, selection, iterations=iterations)
    found = await store.sample_iterations(owner, type, selection, limit=iterations)
    if not found:
        return []
    return list(await _all_between(store, owner, type, selection, min(found), max(found)))


async def walk(
    store: EventStore,
    owner: Owner,
    type: EventType,
    selection: Selection,
    *,
    iterations: int,
    seen: Seen | None,
    earlier: bool,
) -> WalkPage:
    """The next iterations of a walk. Past the end the page is empty and the position stays."""
    beyond = None if seen is None else seen[0 if earlier else 1]
    read = images.by_iteration if type is EventType.IMAGE else partial(_by_iteration, type=type)
    found = await read(
        store, owner, selection, beyond=beyond, descending=earlier or seen is None, iterations=iterations
    )
    if not found:
        return WalkPage([], seen)
    return WalkPage(sorted(found.items(), reverse=True), (min(found), max(found)))


async def _by_iteration(
    store: EventStore,
    owner: Owner,
    selection: Selection,
    *,
    type: EventType,
    beyond: int | None,
    descending: bool,
    iterations: int,
) -> dict[int, list[Sample]]:
    """The samples of up to `iterations` iterations beyond one of them."""
    found = await store.sample_iterations(
        owner, type, selection, beyond=beyond, descending=descending, limit=iterations
    )
    by_iteration: dict[int, list[Sample]] = {iter: [] for iter in found}
    if found:
        for sample in await _all_between(store, owner, type, selection, min(found), max(found)):
            by_iteration[sample.iter].append(sample)
    return by_iteration


async def _all_between(
    store: EventStore, owner: Owner, type: EventType, selection: Selection, least: int, greatest: int
) -> Sequence[Sample]:
    series = await store.sample_series(owner, type, selection)
    limit = sum(one.count for one in series) or 1
    return await store.samples(owner, type, selection, limit=limit, min_iter=least, max_iter=greatest)
