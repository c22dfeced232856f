"""Several servers on three nodes, under load: nodes are split from one another, meet again, and are slow.

The servers still reach all nodes. What was acknowledged is there exactly once, also if the node that acknowledged it
was cut off a moment later. Readers never miss what their server acknowledged, though the node that they ask is cut off
and does not know it yet. Each test takes minutes, so they run only if they are asked for: `pytest --tier longer
tests/engines/test_split.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from urllib.error import URLError

import pytest

from apiserver.events.model import Owner
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.advice import advice
from tests.contract.event_stores import batch, scalars
from tests.engines import elasticsearch
from tests.engines.cluster import ElasticsearchCluster, cluster
from tests.engines.fixtures import own_name, running
from tests.engines.load import Caller, Load, contents
from tests.engines.loaded import loaded, server
from tests.engines.proxy import Fault, Proxy, http_request
from tests.engines.wires import Cut, Wires
from tests.harness import wait_until
from tests.memory import in_memory

pytestmark = [pytest.mark.anyio, pytest.mark.longer]

#: Seconds until nodes leave out one that is silent, and until all have joined again: they ask a silent one three times
#: for 10 seconds, and if it was the master, three times again; and the machine may be busy.
_PATIENCE = 600
#: Of messages to and from a slow node, and of requests to one, so many wait, and for so many seconds.
_MESSAGES, _REQUESTS, _SLOW = 1 / 30, 1 / 10, (1.0, 2.0)
#: A node that this setting names gets no shards, and the others take over those that it has.
_KEPT_FREE = "cluster.routing.allocation.exclude._name"


@pytest.fixture(scope="module")
def wires() -> Iterator[Wires]:
    with Wires().running() as made:
        yield made


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, wires: Wires) -> Iterator[ElasticsearchCluster]:
    with in_memory() as memory:
        folder = memory or tmp_path_factory.mktemp("cluster")
        yield from running("cluster of Elasticsearch", None, lambda: cluster(folder, wires=wires))


@pytest.fixture
async def load(nodes: ElasticsearchCluster) -> AsyncIterator[Load]:
    async with loaded(nodes.hosts) as load:
        yield load


@pytest.mark.parametrize("how", Cut)
@pytest.mark.parametrize("whom", ["the master", "another node"])
async def test_a_node_is_cut_off_from_both_others(
    nodes: ElasticsearchCluster, wires: Wires, load: Load, whom: str, how: Cut
) -> None:
    async with load.running():
        await load.goes_on()
        master, other, _ = _master_first(nodes)
        alone = master if whom == "the master" else other
        others = nodes.nodes.keys() - {alone}
        async with _cut(nodes, wires, [alone], others, how):
            await _left_out(nodes, others)
            await load.goes_on()
        await load.goes_on()


@pytest.mark.parametrize("how", Cut)
async def test_the_master_and_a_node_are_split_and_both_reach_the_third(
    nodes: ElasticsearchCluster, wires: Wires, load: Load, how: Cut
) -> None:
    """The node has no master then. With `cluster.no_master_block: all` it answers no searches, as is recommended."""
    nodes.call("PUT", "/_cluster/settings", {"persistent": {"cluster.no_master_block": "all"}})
    async with load.running():
        await load.goes_on()
        master, other, third = _master_first(nodes)
        async with _cut(nodes, wires, [master], [other], how):
            await _left_out(nodes, {master, third})
            await load.goes_on()
        await load.goes_on()
    nodes.call("PUT", "/_cluster/settings", {"persistent": {"cluster.no_master_block": None}})


@pytest.mark.parametrize("how", Cut)
async def test_two_nodes_are_split_and_both_reach_the_master(
    nodes: ElasticsearchCluster, wires: Wires, load: Load, how: Cut
) -> None:
    """They stay in the cluster, and have a copy of each shard. Writers wait until the nodes give up these copies.

    They do so after a minute of connections that are refused. Those to a silent node are ended by TCP before.
    """
    master, one, other = _master_first(nodes)
    await asyncio.to_thread(_keep_free, nodes, master)
    async with load.running():
        await load.goes_on()
        async with _cut(nodes, wires, [one], [other], how):
            await load.is_refused(1)
            wires.cut([one], [other], Cut.RESET)
            await load.goes_on()
        await load.goes_on()
    nodes.call("PUT", "/_cluster/settings", {"persistent": {_KEPT_FREE: None}})


async def test_two_nodes_are_split_and_an_index_is_only_read(nodes: ElasticsearchCluster, wires: Wires) -> None:
    """Elasticsearch takes away copies only because of writes. So a server whose reads fail writes something, too."""
    master, one, other = _master_first(nodes)
    await asyncio.to_thread(_keep_free, nodes, master)
    owner, address = Owner("company", "quiet"), ElasticsearchAddress(nodes.hosts, own_name())
    async with server(address, strict=True) as store:
        await store.add(batch(scalars([1.0, 2.0], owner=owner)))
        await asyncio.to_thread(nodes.wait_until_complete)
        async with _cut(nodes, wires, [one], [other], Cut.RESET):
            reader = Caller(store=store)
            found = await reader.answer(partial(contents, store, owner))
            assert reader.refused
            assert found.curves == {("loss", "train"): {0: 1.0, 1: 2.0}}
    elasticsearch.remove(nodes.hosts[0], address.prefix)
    nodes.call("PUT", "/_cluster/settings", {"persistent": {_KEPT_FREE: None}})


async def test_what_each_node_sends_to_others_is_slow_for_a_while(
    nodes: ElasticsearchCluster, wires: Wires, load: Load, dice: random.Random
) -> None:
    async with load.running():
        await load.goes_on()
        for name in nodes.nodes:
            before = wires.delayed
            with wires.slow(name, _MESSAGES, _SLOW, dice):
                await load.goes_on()
            assert wires.delayed > before + 5
        await load.goes_on()


@pytest.fixture
def proxies(nodes: ElasticsearchCluster, dice: random.Random) -> Iterator[list[Proxy]]:
    """A proxy before the HTTP of each node."""
    with ExitStack() as running:
        ports = [int(url.rpartition(":")[2]) for url in nodes.hosts]
        made = [Proxy(port, http_request, dice.randrange(2**32), _SLOW) for port in ports]
        yield [running.enter_context(proxy.running()) for proxy in made]


async def test_what_servers_ask_of_each_node_is_slow_for_a_while(proxies: list[Proxy]) -> None:
    """Each server asks one node, which is chosen by chance, so each node is slow once."""
    async with loaded([f"http://127.0.0.1:{proxy.port}" for proxy in proxies]) as load, load.running():
        await load.goes_on()
        for proxy in proxies:
            proxy.set(Fault.DELAY, _REQUESTS)
            await load.goes_on(10)
            proxy.set(None)
        await load.goes_on(10)
    assert sum(proxy.hits[Fault.DELAY] for proxy in proxies) > 10


def _keep_free(nodes: ElasticsearchCluster, name: str) -> None:
    """Return when a node has no shards any more."""
    nodes.call("PUT", "/_cluster/settings", {"persistent": {_KEPT_FREE: name}})
    wait_until(lambda: name not in {one["node"] for one in nodes.call("GET", "/_cat/shards?format=json")}, _PATIENCE)
    nodes.wait_until_complete()


async def test_servers_say_that_three_nodes_should_refuse_reads_without_a_master(nodes: ElasticsearchCluster) -> None:
    address = ElasticsearchAddress(nodes.hosts)
    [sentence] = await advice(address)
    assert "3 nodes, and its setting cluster.no_master_block is 'write'" in sentence
    nodes.call("PUT", "/_cluster/settings", {"persistent": {"cluster.no_master_block": "all"}})
    assert await advice(address) == []
    nodes.call("PUT", "/_cluster/settings", {"persistent": {"cluster.no_master_block": None}})


@asynccontextmanager
async def _cut(
    nodes: ElasticsearchCluster, wires: Wires, some: Collection[str], others: Collection[str], how: Cut
) -> AsyncIterator[None]:
    """Some nodes and others are split inside. Afterwards all are together again."""
    try:
        assert wires.cut(some, others, how) > 0
        yield
    finally:
        wires.heal()
    await asyncio.to_thread(_join, nodes)


def _join(nodes: ElasticsearchCluster) -> None:
    """Return when all nodes and all copies of shards are there again.

    Copies that could not be made five times, as their nodes did not reach one another, are made if somebody asks.
    """
    wait_until(partial(_are_asked_again, nodes), _PATIENCE)
    nodes.wait_until_complete(_PATIENCE)


def _are_asked_again(nodes: ElasticsearchCluster) -> bool:
    try:
        if nodes.call("GET", f"/_cluster/health?wait_for_nodes={len(nodes.nodes)}&timeout=1s")["timed_out"]:
            return False
        nodes.call("POST", "/_cluster/reroute?retry_failed=true", {})
    except (URLError, ConnectionError, TimeoutError):
        return False
    return True


def _master_first(nodes: ElasticsearchCluster) -> list[str]:
    """The names of the nodes."""
    master: str = nodes.call("GET", "/_cat/master?format=json")[0]["node"]
    return [master, *sorted(nodes.nodes.keys() - {master})]


async def _left_out(nodes: ElasticsearchCluster, others: Collection[str]) -> None:
    """Return when the others are a cluster without the node that is cut off."""
    [url, *_] = [nodes.nodes[name].url for name in others]

    def are_alone() -> bool:
        asked = f"/_cluster/health?wait_for_nodes={len(others)}&timeout=1s"
        try:
            return elasticsearch.call(url, "GET", asked)["timed_out"] is False
        except (URLError, ConnectionError, TimeoutError):  # they have no master yet
            return False

    await asyncio.to_thread(partial(wait_until, are_alone, _PATIENCE))
