"""Traces: which spans a collector gets, what is in them, and what a server without them spends."""

from __future__ import annotations

import json
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
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from apiserver import traces
from apiserver.settings import Settings, SettingsError
from tests.harness import ADMIN_KEY, ADMIN_SECRET, served

SECRET = "what-nobody-may-see"


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


def test_a_collector_gets_a_span_of_each_request_and_of_its_calls_of_stores(tmp_path: Path) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
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
            headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
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
    assert batch.trace_id.hex() == trace
    calls = {span.name for span in spans if span.parent_span_id == batch.span_id}
    assert "events add" in calls
    assert "PUT files" in requests
    assert any(name.startswith("GET /data/tasks/{") for name in requests)
    assert attributes(requests["GET unknown"])["http.response.status_code"] == 400
    everything = b"".join(body for _, body in bodies)
    for text in (SECRET, task, ADMIN_KEY, ADMIN_SECRET):
        assert text.encode() not in everything


def test_a_collector_that_does_not_answer_costs_no_request(tmp_path: Path) -> None:
    with served(tmp_path / "data", traces_to="http://127.0.0.1:9/v1/traces") as server:
        assert server.call("debug.ping")


def test_without_the_setting_nothing_is_imported() -> None:
    made = "from apiserver.app import create_app; from apiserver.settings import Settings; import sys, tempfile\n"
    made += "from pathlib import Path\n"
    made += "create_app(Settings(data=Path(tempfile.mkdtemp())))\n"
    made += "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    assert subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_without_the_packages_the_server_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"events-apiserver\[traces\]"):
        traces.Traces(Settings(traces_to="http://127.0.0.1:4318"))
