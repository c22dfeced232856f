"""When an index is refreshed, and whose answers to searches count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig, ObjectApiResponse, RoundRobinSelector
from elasticsearch import NotFoundError

from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch import node as node_module
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import BOUNDS, ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import AWAY_AGAIN, MISSING, busy

pytestmark = pytest.mark.anyio


class _Refreshes(Cluster):
    """A cluster without nodes: it only notes which index is refreshed, by which node, and who answers searches."""

    def __init__(self, *, strict: bool = False, nodes: int = 1, bounds: ElasticsearchBounds = BOUNDS) -> None:
        hosts = tuple(f"http://127.0.0.1:{number}" for number in range(1, 1 + nodes))
        super().__init__(ElasticsearchAddress(hosts), strict=strict, bounds=bounds)
        self.refreshed: list[str] = []
        self.behind: list[int] = []
        """How many copies each of the next refreshes fails to refresh."""
        self.hold = asyncio.Event()
        self.hold.set()
        self.refreshed_by: list[NodeConfig] = []
        self.searched_by: list[NodeConfig] = []
        self.cut_off: NodeConfig | None = None
        """The node that cannot refresh all copies."""
        self.without: set[NodeConfig] = set()
        """The nodes that do not know any index."""
        self.client.indices.refresh = self._refreshed_by_a_node  # type: ignore[method-assign,assignment]
        self.client.search = self._searched_by_a_node  # type: ignore[method-assign,assignment]
        self.client.bulk = self._written_to_a_node  # type: ignore[method-assign,assignment]
        self.client.indices.get_settings = self._set  # type: ignore[method-assign,assignment]
        self.client.options = lambda **_: self.client  # type: ignore[method-assign]
        self.writes: list[tuple[str, list[JsonObject]]] = []
        """Bulks: the index of each, and what is to be done there."""
        self.holds_writes = asyncio.Event()
        self.holds_writes.set()

    @property
    def node(self) -> NodeConfig:
        """That which gets the next request."""
        return self.client.transport.node_pool.get().config

    async def _refreshed_by_a_node(self, *, index: str, **_: Any) -> ObjectApiResponse[Any]:
        await self.hold.wait()
        self.refreshed.append(index)
        self.refreshed_by.append(node := self.node)
        if node in self.without:
            raise NotFoundError(MISSING, _answer_of(node, {}).meta, {"error": {"type": MISSING}})
        failed = int(node == self.cut_off) or (self.behind.pop() if self.behind else 0)
        return _answer_of(node, {"_shards": {"failed": failed}})

    async def _searched_by_a_node(self, *, index: str, **_: Any) -> ObjectApiResponse[Any]:
        self.searched_by.append(node := self.node)
        if node in self.without:
            raise NotFoundError(MISSING, _answer_of(node, {}).meta, {"error": {"type": MISSING}})
        return _answer_of(node, {"hits": {"hits": [index]}})

    async def _written_to_a_node(self, *, index: str, operations: list[JsonObject], **_: Any) -> ObjectApiResponse[Any]:
        self.writes.append((index, operations))
        await self.holds_writes.wait()
        return _answer_of(self.node, {"errors": False})

    async def _set(self, *, index: str, name: str, **_: Any) -> ObjectApiResponse[Any]:
        return _answer_of(self.node, {index: {"settings": {name: "5"}}})


def _answer_of(node: NodeConfig, body: JsonObject) -> ObjectApiResponse[Any]:
    return ObjectApiResponse(body, ApiResponseMeta(200, "1.1", HttpHeaders(), 0.1, node))


#: A refresh that fails is tried no more, or twice more.
ONCE, THRICE = (ElasticsearchBounds(refresh_pauses=pauses) for pauses in ((), (0.0, 0.0)))


@pytest.fixture
def bounds() -> ElasticsearchBounds:
    return BOUNDS


@pytest.fixture
async def cluster(bounds: ElasticsearchBounds) -> AsyncIterator[_Refreshes]:
    made = _Refreshes(bounds=bounds)
    yield made
    await made.close()


async def test_only_what_was_written_is_refreshed(cluster: _Refreshes) -> None:
    await cluster.make_visible(["a", "b"])
    assert cluster.refreshed == ["a", "b"]  # a process before this one may have written
    cluster.wrote(["a"])
    await cluster.make_visible(["a", "b"])
    await cluster.make_visible(["a", "b"])
    assert cluster.refreshed == ["a", "b", "a"]


async def test_readers_share_a_refresh(cluster: _Refreshes) -> None:
    cluster.wrote(["a"])
    await asyncio.gather(*(cluster.make_visible(["a"]) for _ in range(10)))
    assert cluster.refreshed == ["a"]


async def test_what_is_written_during_a_refresh_waits_for_the_next(cluster: _Refreshes) -> None:
    cluster.wrote(["a"])
    cluster.hold.clear()
    first = asyncio.create_task(cluster.make_visible(["a"]))
    await asyncio.sleep(0)
    cluster.wrote(["a"])
    second = asyncio.create_task(cluster.make_visible(["a"]))
    await asyncio.sleep(0)
    cluster.hold.set()
    await asyncio.gather(first, second)
    assert cluster.refreshed == ["a", "a"]


async def test_readers_share_a_refresh_that_fails(cluster: _Refreshes) -> None:
    """Else each would wait for nodes that do not answer, one reader after the other."""
    cluster.hold.clear()
    cluster.behind = [1] * (len(cluster.bounds.refresh_pauses) + 1)
    readers = [asyncio.create_task(cluster.make_visible(["a"])) for _ in range(10)]
    await asyncio.sleep(0)
    cluster.hold.set()
    for outcome in await asyncio.gather(*readers, return_exceptions=True):
        assert isinstance(outcome, EventStoreBusy)
        assert str(outcome) == "a copy of the events is behind"
        assert outcome.retry_after == AWAY_AGAIN
    assert len(cluster.refreshed) == len(cluster.bounds.refresh_pauses) + 1
    await cluster.make_visible(["a"])  # who comes later tries again
    assert len(cluster.refreshed) == len(cluster.bounds.refresh_pauses) + 2


@pytest.mark.parametrize("bounds", [ONCE])
async def test_who_cannot_refresh_an_index_writes_to_it(cluster: _Refreshes) -> None:
    """Elasticsearch takes away a copy that is out of reach only because of a write."""
    cluster.holds_writes.clear()
    for _ in range(2):  # one write at a time, as it takes a minute
        await _fail_to_refresh(cluster, "a")
    [(index, operations)] = cluster.writes
    assert index == "a"
    assert len({one["delete"]["routing"] for one in operations}) == len(operations) == 100  # 20 for each shard
    cluster.holds_writes.set()
    await asyncio.gather(*cluster._unreachable._writing.values())
    await _fail_to_refresh(cluster, "a")
    assert len(cluster.writes) == 2
    await cluster.make_visible(["a"])  # which is refreshed now
    await asyncio.sleep(0)
    assert len(cluster.writes) == 2


async def _fail_to_refresh(cluster: _Refreshes, index: str) -> None:
    cluster.behind = [1]
    with pytest.raises(EventStoreBusy):
        await cluster.make_visible([index])
    await asyncio.sleep(0)


@pytest.mark.parametrize("bounds", [ONCE])
async def test_few_indices_are_written_to_at_once(cluster: _Refreshes) -> None:
    """Each takes a connection for a minute."""
    cluster.holds_writes.clear()
    for number in range(9):
        await _fail_to_refresh(cluster, f"index {number}")
    assert len(cluster.writes) == 4
    cluster.holds_writes.set()
    await asyncio.gather(*cluster._unreachable._writing.values())
    assert len(cluster.writes) == 9


@pytest.mark.parametrize("bounds", [ONCE])
async def test_what_no_write_would_mend_is_not_written_to(cluster: _Refreshes, monkeypatch: pytest.MonkeyPatch) -> None:
    await _fail_to_refresh(cluster, "a-*")  # a bulk takes no patterns
    for error in (busy(429, "es_rejected_execution_exception", ""), busy(403, "index_closed_exception", "")):
        monkeypatch.setattr(cluster, "refresh", partial(_raise, error))
        with pytest.raises(EventStoreBusy):
            await cluster.make_visible(["b"])
        await asyncio.sleep(0)
    assert not cluster.writes


async def _raise(error: Exception, _: str) -> None:
    raise error


@pytest.mark.parametrize("bounds", [ONCE])
async def test_a_cluster_closes_while_it_writes(cluster: _Refreshes) -> None:
    cluster.holds_writes.clear()
    await _fail_to_refresh(cluster, "a")
    await cluster.close()
    await _fail_to_refresh(cluster, "b")
    assert [index for index, _ in cluster.writes] == ["a"]
    assert not cluster._unreachable._writing


async def test_a_strict_reader_sees_what_others_wrote() -> None:
    cluster = _Refreshes(strict=True)
    await cluster.make_visible(["a"])
    await cluster.make_visible(["a"])
    assert cluster.refreshed == ["a", "a"]
    await cluster.close()


async def test_a_refresh_is_tried_again_until_all_copies_are_refreshed(cluster: _Refreshes) -> None:
    cluster.behind = [1, 1]
    await cluster.make_visible(["a"])
    assert cluster.refreshed == ["a", "a", "a"]


@pytest.mark.parametrize("bounds", [THRICE])
async def test_nothing_is_read_while_a_copy_is_behind(cluster: _Refreshes) -> None:
    cluster.behind = [1] * 3
    with pytest.raises(EventStoreBusy, match="behind"):
        await cluster.make_visible(["a"])
    await cluster.make_visible(["a"])
    assert cluster.refreshed == ["a"] * 4


async def test_one_node_answers_all_until_it_fails() -> None:
    cluster = _Refreshes(strict=False, nodes=3)
    for _ in range(5):
        await cluster.search("a", {})
    [node] = {*cluster.searched_by}
    cluster.client.transport.node_pool.mark_dead(cluster.client.transport.node_pool.get())
    for _ in range(5):
        await cluster.search("a", {})
    [other] = {*cluster.searched_by[5:]}
    assert other != node
    await cluster.close()


async def test_a_search_counts_only_if_its_node_has_refreshed_all_copies_since_the_last_write() -> None:
    """Another one may be cut off from the others, and have an old copy."""
    cluster = _Refreshes(strict=False, nodes=3)
    await cluster.search("a", {})
    cluster.wrote(["a"])
    await cluster.search("a", {})
    assert len(cluster.refreshed) == len(cluster.searched_by) == 2
    pool = cluster.client.transport.node_pool
    pool.mark_dead(pool.get())
    cluster.cut_off = cluster.node
    assert await cluster.search("a", {}) == {"hits": {"hits": ["a"]}}
    first, answered, last = cluster.searched_by[1:]
    assert answered == cluster.cut_off  # and it did not count
    assert cluster.refreshed_by[2:] == [answered, last]
    assert len({first, answered, last}) == 3
    await cluster.close()


async def test_a_search_ends_though_each_request_is_answered_by_another_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """While an index lacks shards, each search of it fails at one node after the other, which are then left."""
    monkeypatch.setattr(node_module, "OneUntilItFails", RoundRobinSelector)
    cluster = _Refreshes(strict=False, nodes=3)
    for _ in range(3):
        cluster.wrote(["a"])
        assert await cluster.search("a", {}) == {"hits": {"hits": ["a"]}}
    assert len(cluster.searched_by) == len(cluster.refreshed_by) == 6
    await cluster.close()


async def _with_an_index() -> _Refreshes:
    """A cluster of three nodes, in which the index "a" was made by this server."""
    cluster = _Refreshes(nodes=3, bounds=THRICE)

    async def create(**_: Any) -> None:
        """Nothing: it is there at all nodes of which is not said that they lack it."""

    async def get(index: str, **_: Any) -> JsonObject:
        return {index: {"mappings": {"dynamic": "strict"}}}

    cluster.client.indices.create = create  # type: ignore[method-assign,assignment]
    cluster.client.indices.get = get  # type: ignore[method-assign,assignment]
    await cluster.ensure(["a"])
    return cluster


async def test_one_node_that_does_not_know_an_index_of_this_server_is_not_believed() -> None:
    """It was cut off from the others before the index was made, and the node that made it has failed since."""
    cluster = await _with_an_index()
    cluster.without = {cluster.node}
    assert await cluster.search("a", {}) == {"hits": {"hits": ["a"]}}
    await cluster.close()


async def test_an_index_that_most_nodes_do_not_know_was_removed() -> None:
    cluster = await _with_an_index()
    cluster.without = {node.config for node in cluster.client.transport.node_pool.all()}
    assert (await cluster.search("a", {}))["hits"]["hits"] == []
    assert len(cluster.refreshed_by) == 2
    cluster.wrote(["a"])
    assert (await cluster.search("a", {}))["hits"]["hits"] == []
    assert len(cluster.refreshed_by) == 3  # now it is not expected to be there
    await cluster.close()


async def test_no_old_answer_is_given_if_each_node_is_cut_off() -> None:
    cluster = _Refreshes(bounds=THRICE)
    await cluster.search("a", {})
    cluster.cut_off = cluster.node
    cluster.wrote(["a"])
    with pytest.raises(EventStoreBusy, match="behind"):
        await cluster.search("a", {})
    assert len(cluster.searched_by) == 1
    await cluster.close()


async def test_a_document_that_cannot_be_read_is_not_taken_for_a_missing_one(cluster: _Refreshes) -> None:
    answer: JsonObject = {"docs": [{"_id": "a", "found": False}]}

    async def mget(**_: Any) -> JsonObject:
        return answer

    cluster.client.mget = mget  # type: ignore[method-assign,assignment]
    assert await cluster.get_each([{"_id": "a"}]) == [{"_id": "a", "found": False}]
    answer["docs"].append({"_id": "b", "error": {"type": "no_shard_available_action_exception", "reason": "away"}})
    with pytest.raises(EventStoreBusy, match="away"):
        await cluster.get_each([{"_id": "a"}, {"_id": "b"}])


async def test_a_node_that_is_too_busy_is_not_asked_again_at_once() -> None:
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        cluster = Cluster(ElasticsearchAddress((f"http://127.0.0.1:{port}",)), strict=False)
        with pytest.raises(EventStoreBusy):
            await cluster.check()
        await cluster.close()
    assert len(requests) == 1
