"""Vectors: a list of numbers for each iteration."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.events.model import EventType, MetricSelection, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.reading import samples
from apiserver.stores.events.protocols.samples import SampleStore


async def vectors(store: SampleStore, owner: Owner, metric: str, variant: str) -> dict[str, Any]:
    """`{metric, variant, vectors, iterations}` of one series, sorted by iteration."""
    series = SeriesQuery(owner, EventType.VECTOR, [MetricSelection(metric, (variant,))])
    vector_samples = await samples.all_between(store, series)
    return {
        "metric": metric,
        "variant": variant,
        "vectors": [orjson.loads(sample.document)["value"] for sample in vector_samples],
        "iterations": [sample.iter for sample in vector_samples],
    }
