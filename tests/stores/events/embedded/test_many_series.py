"""Samples of very many series, which are asked for together, come as those of few do."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from apiserver.events.model import SamplePosition
from apiserver.events.queries import PageQuery, Range
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import PLOTS, batch, sample
from tests.contract.plain_event_store import PlainEventStore

pytestmark = pytest.mark.anyio


@pytest.mark.test
async def test_samples_of_many_series(tmp_path: Path) -> None:
    bounds, plain = EmbeddedBounds(many_series=1), PlainEventStore()
    store = EmbeddedEventStore(tmp_path / "events", merge_points=10**9, merge_seconds=10**6, bounds=bounds)
    await store.open()
    for round, (least, greatest) in enumerate([(0, 6), (4, 9)]):  # the second ones stay in memory, and overwrite some
        added = [
            sample(n, variant=v, key=k, document=b'"%d %d"' % (round, n))
            for n, v, k in product(range(least, greatest), "abc", ("", "k"))
            if (n + ord(v)) % 3
        ]
        for one in (store, plain):
            await one.add(batch(*added))
        if not round:
            await store.merge()
    for descending, limit, (low, high) in product((False, True), (1, 2, 5, 100), ((None, None), (2, 5))):
        asked: PageQuery[SamplePosition] = PageQuery(limit, None, descending)
        while True:
            page = await store.samples(PLOTS, asked, Range.of(low, high))
            assert page == await plain.samples(PLOTS, asked, Range.of(low, high))
            if not page:
                break
            asked = replace(asked, after=page[-1].position)
        walk = PageQuery(limit, low, descending)
        assert await store.sample_iterations(PLOTS, walk) == await plain.sample_iterations(PLOTS, walk)
    await store.close()
