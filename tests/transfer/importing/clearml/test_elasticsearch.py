"""The events of a server in an Elasticsearch of either version, by pages of any size."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson
import pytest

from apiserver.events.model import EventType
from apiserver.transfer.importing.clearml.elasticsearch import ElasticsearchEvents, Tally
from apiserver.transfer.importing.clearml.sources import elasticsearch_of
from apiserver.transfer.importing.report import ImportFailed
from tests.transfer.importing.clearml.clearml_server import COMPANY, ClearmlServer, clearml_server, event, logs, scalar

pytestmark = pytest.mark.anyio

LOGS = f"events-log-{COMPANY}"
SCALARS = f"events-training_stats_scalar-{COMPANY}"


@pytest.fixture
def source(alone_on_engines: None, mongodb_url: str, elasticsearch_url: str) -> Iterator[ClearmlServer]:
    with clearml_server(mongodb_url, elasticsearch_url) as server:
        yield server


@pytest.fixture
def version_7(elasticsearch_url: str) -> Iterator[str]:
    """The same node, answering as one of version 7 does: without a product's name, and to plain JSON only."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            if "compatible-with" in f"{self.headers['Accept']}{self.headers['Content-Type']}":
                return self.send_error(406)
            body = self.rfile.read(int(self.headers["Content-Length"] or 0)) or None
            asked = Request(f"{elasticsearch_url}{self.path}", body, {"Content-Type": "application/json"})
            asked.method = self.command
            try:
                with urlopen(asked, timeout=30) as response:
                    status, found = response.status, response.read()
            except HTTPError as error:
                status, found = error.code, error.read()
                error.close()
            if self.path == "/":
                found = b'{"version":{"number":"7.17.18"},"tagline":"You Know, for Search"}'
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("version", [7, 8])
async def test_every_event_comes_once_and_lines_in_order(version: int, source: ClearmlServer, version_7: str) -> None:
    source.index(*logs(range(40), task="a"), *logs(range(3), task="b"), *logs(range(2), task="c"))
    address = elasticsearch_of(version_7 if version == 7 else source.elasticsearch)
    events = ElasticsearchEvents(address, owners=2, events=7)
    try:
        await events.open()
        assert await events.indices(EventType.LOG) == [LOGS]
        assert await events.indices(EventType.PLOT) == []
        assert await events.total(LOGS) == 45
        tallies = [tally async for page in events.tallies(LOGS) for tally in page]
        assert [(tally.id, tally.events) for tally in tallies] == [("a", 40), ("b", 3), ("c", 2)]
        for ids, count, of_first in ((["a"], 40, 40), (["b", "c"], 5, 3), (["b"], 3, 3)):
            pages = [list(page) async for page in events.pages(LOGS, EventType.LOG, ids, count)]
            assert all(len(page) <= 7 for page in pages)
            found = [orjson.loads(one.line) for page in pages for one in page]
            first = [line["msg"] for line in found if line["task"] == ids[0]]
            assert first == [f"line {n}" for n in range(of_first)]
            assert len(found) == count
    finally:
        await events.close()


async def test_an_index_without_a_template_is_read_too(source: ClearmlServer) -> None:
    source.index(event("training_stats_vector", 1, task="a-b", value=[1.5]), scalar(1, 1.0, task="a-b"))
    events = ElasticsearchEvents(elasticsearch_of(source.elasticsearch))
    try:
        (index,) = await events.indices(EventType.VECTOR)
        ((tally,),) = [page async for page in events.tallies(index)]
        assert (tally.id, tally.events) == ("a-b", 1)
        (page,) = [page async for page in events.pages(index, EventType.VECTOR, ["a-b"], 1)]
        assert orjson.loads(page[0].line)["value"] == [1.5]
    finally:
        await events.close()


async def test_what_was_written_when(source: ClearmlServer) -> None:
    source.index(
        scalar(1, 1.0) | {"@timestamp": "1970-01-01T00:00:05"}, scalar(2, 1.0) | {"@timestamp": "1970-01-01T00:00:04"}
    )
    events = ElasticsearchEvents(elasticsearch_of(source.elasticsearch))
    try:
        assert [page async for page in events.tallies(SCALARS)] == [[Tally("task-one", 2, 5000)]]
    finally:
        await events.close()


@pytest.mark.parametrize(
    ("said", "hosts", "user"),
    [
        ("http://h:9200", ("http://h:9200",), ""),
        ("https://u:p@h", ("https://h:9200",), "u"),
        ("elasticsearch://a,b?tls=true", ("https://a:9200", "https://b:9200"), ""),
    ],
)
def test_addresses(said: str, hosts: tuple[str, ...], user: str) -> None:
    found = elasticsearch_of(said)
    assert (found.hosts, found.user) == (hosts, user)


async def test_what_answers_nothing_is_said() -> None:
    events = ElasticsearchEvents(elasticsearch_of("http://127.0.0.1:1"))
    try:
        with pytest.raises(ImportFailed, match="Elasticsearch: "):
            await events.open()
    finally:
        await events.close()
