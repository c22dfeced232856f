"""Several servers on three nodes, under load: nodes restart, crash, get stuck, fill up, move shards, have too much.

What was acknowledged is there exactly once, writers wait and go on, and readers never miss what their server
acknowledged. Each test takes a minute or more, so they run only if they are asked for: `pytest --tier longer
tests/engines/test_cluster.py`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engines import elasticsearch, mongodb
from tests.engines.clients import Clients
from tests.engines.cluster import ElasticsearchCluster, cluster
from tests.engines.fixtures import own_name, running, settings_on
from tests.engines.load import Load, until
from tests.engines.loaded import loaded
from tests.engines.nodes import ProcessNode
from tests.harness import Served, served
from tests.memory import in_memory

pytestmark = [pytest.mark.anyio, pytest.mark.longer]

#: Of a node that does one thing at a time, lets one wait, and refuses others.
TINY = ("thread_pool.write.size=1", "thread_pool.write.queue_size=1")
#: More free bytes than any disk has.
_FULL = dict.fromkeys(
    [f"cluster.routing.allocation.disk.watermark.{name}" for name in ("low", "high", "flood_stage")], "1000000gb"
)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElasticsearchCluster]:
    with in_memory() as memory:
        folder = memory or tmp_path_factory.mktemp("cluster")
        yield from running("cluster of Elasticsearch", None, lambda: cluster(folder))


@pytest.fixture
async def load(nodes: ElasticsearchCluster) -> AsyncIterator[Load]:
    async with loaded(nodes.hosts) as load:
        yield load


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_each_node_is_away_for_a_while(nodes: ElasticsearchCluster, load: Load, end: str) -> None:
    async with load.running():
        await load.goes_on()
        for node in nodes.nodes.values():
            await asyncio.to_thread(getattr(node, end))
            await load.goes_on()
            await asyncio.to_thread(node.start)
            await asyncio.to_thread(nodes.wait_until_complete)
            await load.goes_on()


async def test_a_node_gets_stuck_and_comes_back_with_what_it_knew(nodes: ElasticsearchCluster, load: Load) -> None:
    """The others leave it out. It answers nobody, then goes on as if no time had passed, also if it was the master.

    It writes what it got just before, though that was sent again since, and perhaps overwritten or deleted.
    """
    async with load.running():
        await load.goes_on()
        master = nodes.call("GET", "/_cat/master?format=json")[0]["node"]
        for name in (master, next(name for name in nodes.nodes if name != master)):
            with _stuck(nodes.nodes[name]):
                await load.goes_on()
            await asyncio.to_thread(nodes.wait_until_complete)
            await load.goes_on()


@contextmanager
def _stuck(node: ProcessNode) -> Iterator[None]:
    assert node.process is not None
    node.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.process.send_signal(signal.SIGCONT)


async def test_all_nodes_are_killed_at_once(nodes: ElasticsearchCluster, load: Load) -> None:
    async with load.running():
        await load.goes_on()
        await asyncio.to_thread(nodes.kill)
        await load.is_refused()
        await asyncio.to_thread(nodes.start)
        await load.goes_on()


async def test_disks_are_full_for_a_while(nodes: ElasticsearchCluster, load: Load) -> None:
    looks = "cluster.routing.allocation.disk.threshold_enabled"
    async with load.running():
        await load.goes_on()
        nodes.call("PUT", "/_cluster/settings", {"persistent": {looks: True, **_FULL}})
        await load.is_refused()
        nodes.call("PUT", "/_cluster/settings", {"persistent": dict.fromkeys([looks, *_FULL])})
        await load.goes_on()


async def test_shards_move_to_other_nodes(nodes: ElasticsearchCluster, load: Load) -> None:
    async with load.running():
        await load.goes_on()
        for role in ("p", "r") * 2:
            await asyncio.to_thread(_move, nodes, role)
            await load.goes_on()


def _move(nodes: ElasticsearchCluster, role: str) -> None:
    """Move the primaries (p) or the replicas (r) of all shards to the nodes that have no copy of them."""
    copies = nodes.call("GET", "/_cat/shards?format=json")
    commands = []
    for copy in copies:
        if copy["prirep"] == role:
            at = {other["node"] for other in copies if all(copy[of] == other[of] for of in ("index", "shard"))}
            (free,) = nodes.nodes.keys() - at
            shard = {"index": copy["index"], "shard": int(copy["shard"])}
            commands.append({"move": {**shard, "from_node": copy["node"], "to_node": free}})
    assert commands
    nodes.call("POST", "/_cluster/reroute", {"commands": commands})
    nodes.wait_until_complete()
    moved = nodes.call("GET", "/_cat/shards?format=json")
    for command in commands:
        shard = command["move"]
        assert shard["to_node"] in {copy["node"] for copy in moved if copy["index"] == shard["index"]}


async def test_nodes_have_too_much_to_do_for_a_while(nodes: ElasticsearchCluster, load: Load) -> None:
    async with load.running():
        for name in nodes.nodes:
            await asyncio.to_thread(nodes.restart, name, TINY)
            await asyncio.to_thread(nodes.wait_until_complete)
        await until(lambda: _rejected(nodes) >= 50)
        await load.goes_on()
        for name in nodes.nodes:
            await asyncio.to_thread(nodes.restart, name)
            await asyncio.to_thread(nodes.wait_until_complete)
        await load.goes_on()


def _rejected(nodes: ElasticsearchCluster) -> int:
    """How many writes were answered by 429."""
    stats: dict[str, Any] = nodes.call("GET", "/_nodes/stats/thread_pool?filter_path=nodes.*.thread_pool.write")
    return sum(node["thread_pool"]["write"]["rejected"] for node in stats["nodes"].values())


def test_clients_of_two_servers_are_told_the_truth(
    nodes: ElasticsearchCluster, mongodb_url: str, tmp_path: Path
) -> None:
    """A node is killed, then all are: clients are told to come back, and lose nothing."""
    with _served(nodes, mongodb_url, tmp_path) as servers:
        clients = Clients(servers)
        with clients.calling():
            clients.go_on()
            [node, *_] = nodes.nodes.values()
            node.kill()
            clients.go_on()
            node.start()
            nodes.wait_until_complete()
            clients.go_on()
            nodes.kill()
            clients.are_refused()
            nodes.start()
            clients.go_on()
        for server in servers.values():
            assert "Traceback" not in server.log.read_text()


@contextmanager
def _served(nodes: ElasticsearchCluster, mongodb_url: str, folder: Path) -> Iterator[dict[str, Served]]:
    """A server of each consistency, on all nodes."""
    name = own_name()
    hosts = ",".join(url.removeprefix("http://") for url in nodes.hosts)
    with ExitStack() as stack:
        stack.callback(mongodb.drop, mongodb_url, name)
        stack.callback(elasticsearch.remove, nodes.hosts[0], name)
        engines = settings_on(f"http://{hosts}", mongodb_url, name)
        yield {
            consistency: stack.enter_context(served(folder / consistency, consistency=consistency, **engines))
            for consistency in ("session", "strict")
        }
