"""Whatever is done in whatever order, the store on a real Elasticsearch answers like the plain one.

`EVENTS_EXAMPLES=100 pytest tests/stores/events/elasticsearch/test_brute_force.py` looks longer.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from apiserver.events.model import EventType
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.chance import examples
from tests.contract.event_stores import batch, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.engines.fixtures import NewPrefix
from tests.stores.events import comparison
from tests.stores.events.random_events import (
    OWNERS,
    batches,
    log_series,
    owners,
    ranges,
    sample_series,
    scalar_series,
    selections,
    times,
    types,
)
from tests.stores.events.whole import put_all, source_of

operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("add_twice"), batches),
        st.tuples(st.sampled_from(["put", "put_and_add"]), batches),
        st.tuples(st.sampled_from(["reopen", "tell"])),
        st.tuples(st.just("compact"), owners),
        st.tuples(st.just("restated"), st.sets(owners)),
        st.tuples(st.just("delete"), st.lists(owners, min_size=1, max_size=2), types),
        st.tuples(st.just("delete_logs"), log_series, st.none() | times, selections),
        st.tuples(st.just("delete_samples"), sample_series, ranges, st.none() | times),
        st.tuples(st.just("thin_scalars"), scalar_series, st.integers(12, 20)),
    ),
    min_size=2,
    max_size=8,
)


#: Samples of a few bytes are large: two of them, or three, are read at once. Some points of whole series become chunks,
#: others fragments.
SMALL = ElasticsearchBounds(
    ColumnarBounds(copied_points=6, points_at_a_time=10), samples_an_answer=3, large_sample=9, large_together=24
)


async def run(store: ElasticsearchEventStore, operations: list[tuple[Any, ...]]) -> None:
    """Do the same to both stores, and compare them at the end."""
    plain = PlainEventStore()
    await store.open()
    try:
        await _do(store, plain, operations)
        await comparison.assert_same(store, plain, OWNERS, comparison.FEW)
    finally:
        await store.close()


async def _do(store: ElasticsearchEventStore, plain: PlainEventStore, operations: list[tuple[Any, ...]]) -> None:
    for name, *arguments in operations:
        if name == "add":
            assert await store.add(*arguments) == await plain.add(*arguments)
        elif name == "add_twice":
            for _ in range(2):
                assert await store.add(*arguments) == await plain.add(*arguments)
        elif name in ("put", "put_and_add"):
            await put_all(await source_of(*arguments), plain, store)
            if name == "put_and_add":
                assert await store.add(*arguments) == await plain.add(*arguments)
        elif name == "reopen":
            for one in (store, plain):
                await one.close()
                await one.open()
        elif name == "restated":
            for one in (store, plain):
                await one.restated(*arguments)
        elif name == "tell":
            await comparison.assert_same_to_restate(store, plain)
        elif name == "compact":
            await store.compact(*arguments)
        elif name == "delete":
            assert await store.delete(*arguments) == await plain.delete(*arguments)
        elif name == "thin_scalars":
            assert await store.thin_scalars(*arguments) == await plain.thin_scalars(*arguments)
        elif name == "delete_samples":
            assert await store.delete_samples(*arguments) == await plain.delete_samples(*arguments)
        else:
            assert await store.delete_logs(*arguments) == await plain.delete_logs(*arguments)


#: Two owners' events, which a server leaves when it ends; the next one has written the document of one of them.
LEFT_BY_ANOTHER = [
    ("add", batch(scalars([1.0], owner=OWNERS[0]), scalars([2.0], owner=OWNERS[1]))),
    ("delete", [OWNERS[1]], [EventType.IMAGE]),
    ("reopen",),
    ("restated", {OWNERS[1]}),
]


def test_the_elasticsearch_store_answers_like_the_plain_one(
    elasticsearch_url: str, elasticsearch_new_prefix: NewPrefix
) -> None:
    @examples(2)
    @given(operations)
    @example(LEFT_BY_ANOTHER)
    @example([*LEFT_BY_ANOTHER, ("tell",), ("restated", {OWNERS[1]})])
    def same(operations: list[tuple[Any, ...]]) -> None:
        with elasticsearch_new_prefix() as prefix:
            address = ElasticsearchAddress((elasticsearch_url,), prefix)
            asyncio.run(run(ElasticsearchEventStore(address, migrate=True, abandoned=0, bounds=SMALL), operations))

    same()
