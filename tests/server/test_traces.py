"""Traces: which spans a collector gets, what is in them, and what a server without them spends."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apiserver.server import traces
from apiserver.settings.settings import Settings
from tests.harness import ADMIN_KEY, ADMIN_SECRET, PATIENCE, served

SECRET = "what-nobody-may-see"
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Collector(ThreadingHTTPServer):
    """Takes traces. `bodies` are what it got, by path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.bodies: list[tuple[str, bytes]] = []

    @property
    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for _, body in self.bodies]
        return [span for one in requests for of in one.resource_spans for some in of.scope_spans for span in some.spans]


class _Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        self.server.bodies.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def collector() -> Iterator[Collector]:
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


def attributes(span: Span) -> dict[str, str | int]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


@pytest.mark.test
def test_a_collector_gets_a_span_of_each_request_and_of_its_calls_of_stores(tmp_path: Path) -> None:
    with collector() as taken:
        address = f"http://127.0.0.1:{taken.server_port}"
        with served(tmp_path / "data", traces_to=address) as server, server.client() as client:
            task = server.call("tasks.create", {"name": SECRET, "type": "training"})["id"]
            event = {
                "type": "training_stats_scalar",
                "task": task,
                "metric": SECRET,
                "variant": "v",
                "iter": 0,
                "value": 1,
            }
            headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
            client.post(f"/events.add_batch?q={SECRET}", content=json.dumps(event), headers=headers).raise_for_status()
            client.get(f"/data/tasks/{task}/scalars.csv").raise_for_status()
            client.put(f"/files/{SECRET}", content=b"x").raise_for_status()
            assert client.get(f"/{SECRET}").status_code == 400
            assert httpx.get(f"{server.api_url}/tasks.get_all", auth=("nobody", SECRET)).status_code == 401
            server.stop()  # it sends what is left
        bodies, spans = taken.bodies, taken.spans
    assert {path for path, _ in bodies} == {"/v1/traces"}
    requests = {span.name: span for span in spans if span.kind == Span.SPAN_KIND_SERVER}
    batch = requests["POST events.add_batch"]
    assert attributes(batch) == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "http.route": "events.add_batch",
        "apiserver.company": Settings().company,
    }
    assert batch.trace_id.hex() == TRACE
    calls = {span.name for span in spans if span.parent_span_id == batch.span_id}
    assert "events add" in calls  # of `EventStore` itself, and of a protocol that it unites:
    assert "events scalar_points" in {span.name for span in spans}
    assert "PUT files" in requests
    assert any(name.startswith("GET /data/tasks/{") for name in requests)
    assert attributes(requests["GET unknown"])["http.response.status_code"] == 400
    everything = b"".join(body for _, body in bodies)
    for text in (SECRET, task, ADMIN_KEY, ADMIN_SECRET):
        assert text.encode() not in everything


@pytest.mark.test
def test_a_collector_that_does_not_answer_costs_no_request(tmp_path: Path) -> None:
    with served(tmp_path / "data", traces_to="http://127.0.0.1:9/v1/traces") as server:
        assert server.call("debug.ping")


@pytest.mark.test
@pytest.mark.anyio
async def test_a_collector_that_takes_nothing_is_told_once_and_once_more_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    statuses = [401, 401, 200, 200, 400]

    def take(self: _Taking) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(statuses.pop(0))
        self.end_headers()

    monkeypatch.setattr(_Taking, "do_POST", take)
    with collector() as taken:
        address = f"http://127.0.0.1:{taken.server_port}"
        sending = traces.Traces(Settings(traces_to=address))
        while statuses:
            await request(sending, refusing)
            await asyncio.to_thread(sending._provider.force_flush)
        await sending.close()
    down, back, down_again = [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]
    assert down.startswith(f"traces_to: no collector takes spans at {address}/v1/traces: they are dropped (")
    assert "401" in down
    assert back == f"traces_to: the collector at {address}/v1/traces takes spans again"
    assert "400" in down_again


@pytest.mark.anyio
async def test_a_collector_that_is_not_there_is_told_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sending = traces.Traces(Settings(traces_to="http://127.0.0.1:9"), seconds=0.1)
    for _ in range(3):
        await request(sending, refusing)
        await asyncio.to_thread(sending._provider.force_flush)
    logging.getLogger("opentelemetry.sdk._shared_internal").warning("Queue full, dropping %s.", "Span")
    await sending.close()
    (line,) = [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]
    assert line.startswith("traces_to: no collector takes spans at http://127.0.0.1:9/v1/traces: they are dropped (")


@pytest.mark.test
def test_without_the_setting_nothing_is_imported() -> None:
    made = "from apiserver.server.app import create_app; from apiserver.settings.settings import Settings\n"
    made += "import sys, tempfile; from pathlib import Path\n"
    made += "create_app(Settings(data=Path(tempfile.mkdtemp())))\n"
    made += "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    assert subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=True).stdout == "[]\n"


async def request(sending: traces.Traces, app: ASGIApp, **headers: str) -> None:
    """Have the app answer a request with these headers, within a span."""
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": given}

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        pass

    await sending.around(app)(scope, receive, send)


async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 400})


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError(SECRET)


SAMPLED, NOT_SAMPLED = f"00-{TRACE}-b7ad6b7169203331-01", f"00-{TRACE}-b7ad6b7169203331-00"


@pytest.mark.test
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("sampler", "trusted", "parent", "is_sampled"),
    [
        ("parentbased_always_off", False, SAMPLED, False),
        ("parentbased_always_off", True, SAMPLED, True),
        ("parentbased_always_on", False, NOT_SAMPLED, True),
        ("parentbased_always_on", True, NOT_SAMPLED, False),
        ("always_off", False, SAMPLED, False),
    ],
)
async def test_clients_decide_what_is_sampled_only_if_they_are_trusted(
    monkeypatch: pytest.MonkeyPatch, sampler: str, trusted: bool, parent: str, is_sampled: bool
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    with collector() as taken:
        address = f"http://127.0.0.1:{taken.server_port}"
        sending = traces.Traces(Settings(traces_to=address, traces_trust_clients=trusted))
        await request(sending, refusing, traceparent=parent)
        await sending.close()
        assert [span.trace_id.hex() for span in taken.spans] == [TRACE] * is_sampled


@pytest.mark.anyio
async def test_clients_cannot_choose_ids_of_traces_that_are_always_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    with collector() as taken:
        sending = traces.Traces(Settings(traces_to=f"http://127.0.0.1:{taken.server_port}"))
        for _ in range(100):
            await request(sending, refusing, traceparent=f"00-{'0' * 31}1-b7ad6b7169203331-01")
        await sending.close()
        assert 0 < len(taken.spans) < 100


@pytest.mark.anyio
async def test_only_a_well_formed_traceparent_is_read(caplog: pytest.LogCaptureFixture) -> None:
    with collector() as taken:
        sending = traces.Traces(Settings(traces_to=f"http://127.0.0.1:{taken.server_port}"))
        await request(sending, refusing, traceparent=SAMPLED, tracestate="a=b," * 3000)
        await request(sending, refusing, traceparent=SAMPLED + "x" * 9000)
        await request(sending, refusing, traceparent="x" * 55)
        await sending.close()
        spans = taken.spans
    assert [span.trace_id.hex() == TRACE for span in spans] == [True, False, False]
    assert not any(span.trace_state for span in spans)
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]


@pytest.mark.anyio
async def test_a_refusal_is_no_error_and_a_fault_is_one_that_says_nothing() -> None:
    with collector() as taken:
        sending = traces.Traces(Settings(traces_to=f"http://127.0.0.1:{taken.server_port}"))
        await request(sending, refusing)
        with pytest.raises(ValueError, match=SECRET):
            await request(sending, failing)
        await sending.close()
        refused, failed = taken.spans
    assert (refused.status.code, failed.status.code) == (Status.STATUS_CODE_UNSET, Status.STATUS_CODE_ERROR)
    assert (failed.status.message, list(failed.events)) == ("", [])


@pytest.mark.anyio
async def test_a_collector_that_does_not_answer_does_not_keep_the_server_from_stopping(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def wait(self: _Taking) -> None:
        asked.set()
        answer.wait()
        self.send_response(200)
        self.end_headers()

    monkeypatch.setattr(_Taking, "do_POST", wait)
    with collector() as silent:
        sending = traces.Traces(Settings(traces_to=f"http://127.0.0.1:{silent.server_port}"), last_seconds=0)
        await request(sending, refusing)
        await sending.close()
        assert "the last traces are lost" in caplog.text
        assert sending._provider._atexit_handler is None  # it would wait instead
        assert asked.wait(PATIENCE)
        answer.set()
