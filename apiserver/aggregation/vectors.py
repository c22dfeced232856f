"""Vectors: one list of numbers an iteration."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.events.model import EventType, MetricSelection, Owner
from apiserver.stores.events.base import EventStore


async def vectors(store: EventStore, owner: Owner, metric: str, variant: str) -> dict[str, Any]:
    """`{metric, variant, vectors, iterations}` of one series, by ascending iteration."""
    selection = [MetricSelection(metric, (variant,))]
    series = await store.sample_series(owner, EventType.VECTOR, selection)
    limit = sum(one.count for one in series) or 1
    found = await store.samples(owner, EventType.VECTOR, selection, limit=limit)
    return {
        "metric": metric,
        "variant": variant,
        "vectors": [orjson.loads(sample.document)["value"] for sample in found],
        "iterations": [sample.iter for sample in found],
    }
