"""The engines that the servers use: nodes of Elasticsearch, which are also asked directly, and one of MongoDB."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.processes import cpu_seconds, thread_seconds
from tests.engines import elasticsearch, mongodb
from tests.engines.cluster import cluster
from tests.engines.nodes import Node, ProcessNode
from tests.harness import wait_until

_HEAP = "1g"


@dataclass(frozen=True, slots=True)
class Direct:
    """A connection to Elasticsearch itself, which is kept and costs little."""

    connection: HTTPConnection

    def bulk(self, index: str, body: bytes) -> None:
        """Send a bulk for an index. RuntimeError unless all its documents are stored."""
        answer = self.post(f"/{index}/_bulk?filter_path=errors", body)
        if answer != b'{"errors":false}':
            raise RuntimeError(f"Elasticsearch did not store everything: {answer.decode(errors='replace')}")

    def post(self, path: str, body: bytes) -> bytes:
        """Send a body of one or more lines. Returns the body of the answer."""
        self.connection.request("POST", path, body, {"Content-Type": "application/x-ndjson"})
        response = self.connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f"Elasticsearch answered {response.status}: {answer[:500].decode(errors='replace')}")
        return answer


@dataclass(frozen=True, slots=True)
class Engines:
    """Both running engines, and the name under which the benchmark stores its data there."""

    nodes: Sequence[Node]
    """Of Elasticsearch: one, or two, on each of which is a copy of everything."""
    documents_url: str
    name: str

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of a server that uses these engines."""
        return {
            "EVENTS": self.address(self.name),
            "DOCUMENTS": mongodb.address(self.documents_url, self.name),
            "MIGRATE_AT_START": "true",
        }

    def address(self, prefix: str) -> str:
        """The setting `events` of servers that keep their events below this prefix."""
        hosts = ",".join(node.url.rpartition("/")[2] for node in self.nodes)
        return elasticsearch.address(f"http://{hosts}", prefix)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to Elasticsearch."""
        return elasticsearch.call(self.nodes[0].url, method, path, body)

    def direct(self) -> Direct:
        """A new connection to Elasticsearch itself."""
        return Direct(HTTPConnection(self.nodes[0].url.rpartition("/")[2], timeout=300))

    def cpu(self) -> float:
        """CPU seconds that all nodes have used; if they were not started here, as they told a second ago."""
        if (pids := self._pids()) is not None:
            return sum(map(cpu_seconds, pids))
        nodes = self.call("GET", "/_nodes/stats/process?filter_path=nodes.*.process.cpu.total_in_millis")["nodes"]
        return float(sum(node["process"]["cpu"]["total_in_millis"] for node in nodes.values())) / 1000

    def compiling(self) -> float:
        """CPU seconds in which Elasticsearch has compiled what it runs; 0 if it was not started here."""
        return sum(thread_seconds(pid, "CompilerThre") for pid in self._pids() or ())

    def _pids(self) -> list[int] | None:
        """The processes of the nodes, if they were started here."""
        processes = [node.process for node in self.nodes if isinstance(node, ProcessNode)]
        found = [process.pid for process in processes if process is not None]
        return found if len(found) == len(self.nodes) else None

    def settle(self) -> None:
        """Show what was written to searches, and wait until Elasticsearch merges nothing in the background."""
        self.call("POST", f"/{self.name}-*/_refresh")
        wait_until(
            lambda: self.call("GET", f"/{self.name}-*/_stats/merge")["_all"]["total"]["merges"]["current"] == 0, 300
        )

    def forget_answers(self) -> None:
        """Clear Elasticsearch's cache of answers."""
        self.call("POST", f"/{self.name}-*/_cache/clear")

    def wait_until_let_go(self) -> None:
        """Write everything to disk, and wait until no copy of a shard may need what was deleted or replaced.

        Until then, merges keep such documents, and the sources of others. Copies tell every half a minute.
        """
        self._flush(f"{self.name}-*")
        wait_until(lambda: all(map(_has_let_go, self._shards())), 120)

    def _shards(self) -> list[dict[str, Any]]:
        indices = self.call("GET", f"/{self.name}-*/_stats/docs?level=shards")["indices"]
        return [copy for index in indices.values() for copies in index["shards"].values() for copy in copies]

    def merged_bytes(self, pattern: str, *, waits: bool) -> float:
        """Bytes of the indices that match, after each of their shards is merged into one segment.

        `waits`: until nothing is left in these segments that was deleted or replaced. What a merge was not allowed to
        drop, the next one may. The sizes are those of the segments: the size of a shard's files, which Elasticsearch
        also tells, may be the one of ten seconds ago, with files that were merged since.
        """

        def merged() -> bool:
            self._flush(pattern)
            self.call("POST", f"/{pattern}/_forcemerge?max_num_segments=1")
            self._flush(pattern)
            self.call("POST", f"/{pattern}/_refresh")
            return not waits or all(map(_is_merged, self._segments(pattern)))

        wait_until(merged, 120)
        return float(sum(one["size_in_bytes"] for copy in self._segments(pattern) for one in copy))

    def _segments(self, pattern: str) -> list[list[dict[str, Any]]]:
        """The segments of each primary shard of the indices that match."""
        indices = self.call("GET", f"/{pattern}/_segments")["indices"]
        copies = [copy for index in indices.values() for copies in index["shards"].values() for copy in copies]
        return [list(copy["segments"].values()) for copy in copies if copy["routing"]["primary"]]

    def _flush(self, pattern: str) -> None:
        self.call("POST", f"/{pattern}/_flush?force=true&wait_if_ongoing=true")


def _has_let_go(copy: dict[str, Any]) -> bool:
    """Whether a copy of a shard needs none of the operations that it has."""
    leases = copy["retention_leases"]["leases"]
    return all(lease["retaining_seq_no"] > copy["seq_no"]["max_seq_no"] for lease in leases)


def _is_merged(segments: list[dict[str, Any]]) -> bool:
    """Whether a shard is one segment of what is there, or empty."""
    return len(segments) < 2 and not any(one["deleted_docs"] for one in segments)


@contextlib.contextmanager
def running(folder: Path, *, replica: bool = False) -> Iterator[Engines]:
    """Both engines. If they are started here, their data are in the folder. At the end, what was stored is deleted.

    replica: there are two nodes of Elasticsearch, which are always started here.
    """
    name = f"bench-{uuid4().hex[:12]}"
    with (
        _elasticsearch(folder / "elasticsearch", replica) as nodes,
        _started(mongodb.node(folder / "mongodb")) as documents,
    ):
        try:
            yield Engines(nodes, documents.url, name)
        finally:
            elasticsearch.remove(nodes[0].url, name)
            mongodb.drop(documents.url, name)


@contextlib.contextmanager
def _elasticsearch(folder: Path, replica: bool) -> Iterator[Sequence[Node]]:
    if not replica:
        with _started(elasticsearch.node(folder, _HEAP)) as node:
            yield [node]
        return
    both = cluster(folder, 2, heap=_HEAP, quick=False)
    try:
        both.start()
        yield [*both.nodes.values()]
    finally:
        both.remove()


@contextlib.contextmanager
def _started(node: Node) -> Iterator[Node]:
    try:
        node.start()
        yield node
    finally:
        node.remove()
