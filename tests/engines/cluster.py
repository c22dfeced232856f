"""A cluster of Elasticsearch nodes, of three for tests: each index of ours has a replica in it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

from tests.engines import elasticsearch
from tests.engines.nodes import ProcessNode
from tests.engines.wires import Wires
from tests.harness import PATIENCE, free_ports, wait_until

_NAMES = ("one", "two", "three")
_HEAP = "512m"


@dataclass(slots=True)
class ElasticsearchCluster:
    """Processes of ours on 127.0.0.1, by their names. Any of them may be stopped, killed and started again."""

    nodes: dict[str, ProcessNode]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The URLs of all nodes."""
        return tuple(node.url for node in self.nodes.values())

    def start(self) -> None:
        """Start all nodes at once, as none answers before two of them have found each other."""
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            list(threads.map(ProcessNode.start, self.nodes.values()))
        self.wait_until_complete()

    def kill(self) -> None:
        """End all nodes as a power cut would."""
        for node in self.nodes.values():
            node.kill()

    def remove(self) -> None:
        """End all nodes for good, at once."""
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            list(threads.map(ProcessNode.remove, self.nodes.values()))

    def restart(self, name: str, settings: Sequence[str] = ()) -> None:
        """Stop a node and start it again, with more settings (`NAME=VALUE`) for this time."""
        node = self.nodes[name]
        node.stop()
        usual, node.command = node.command, [*node.command, *settings]
        node.start()
        node.command = usual

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call to the first node that answers it."""
        *others, last = self.hosts
        for url in others:
            try:
                return elasticsearch.call(url, method, path, body)
            except (URLError, ConnectionError, TimeoutError):
                continue
        return elasticsearch.call(last, method, path, body)

    def wait_until_complete(self, seconds: float = PATIENCE) -> None:
        """Wait until all nodes are in the cluster, and every shard has all its copies and stays where it is."""
        wanted = f"wait_for_status=green&wait_for_nodes={len(self.nodes)}&wait_for_no_relocating_shards=true&timeout=1s"

        def is_complete() -> bool:
            try:
                return self.call("GET", f"/_cluster/health?{wanted}")["timed_out"] is False
            except (URLError, ConnectionError, TimeoutError):
                return False

        wait_until(is_complete, seconds)


def cluster(
    folder: Path, nodes: int = len(_NAMES), *, heap: str = _HEAP, quick: bool = True, wires: Wires | None = None
) -> ElasticsearchCluster:
    """A cluster that is not started yet, with its data below `folder`; Unavailable where it cannot be had.

    nodes: two or three. quick: as of a single node. wires: what the nodes reach one another by, if not directly.
    """
    ports = dict(zip(_NAMES[:nodes], free_ports(nodes), strict=True))
    published = wires.lead_to(ports) if wires is not None else ports
    together = {
        "discovery.type": "multi-node",
        "cluster.name": folder.name,
        "cluster.initial_master_nodes": ",".join(ports),
        "discovery.seed_hosts": ",".join(f"127.0.0.1:{port}" for port in published.values()),
        # Shards stay where a test has put them.
        "cluster.routing.rebalance.enable": "none",
    }
    of_each: dict[str, dict[str, str | int]] = {
        name: {"node.name": name, "transport.port": port, "transport.publish_port": published[name]}
        for name, port in ports.items()
    }
    made = {
        name: elasticsearch.process(folder / name, heap, quick=quick, settings={**together, **own})
        for name, own in of_each.items()
    }
    if wires is not None:
        wires.nodes = made
    return ElasticsearchCluster(made)
