"""The engines that the servers use: a node of Elasticsearch, which is also asked directly, and one of MongoDB."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.processes import cpu_seconds
from tests.engines import elasticsearch, mongodb
from tests.engines.nodes import Node, ProcessNode
from tests.harness import wait_until

_HEAP = "1g"


@dataclass(frozen=True, slots=True)
class Direct:
    """A connection to Elasticsearch itself, which is kept and costs little."""

    connection: HTTPConnection

    def bulk(self, body: bytes) -> None:
        """Send a bulk. RuntimeError unless all its documents are stored."""
        answer = self.post("/_bulk?filter_path=errors", body)
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

    def call(self, method: str, path: str) -> Any:
        """Send a request to Elasticsearch."""
        return elasticsearch.call(self.node.url, method, path)

    def direct(self) -> Direct:
        """A new connection to Elasticsearch itself."""
        return Direct(HTTPConnection(self.node.url.rpartition("/")[2], timeout=300))

    def cpu(self) -> float:
        """CPU seconds that Elasticsearch has used; 0 if it was not started here."""
        if isinstance(self.node, ProcessNode) and self.node.process is not None:
            return cpu_seconds(self.node.process.pid)
        return 0.0

    def settle(self) -> None:
        """Wait until Elasticsearch merges nothing in the background."""
        wait_until(
            lambda: self.call("GET", f"/{self.name}-*/_stats/merge")["_all"]["total"]["merges"]["current"] == 0, 300
        )

    def forget_answers(self) -> None:
        """Clear Elasticsearch's cache of answers."""
        self.call("POST", f"/{self.name}-*/_cache/clear")

    def flush(self) -> None:
        """Write everything to disk. Until then, merged segments keep sources that bring replicas up to date."""
        self.call("POST", f"/{self.name}-*/_flush?force=true&wait_if_ongoing=true")

    def merged_bytes(self, kind: str) -> float:
        """Bytes a document in the indices of a kind, after they are merged into one segment."""
        index = f"/{self.name}-{kind}-*"
        self.call("POST", f"{index}/_forcemerge?max_num_segments=1")
        self.flush()
        self.call("POST", f"{index}/_refresh")
        total = self.call("GET", f"{index}/_stats/store,docs")["_all"]["primaries"]
        return float(total["store"]["size_in_bytes"] / total["docs"]["count"])


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
