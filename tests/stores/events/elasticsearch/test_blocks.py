"""Blocks on Elasticsearch: places if some of several shards are away, and documents that are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import ApiError

from apiserver.events.model import EventType, JsonObject, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import Refused
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import BY_HAND_AGAIN
from apiserver.stores.events.elasticsearch.migrations import check_schema
from tests.contract.event_stores import OWNER, batch, scalars

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster(elasticsearch_url: str, elasticsearch_prefix: str) -> AsyncIterator[Cluster]:
    made = Cluster(ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix), strict=False)
    await check_schema(made.client, elasticsearch_prefix, migrate=True)
    yield made
    await made.close()


async def create_index(cluster: Cluster, **how: Any) -> None:
    """Create the index of scalars."""
    await cluster.client.indices.create(index=names.blocks(cluster.prefix, EventType.SCALAR, OWNER.company), **how)


async def test_the_place_of_another_shard_is_not_taken_for_that_of_one_that_is_away(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_index(cluster, settings={"number_of_shards": 2})
    blocks = ElasticsearchBlocks(cluster)
    store = ColumnarScalars(blocks)
    owners = [Owner("company", str(number)) for number in range(8)]
    for times, owner in enumerate(owners, 1):
        for number in range(times):
            await store.add(batch(scalars([1.0], iters=[number], owner=owner)))
    ended = {owner: await blocks.ended(owner) for owner in owners}
    one, other = sorted(set(ended.values()))
    shard_stats = cluster.shard_stats

    async def without_a_shard(indices: Sequence[str]) -> dict[str, Any]:
        found = await shard_stats(indices)
        for stats in found.values():
            stats["shards"] = {number: copies for number, copies in stats["shards"].items() if number == "0"}
        return found

    monkeypatch.setattr(cluster, "shard_stats", without_a_shard)
    left = {owner: await blocks.ended(owner) for owner in owners}
    assert {left[owner] for owner in owners if left[owner] != -1} in ({one}, {other})
    assert all(left[owner] in (-1, ended[owner]) for owner in owners)
    assert -1 in left.values()


async def test_a_series_that_is_refused_costs_no_other_one_of_its_bundle(cluster: Cluster) -> None:
    await create_index(cluster, mappings={"properties": {"count": {"type": "byte"}}})
    store = ColumnarScalars(ElasticsearchBlocks(cluster))
    with pytest.raises(Refused, match="failed to parse field") as refusal:
        await store.add(batch(scalars([1.0] * 100, metric="few"), scalars([1.0] * 200, metric="many")))
    assert [*refusal.value.events.values()] == [200]
    assert [name.metric for name in await store.series(OWNER)] == ["few"]


@pytest.mark.parametrize(("own", "set"), [({}, "20m"), ({"gc_deletes": "1h"}, "1h")])
async def test_nodes_remember_what_was_removed(cluster: Cluster, own: dict[str, str], set: str) -> None:
    """Also in an index that was there before; what somebody has set stays."""
    await create_index(cluster, settings=own)
    for _ in range(2):
        await ColumnarScalars(ElasticsearchBlocks(cluster)).add(batch(scalars([1.0])))
    (index,) = (await cluster.client.indices.get_settings(index=f"{cluster.prefix}-blocks-*")).values()
    assert index["settings"]["index"]["gc_deletes"] == set


@pytest.mark.parametrize("status", [400, 403])
async def test_a_server_that_may_not_set_how_long_nodes_remember_goes_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    monkeypatch.setattr(cluster.client.indices, "put_settings", _refuses(status))
    store = ColumnarScalars(ElasticsearchBlocks(cluster))
    for _ in range(2):
        await store.add(batch(scalars([1.0])))
    assert await store.count(SeriesQuery(OWNER, EventType.SCALAR)) == 1
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "does not let this server set index.gc_deletes" in said


async def test_a_write_fails_if_no_node_can_set_how_long_they_remember(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is set the next time."""
    store = ColumnarScalars(ElasticsearchBlocks(cluster))
    with monkeypatch.context() as patched:
        patched.setattr(cluster.client.indices, "put_settings", _refuses(503))
        with pytest.raises(EventStoreBusy):
            await store.add(batch(scalars([1.0])))
    await store.add(batch(scalars([1.0])))
    (index,) = (await cluster.client.indices.get_settings(index=f"{cluster.prefix}-blocks-*")).values()
    assert index["settings"]["index"]["gc_deletes"] == "20m"


def _refuses(status: int) -> Callable[..., Coroutine[Any, Any, None]]:
    async def put_settings(**_: Any) -> None:
        meta = ApiResponseMeta(status, "1.1", HttpHeaders(), 0.1, NodeConfig("http", "127.0.0.1", 9200))
        raise ApiError("refused", meta, {"error": {"type": "refused", "reason": "because"}})

    return put_settings


async def test_blocks_that_are_put_at_once_are_there_once(cluster: Cluster) -> None:
    """Each of these puts finds that others were quicker, some of them again and again. Removals come in between."""
    stores = [ColumnarScalars(ElasticsearchBlocks(cluster)) for _ in range(6)]
    await stores[0].add(batch(scalars([0.0], iters=[9])))
    points = batch(scalars([1.0, 2.0], iters=[1, 2], metric="a"), scalars([3.0], metric="b"))
    await asyncio.gather(
        *(store.add(points) for store in stores), *(store.compact(OWNER, fewest=1) for store in stores)
    )
    series = SeriesQuery(OWNER, EventType.SCALAR)
    assert await stores[0].count(series) == 4
    await asyncio.gather(*(store.add(points) for store in stores), *(store.delete([OWNER]) for store in stores[:3]))
    await stores[1].delete([OWNER])
    assert await stores[1].count(series) == 0


async def test_a_write_waits_for_a_copy_that_does_not_show_yet_what_is_there(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy that answers gets has not got what another server wrote a moment ago, and gets it later."""
    store, points = ColumnarScalars(ElasticsearchBlocks(cluster)), batch(scalars([1.0]))
    await store.delete([OWNER])
    await store.add(points)
    get_each, asked = cluster.get_each, 0

    async def behind(docs: Sequence[JsonObject]) -> list[JsonObject]:
        nonlocal asked
        asked += 1
        return await get_each(docs) if asked % 3 == 0 else [{"found": False} for _ in docs]

    monkeypatch.setattr(cluster, "get_each", behind)
    await store.add(points)
    assert (asked, await store.count(SeriesQuery(OWNER, EventType.SCALAR))) == (3, 1)
    await store.delete([OWNER])
    assert (asked, await store.count(SeriesQuery(OWNER, EventType.SCALAR))) == (6, 0)


async def test_a_deletion_waits_for_others_that_note_deletions_of_the_same_owner(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever a note is to be written, another server was quicker, until this one waits."""
    store = ElasticsearchBlocks(cluster)
    bulk, sleep, others = cluster.bulk, asyncio.sleep, iter(range(1, 1000))
    others_write = True

    async def after_another(index: str, body: bytes) -> list[JsonObject]:
        nonlocal others_write
        if others_write:
            others_write = False
            await store.delete_before(OWNER, next(others))
            others_write = True
        return await bulk(index, body)

    async def pause(seconds: float) -> None:
        nonlocal others_write
        others_write = False
        await sleep(seconds)

    await store.delete([OWNER])
    monkeypatch.setattr(cluster, "bulk", after_another)
    monkeypatch.setattr(asyncio, "sleep", pause)
    await store.delete_before(OWNER, 1000)
    assert next(others) == 2  # the second attempt was the last
    assert (await store.find(SeriesQuery(OWNER, EventType.SCALAR))).deleted == 1000


async def test_a_note_of_a_deletion_that_elasticsearch_will_never_take_has_to_wait_for_a_person(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if its shard had as many documents as it can have."""

    async def full(index: str, body: bytes) -> list[JsonObject]:
        return [{"status": 400, "error": {"type": "illegal_argument_exception", "reason": "full"}}]

    store = ElasticsearchBlocks(cluster)
    await store.delete([OWNER])
    monkeypatch.setattr(cluster, "bulk", full)
    for deletion in (store.delete([OWNER]), store.delete_before(OWNER, 1000)):
        with pytest.raises(EventStoreBusy, match=r"a deletion cannot be noted: .*: full") as refused:
            await deletion
        assert refused.value.retry_after == BY_HAND_AGAIN


async def test_a_lease_by_a_clock_that_was_ahead_ends(cluster: Cluster) -> None:
    now, owner = 0.0, Owner("company", "task")
    blocks = ElasticsearchBlocks(cluster, clock=lambda: now)
    assert await ElasticsearchBlocks(cluster).lease(owner, "ahead", 86400.0)
    for _ in range(2):
        assert not await blocks.lease(owner, "other", 30.0)
    now = 31.0
    assert await blocks.lease(owner, "other", 30.0)
    assert not await ElasticsearchBlocks(cluster).lease(owner, "ahead", 30.0)


async def test_a_lease_that_is_renewed_goes_on(cluster: Cluster) -> None:
    now, owner = 0.0, Owner("company", "task")
    blocks, holding = (ElasticsearchBlocks(cluster, clock=lambda: now) for _ in range(2))
    for now in (0.0, 20.0, 40.0, 60.0):  # noqa: B007 - the clock says it
        assert await holding.lease(owner, "holder", 86400.0)
        assert not await blocks.lease(owner, "other", 30.0)
