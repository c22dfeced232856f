"""`apiserver health`: which server it asks, and what it says of one that is not well."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from apiserver.cli import main
from tests.harness import Served, free_ports


def test_it_asks_the_server_that_started_last_on_the_folder(
    server: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, noted = ["health", "--data", str(server.data)], server.data / "address"
    assert main(command) == 0
    said = capsys.readouterr()
    assert (json.loads(said.out)["status"], said.err) == ("ok", f"asking {server.api_url}\n")
    noted.write_text("http://127.0.0.1:1")
    assert main([*command, "--port", str(server.port)]) == 0
    monkeypatch.setenv("APISERVER_PORT", str(server.port))
    assert main(command) == 0


def test_it_names_the_server_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [port] = free_ports(1)
    typo, address = tmp_path / "typo", f"http://127.0.0.1:{port}"
    assert main(["health", "--data", str(typo), "--port", str(port)]) == 1
    asked, said = capsys.readouterr().err.splitlines()
    assert asked == f"asking {address}"
    assert said.startswith(f"apiserver: no server answers at {address}: Connection refused. ")
    assert said.endswith(f", and there is no data folder '{typo}': name it by --data")


class _Unwell(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"status": "unavailable", "stores": {"documents": "ok", "events": "down"}}).encode()
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def unwell() -> Iterator[int]:
    """The port of a server whose store of events is down."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Unwell) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served.server_port
        served.shutdown()
        thread.join()


def test_it_says_which_store_is_down(unwell: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--port", str(unwell)]) == 1
    why = "it answers 503: the store of events is down"
    assert f"apiserver: the server at http://127.0.0.1:{unwell} is not well: {why}\n" in capsys.readouterr().err
