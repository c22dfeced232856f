"""Changes on a real Elasticsearch: two servers write, delete and follow, and the cluster is changed by hand.

`EVENTS_EXAMPLES=100 pytest tests/stores/events/elasticsearch/test_changes.py` looks longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from elastic_transport import NodeConfig
from elasticsearch import AsyncElasticsearch
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.changes import Changes, ChangesQuery, Cursor, OwnerChanges
from apiserver.events.model import EventType, Owner, SeriesName
from apiserver.events.queries import Range
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks import log_deletion
from apiserver.stores.events.blocks.compaction import make_chunks
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.changes import Deletions
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.chance import examples
from tests.contract.event_stores import LOGS, OWNER, PLOTS, SCALARS, batch, lines, sample, scalars
from tests.engines.fixtures import NewPrefix
from tests.stores.events.following import Follower
from tests.stores.events.random_events import (
    OWNERS,
    batches,
    log_series,
    owners,
    ranges,
    sample_series,
    selections,
    times,
    types,
)

servers = st.integers(0, 1)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), servers, batches),
        st.tuples(st.just("add"), servers, batches),
        st.tuples(st.just("follow"), servers),
        st.tuples(st.just("compact"), servers, owners),
        st.tuples(st.just("delete"), servers, st.lists(owners, min_size=1, max_size=2), types),
        st.tuples(st.just("delete_logs"), servers, log_series, st.none() | times, selections),
        st.tuples(st.just("delete_samples"), servers, sample_series, ranges, st.none() | times),
    ),
    min_size=2,
    max_size=10,
)

LOSS = SeriesName(EventType.SCALAR, "loss", "train")
OTHER = Owner("company", "other task")
EVERYTHING = OwnerChanges(everything=True)


async def run(address: ElasticsearchAddress, operations: list[tuple[Any, ...]]) -> None:
    """Two servers do what is asked of them, and the readers of each follow."""
    stores = [ElasticsearchEventStore(address, migrate=True, strict=True) for _ in range(2)]
    for store in stores:
        await store.open()
    followers = [Follower(OWNERS, 1000), Follower(OWNERS, 3)]
    try:
        for follower in followers:
            await follower.begin(stores[0])
        for name, number, *arguments in [*operations, ("follow", 0), ("follow", 1)]:
            if name == "follow":
                await followers[number].follow(stores[number])
                await followers[number].assert_same(stores[number])
            else:
                await getattr(stores[number], name)(*arguments)
    finally:
        for store in stores:
            await store.close()


def test_a_follower_has_what_the_stores_have(elasticsearch_url: str, elasticsearch_new_prefix: NewPrefix) -> None:
    @examples(2)
    @given(operations)
    def same(operations: list[tuple[Any, ...]]) -> None:
        with elasticsearch_new_prefix() as prefix:
            asyncio.run(run(ElasticsearchAddress((elasticsearch_url,), prefix), operations))

    same()


# --- by hand ---------------------------------------------------------------------------------------


@pytest.fixture
async def client(elasticsearch_url: str) -> AsyncIterator[AsyncElasticsearch]:
    async with AsyncElasticsearch(elasticsearch_url) as opened:
        yield opened


async def told(store: ElasticsearchEventStore, cursor: Cursor = None, *owners: Owner) -> Changes:
    return await store.changes(ChangesQuery(owners or [OWNER, OTHER], cursor))


@pytest.mark.anyio
async def test_an_index_with_several_shards_tells_of_all(
    store: ElasticsearchEventStore, client: AsyncElasticsearch, elasticsearch_prefix: str
) -> None:
    index = names.blocks(elasticsearch_prefix, EventType.SCALAR, "company")
    await client.indices.create(index=index, settings={"number_of_shards": 3})
    many = [Owner("company", str(n)) for n in range(12)]
    cursor = (await told(store, None, *many)).cursor
    for n in range(2):
        await store.add(batch(*(scalars([1.0], iters=[n], owner=owner) for owner in many)))
        found = await told(store, cursor, *many)
        assert found.owners == {owner: OwnerChanges({LOSS: Range(n, n)}) for owner in many}
        cursor = found.cursor
    assert (await told(store, cursor, *many)).owners == {}


@pytest.mark.anyio
async def test_one_refresh_of_an_index_shows_all_of_its_shards(
    store: ElasticsearchEventStore,
    client: AsyncElasticsearch,
    elasticsearch_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = names.blocks(elasticsearch_prefix, EventType.SCALAR, "company")
    await client.indices.create(index=index, settings={"number_of_shards": 3})
    many = [Owner("company", str(n)) for n in range(12)]
    cursor = (await told(store, None, *many)).cursor
    await store.add(batch(*(scalars([1.0], owner=owner) for owner in many)))
    cluster, refreshed = store._cluster, list[str]()
    refresh = cluster.refresh

    async def noted(index: str) -> NodeConfig:
        refreshed.append(index)
        return await refresh(index)

    monkeypatch.setattr(cluster, "refresh", noted)
    monkeypatch.setattr(cluster, "strict", True)
    assert (await told(store, cursor, *many)).owners.keys() == {*many}
    assert refreshed == [index]


@pytest.mark.anyio
async def test_an_index_that_was_removed_is_told_as_deleted(
    store: ElasticsearchEventStore, client: AsyncElasticsearch, elasticsearch_prefix: str
) -> None:
    await store.add(batch(scalars([1.0])))
    cursor = (await told(store)).cursor
    await client.indices.delete(index=names.blocks(elasticsearch_prefix, EventType.SCALAR, "company"))
    assert (await told(store, cursor)).owners == {OWNER: EVERYTHING, OTHER: EVERYTHING}
    await store.add(batch(scalars([1.0])))
    found = await told(store, cursor)
    assert found.owners == {OWNER: EVERYTHING, OTHER: EVERYTHING}
    assert (await told(store, found.cursor)).owners == {}


@pytest.mark.anyio
async def test_a_deletion_of_samples_is_told_until_it_is_done(
    store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also to readers who begin meanwhile."""
    await store.add(batch(sample(1), sample(1, owner=OTHER)))
    before = (await told(store)).cursor
    seen: list[Cursor] = []
    delete = Cluster.delete

    async def look_meanwhile(self: Cluster, *asked: Any, **how: Any) -> int:
        first = await told(store, before)
        again = await told(store, first.cursor)
        assert first.owners == again.owners == {OWNER: EVERYTHING}
        seen.extend([first.cursor, again.cursor, (await told(store)).cursor])
        return await delete(self, *asked, **how)

    monkeypatch.setattr(Cluster, "delete", look_meanwhile)
    await store.delete([OWNER], [EventType.PLOT])
    for cursor in seen:
        found = await told(store, cursor)
        assert found.owners == {OWNER: EVERYTHING}
        assert (await told(store, found.cursor)).owners == {}


@pytest.mark.anyio
async def test_a_deletion_of_blocks_is_told_to_those_who_read_before(
    store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is done as soon as it is noted. To remove the blocks changes nothing."""
    await store.add(batch(scalars([1.0]), scalars([1.0], owner=OTHER), lines(["a"])))
    before = (await told(store)).cursor
    seen: list[Cursor] = []
    delete = Cluster.delete

    async def look_meanwhile(self: Cluster, *asked: Any, **how: Any) -> int:
        found = await told(store, before)
        assert found.owners == {OWNER: EVERYTHING}
        assert await store.log_count(LOGS) == 0
        seen.append(found.cursor)
        return await delete(self, *asked, **how)

    monkeypatch.setattr(Cluster, "delete", look_meanwhile)
    await store.delete([OWNER], [EventType.LOG])
    assert (await told(store, *seen)).owners == {}


@pytest.mark.anyio
async def test_series_that_came_together_are_told_apart(store: ElasticsearchEventStore) -> None:
    """They are put as one bundle, whose metrics and variants could be combined in other ways."""
    cursor = (await told(store)).cursor
    some = {("a", "x"): Range(3, 4), ("b", "y"): Range(7, 9), ("c", "x"): Range(0, 0)}
    await store.add(
        batch(
            *(
                scalars([1.0] * (ends.greatest - ends.least + 1), metric=metric, variant=variant, iters=[*_all(ends)])
                for (metric, variant), ends in some.items()
            )
        )
    )
    expected = {SeriesName(EventType.SCALAR, *name): ends for name, ends in some.items()}
    assert (await told(store, cursor)).owners == {OWNER: OwnerChanges(expected)}


def _all(ends: Range) -> range:
    return range(ends.least, ends.greatest + 1)


@pytest.mark.anyio
async def test_a_deletion_of_lines_is_told_until_it_is_done(
    store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.add(batch(scalars([1.0]), lines(["a", "b"], timestamps=[1, 2]), lines(["c"], owner=OTHER)))
    before = (await told(store)).cursor
    seen: list[Cursor] = []

    async def look_meanwhile(*asked: Any) -> bool:
        found = await told(store, before)
        assert found.owners == {OWNER: EVERYTHING}
        seen.append(found.cursor)
        return await make_chunks(*asked)

    monkeypatch.setattr(log_deletion, "make_chunks", look_meanwhile)
    assert await store.delete_logs(LOGS, 2) == 1
    for cursor in (before, *seen):
        found = await told(store, cursor)
        assert found.owners == {OWNER: EVERYTHING}
        assert (await told(store, found.cursor)).owners == {}


@pytest.mark.anyio
async def test_a_chunk_is_a_change_to_those_who_do_not_know_its_points(store: ElasticsearchEventStore) -> None:
    before = (await told(store)).cursor
    await store.add(batch(scalars([1.0, 2.0]), lines(["a", "b"])))
    after = (await told(store)).cursor
    await store.compact(OWNER)
    assert (await told(store, before)).owners == {OWNER: OwnerChanges({LOSS: Range(0, 1)}, log_lines=2)}
    assert (await told(store, after)).owners == {}


async def _fails(*_: Any, **__: Any) -> int:
    raise EventStoreBusy("gone")


@pytest.mark.anyio
@pytest.mark.parametrize("ends", ["its note was seen for a minute", "it began an hour ago", "it is done again"])
@pytest.mark.parametrize(
    "work",
    [
        (Cluster, "delete", lambda store: store.delete([OWNER], [EventType.PLOT])),
        (Cluster, "delete", lambda store: store.delete_samples(PLOTS)),
        (ColumnarScalars, "thin_scalars", lambda store: store.thin_scalars(SCALARS, 12)),
    ],
    ids=["samples", "some samples", "thinning"],
)
async def test_a_deletion_that_failed_is_told_until(
    store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch, work: Any, ends: str
) -> None:
    of, name, do = work
    cursor = (await told(store)).cursor
    with monkeypatch.context() as patch:
        patch.setattr(of, name, _fails)
        with pytest.raises(EventStoreBusy):
            await do(store)
    for _ in range(3):
        found = await told(store, cursor)
        assert found.owners == {OWNER: EVERYTHING}
        cursor = found.cursor
    if ends == "its note was seen for a minute":
        monkeypatch.setattr(store._cluster, "bounds", ElasticsearchBounds(ended_after=0))
    elif ends == "it began an hour ago":
        monkeypatch.setattr(store._cluster, "bounds", ElasticsearchBounds(longest_deletion=-60))
    else:
        await do(store)
    found = await told(store, cursor)
    assert found.owners == {OWNER: EVERYTHING}
    assert (await told(store, found.cursor)).owners == {}


@pytest.mark.anyio
async def test_a_long_deletion_is_told_until_it_is_done(
    store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is noted again and again, so that nobody takes it as ended."""
    monkeypatch.setattr(store._cluster, "bounds", ElasticsearchBounds(noted_every=0.01))
    places = set[int]()
    real, goes_on = Cluster.delete, Deletions.goes_on

    def seen(self: Deletions, owner: str, place: int) -> bool:
        places.add(place)
        return goes_on(self, owner, place)

    async def delete(*how: Any, **more: Any) -> int:
        found = await told(store, before)
        while len(places) < 3:
            assert found.owners == {OWNER: EVERYTHING}
            found = await told(store, found.cursor)
        monkeypatch.setattr(store._cluster, "bounds", ElasticsearchBounds(noted_every=60, ended_after=0))
        return await real(*how, **more)

    await store.add(batch(sample(1)))
    before = (await told(store)).cursor
    monkeypatch.setattr(Deletions, "goes_on", seen)
    monkeypatch.setattr(Cluster, "delete", delete)
    assert await store.delete([OWNER], [EventType.PLOT]) == 1
    found = await told(store, before)
    assert found.owners == {OWNER: EVERYTHING}
    assert (await told(store, found.cursor)).owners == {}


@pytest.mark.anyio
async def test_iterations_that_doubles_cannot_hold_are_within_what_is_told(store: ElasticsearchEventStore) -> None:
    for iter in (2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 513, -(2**63) + 1):
        cursor = (await told(store)).cursor
        await store.add(batch(scalars([1.0], iters=[iter])))
        ends = (await told(store, cursor)).owners[OWNER].series[LOSS]
        assert ends.least <= iter <= ends.greatest
        assert ends.greatest - ends.least <= 4096


@pytest.mark.anyio
async def test_what_is_under_way_elsewhere_is_not_passed_by(
    store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a shard has done 1, but not 0 on all copies, its checkpoint is behind: what is told is told again."""
    before = (await told(store)).cursor
    await store.add(batch(scalars([1.0])))
    await store.add(batch(scalars([1.0], iters=[1])))
    stats = Cluster.shard_stats

    async def earlier(self: Cluster, *asked: Any) -> Any:
        found = await stats(self, *asked)
        for index in found.values():
            for copies in index["shards"].values():
                for copy in copies:
                    copy["seq_no"]["global_checkpoint"] = min(copy["seq_no"]["global_checkpoint"], 0)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Cluster, "shard_stats", earlier)
        found = await told(store, before)
    assert found.owners == {OWNER: OwnerChanges({LOSS: Range(0, 1)})}
    assert (await told(store, found.cursor)).owners == {OWNER: OwnerChanges({LOSS: Range(1, 1)})}
