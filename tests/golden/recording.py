"""What a server writes to Elasticsearch and MongoDB, recorded, and written again to other nodes.

Events cannot be dumped: an index has no `_source`, so nobody can read its documents as they were sent. So a proxy
before the node records all requests that change something, in their order, as lines of JSON. Written again in this
order, they give each document the same place (`_seq_no`) in its shard, to which chunks refer. Documents of MongoDB are
dumped as extended JSON.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from bson import json_util
from pymongo import MongoClient

#: What all names begin with in recordings.
PREFIX = "golden-prefix"
#: Requests with these in their path only read.
_READING = ("_search", "_msearch", "_mget", "_count", "_refresh", "_pit", "_health", "_field_caps")
#: Headers that are between a client and its peer.
_HOP = {"connection", "content-length", "transfer-encoding", "host", "accept-encoding", "content-encoding"}


@contextmanager
def recording(url: str) -> Iterator[tuple[str, list[str]]]:
    """The address of a proxy before a node, and the lines that it records."""
    lines: list[str] = []
    writing = threading.Lock()

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.command in ("GET", "HEAD") or any(word in self.path for word in _READING):
                self._pass_on(body)
                return
            with writing:  # so that the node sees them in the order of the lines
                status = self._pass_on(body)
                lines.append(json.dumps([self.command, self.path, status, body.decode()]))

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def _pass_on(self, body: bytes) -> int:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            headers["accept-encoding"] = "identity"
            answer = client.request(self.command, f"{url}{self.path}", content=body, headers=headers)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)
            return answer.status_code

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with httpx.Client(timeout=60) as client, ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        serving = threading.Thread(target=proxy.serve_forever, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}", lines
        finally:
            proxy.shutdown()


def write_again(url: str, prefix: str, lines: Iterable[str]) -> None:
    """Make recorded requests to a node, under another prefix. It answers each with the status that was recorded."""
    with httpx.Client(base_url=url, timeout=60) as client:
        for line in lines:
            method, path, status, body = json.loads(line.replace(PREFIX, prefix))
            kind = "application/x-ndjson" if "_bulk" in path else "application/json"
            headers = {"content-type": kind} if body else {}
            answer = client.request(method, path, content=body.encode(), headers=headers)
            assert answer.status_code == status, answer.text


def dumped(uri: str) -> str:
    """All collections of a database, with their indexes, as JSON."""
    with MongoClient[dict[str, Any]](uri) as client:
        database = client.get_default_database()
        found = {
            name: {"documents": [*database[name].find().sort("_id")], "indexes": [*database[name].list_indexes()]}
            for name in sorted(database.list_collection_names())
        }
    return json_util.dumps(found, ensure_ascii=False)


def load(uri: str, dump: str) -> None:
    """Make a database of a dump."""
    with MongoClient[dict[str, Any]](uri) as client:
        database = client.get_default_database()
        for name, found in json_util.loads(dump).items():
            indexes = [{key: index[key] for key in index if key not in ("v", "ns")} for index in found["indexes"]]
            others = [index for index in indexes if index["name"] != "_id_"]
            if others:
                database.command({"createIndexes": name, "indexes": others})
            if found["documents"]:
                database[name].insert_many(found["documents"])
