"""The engines that the servers use: a node of Elasticsearch, which is also asked directly, and one of MongoDB."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.processes import cpu_seconds, thread_seconds
from tests.engines import elasticsearch, mongodb
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

    node: Node
    documents_url: str
    name: str

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of a server that uses these engines."""
        return {
            "EVENTS": elasticsearch.address(self.node.url, self.name),
            "DOCUMENTS": mongodb.address(self.documents_url, self.name),
            "MIGRATE_AT_START": "true",
        }

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to Elasticsearch."""
        return elasticsearch.call(self.node.url, method, path, body)

    def direct(self) -> Direct:
        """A new connection to Elasticsearch itself."""
        return Direct(HTTPConnection(self.node.url.rpartition("/")[2], timeout=300))

    def cpu(self) -> float:
        """CPU seconds that Elasticsearch has used; if it was not started here, as it told a second ago."""
        if isinstance(self.node, ProcessNode) and self.node.process is not None:
            return cpu_seconds(self.node.process.pid)
        nodes = self.call("GET", "/_nodes/stats/process?filter_path=nodes.*.process.cpu.total_in_millis")["nodes"]
        return float(sum(node["process"]["cpu"]["total_in_millis"] for node in nodes.values())) / 1000

    def compiling(self) -> float:
        """CPU seconds in which Elasticsearch has compiled what it runs; 0 if it was not started here."""
        if isinstance(self.node, ProcessNode) and self.node.process is not None:
            return thread_seconds(self.node.process.pid, "CompilerThre")
        return 0.0

    def settle(self) -> None:
        """Wait until Elasticsearch merges nothing in the background."""
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
def running(folder: Path) -> Iterator[Engines]:
    """Both engines. If they are started here, their data are in the folder. At the end, what was stored is deleted."""
    name = f"bench-{uuid4().hex[:12]}"
    with (
        _started(elasticsearch.node(folder / "elasticsearch", _HEAP)) as events,
        _started(mongodb.node(folder / "mongodb")) as documents,
    ):
        try:
            yield Engines(events, documents.url, name)
        finally:
            elasticsearch.remove(events.url, name)
            mongodb.drop(documents.url, name)


@contextlib.contextmanager
def _started(node: Node) -> Iterator[Node]:
    try:
        node.start()
        yield node
    finally:
        node.remove()
