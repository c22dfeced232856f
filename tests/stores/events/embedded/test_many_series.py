"""Samples of very many series, which are asked for together, come as those of few do."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from apiserver.events.model import EventType, SamplePosition
from apiserver.stores.events.embedded import EmbeddedEventStore, samples
from tests.contract.event_stores import OWNER, batch, sample
from tests.contract.plain_event_store import PlainEventStore

pytestmark = pytest.mark.anyio

PLOT = EventType.PLOT


async def test_samples_of_many_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_MANY", 1)
    store, plain = EmbeddedEventStore(tmp_path / "events", merge_points=10**9, merge_seconds=10**6), PlainEventStore()
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
        how: dict[str, Any] = {"descending": descending, "limit": limit, "min_iter": low, "max_iter": high}
        after: SamplePosition | None = None
        while True:
            page = await store.samples(OWNER, PLOT, after=after, **how)
            assert page == await plain.samples(OWNER, PLOT, after=after, **how)
            if not page:
                break
            last = page[-1]
            after = SamplePosition(last.iter, last.metric, last.variant, last.key)
        walk: dict[str, Any] = {"descending": descending, "limit": limit, "beyond": low}
        assert await store.sample_iterations(OWNER, PLOT, **walk) == await plain.sample_iterations(OWNER, PLOT, **walk)
    await store.close()
