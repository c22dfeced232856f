"""The last values of scalar series."""

from __future__ import annotations

import math

import pytest

from apiserver.events.model import SINGLE_VALUE_ITERATION
from apiserver.reading.latest_scalars import finite_mean, last_iteration, latest_scalars
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.reading.events import NOW, SCALARS, scalars

pytestmark = pytest.mark.anyio


async def test_the_last_hundred_by_iteration_are_averaged(store: EmbeddedEventStore) -> None:
    await store.add(scalars([(n, float(n)) for n in range(200, 250)]))
    await store.add(scalars([(n, float(n)) for n in range(200)]))
    await store.add(scalars([(5, -1.0)], metric="a", variant="w"))
    assert await latest_scalars(store, SCALARS) == [
        {"name": "a", "variants": [{"name": "w", "last_value": -1, "last_100_value": -1, "last_10_value": -1}]},
        {"name": "m", "variants": [{"name": "v", "last_value": 249, "last_100_value": 199.5, "last_10_value": 249}]},
    ]


def test_means_are_of_finite_values() -> None:
    assert finite_mean([math.nan, 1.0, math.inf, 3.0]) == 2.0
    assert finite_mean([math.nan]) is None
    assert finite_mean([1.7e308] * 100) == pytest.approx(1.7e308)


async def test_the_last_iteration_is_that_of_curves(store: EmbeddedEventStore) -> None:
    assert await last_iteration(store, SCALARS) == (None, None)
    await store.add(scalars([(SINGLE_VALUE_ITERATION, 1.0)]))
    assert await last_iteration(store, SCALARS) == (None, None)
    await store.add(scalars([(7, 1.0), (3, 1.0)]))
    assert await last_iteration(store, SCALARS) == (7, NOW)
