"""A server in a process of its own: the first start, stopping, being killed, and two on one folder."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyhocon import ConfigFactory

from apiserver import cli
from apiserver.http.bounds import ConnectionBounds
from apiserver.server import serve as serving
from apiserver.server.bounds import Bounds
from apiserver.server.serve import CannotServe, announce, copies, invite, serve_on, take_port
from apiserver.services.access.credentials import Credential
from apiserver.settings.settings import Settings
from tests.certificates import new_pair
from tests.harness import (
    ADMIN_KEY,
    ANYBODY,
    PATIENCE,
    Api,
    Served,
    ended,
    free_ports,
    listens,
    served,
    told_to_stop_under_way,
    wait_until,
)


def test_the_first_start_tells_how_to_connect(tmp_path: Path) -> None:
    with served(tmp_path / "data", admin_key="", admin_secret="") as server:
        kept = tmp_path / "data" / "clearml.conf"
        conf = ConfigFactory.parse_string(kept.read_text())["api"]
        assert kept.stat().st_mode & 0o777 == 0o600
        assert (conf["api_server"], conf["files_server"]) == (server.api_url, server.files_url)
        key_pair = (conf["credentials"]["access_key"], conf["credentials"]["secret_key"])
        said = server.log.read_text()
        assert f"It is kept in {kept}" in said
        assert "`apiserver link` prints a link" in said
        assert key_pair[0] not in server.log.read_text()
        assert key_pair[1] not in server.log.read_text()
        assert httpx.get(f"{server.api_url}/auth.login", auth=key_pair).status_code == 200
        assert httpx.get(f"{server.files_url}/nothing", auth=key_pair).status_code == 404
        server.stop()
        server.start()
        assert httpx.get(f"{server.api_url}/auth.login", auth=key_pair).status_code == 200


def test_nobody_else_reads_what_runs_report_also_in_a_folder_that_is_open(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    with served(tmp_path / "data"):
        files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
        assert files
        assert {path.stat().st_mode & 0o077 for path in files} == {0}


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_the_secret_is_shown_to_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, kept: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    if not kept:
        (tmp_path / "clearml.conf").mkdir()
    announce(Settings(data=tmp_path), Credential("THEKEY", "the-secret"))
    said = capsys.readouterr().out
    assert f"{'is' if kept else 'could not be'} kept in {tmp_path}" in said
    assert ("export CLEARML_API_SECRET_KEY=the-secret" in said) is terminal
    assert ("the-secret" in said) is terminal


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("terminal", "built", "settings", "invited"),
    [
        (True, True, {}, True),
        (False, True, {}, False),
        (True, False, {}, False),
        (True, True, {"viewer": False}, False),
        (True, True, {"web_url": "http://ui.example.org"}, False),
    ],
)
async def test_a_link_to_sign_in_is_shown_to_a_terminal_if_there_are_pages(
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    terminal: bool,
    built: bool,
    settings: dict[str, Any],
    invited: bool,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setattr(serving, "is_built", lambda: built)
    await invite(Settings(**settings), api.backend.documents)
    said = capsys.readouterr().out
    assert ("http://127.0.0.1:8008/sign-in#link=" in said) is invited


def test_stopping_is_clean_and_frees_the_ports(server: Served) -> None:
    kept_open = httpx.Client(base_url=server.api_url)
    assert kept_open.get("/health").status_code == 200
    assert server.stop() == 0
    assert re.search(r"stopped because of SIGTERM, in \d+\.\d seconds$", server.log.read_text())
    assert "under way" not in server.log.read_text()
    kept_open.close()
    for port in (server.port, server.files_port):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))


def test_idle_connections_are_left_to_proxies_to_close() -> None:
    assert ConnectionBounds().idle_seconds > 60  # of nginx, which sends no POST twice


def test_an_interrupt_is_clean_too(server: Served) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(120) == 0
    assert "stopped because of SIGINT" in server.log.read_text()


def test_a_request_under_way_is_answered_before_the_server_ends(server: Served) -> None:
    assert told_to_stop_under_way(server) == 200
    assert server.process is not None
    assert server.process.wait(120) == 0
    assert "stopping because of SIGTERM: requests are still under way: 1" in server.log.read_text()


def test_what_was_acknowledged_survives_a_kill(server: Served) -> None:
    project = server.call("projects.create", {"name": "kept", "description": ""})["id"]
    with server.client() as client:
        assert client.put("/files/x", content=b"kept").status_code == 200
    assert server.kill() == -signal.SIGKILL
    server.start()
    assert server.call("projects.get_by_id", {"project": project})["project"]["name"] == "kept"
    with server.client() as client:
        assert client.get("/files/x").content == b"kept"


def serve(data: Path, port: int, files_port: int) -> tuple[int, str]:
    """Exit code and last line of a server that cannot start."""
    code, said = ended("serve", "--data", data, "--port", port, "--files-port", files_port)
    assert "Traceback" not in said
    return code, said.splitlines()[-1]


def test_a_second_server_on_the_folder_is_refused(server: Served) -> None:
    code, message = serve(server.data, *free_ports(2))
    assert code == 1
    assert message.startswith("apiserver: ")
    assert str(server.data) in message
    server.call("debug.ping")


def test_ports_in_use_are_named_and_no_data_is_touched(server: Served, tmp_path: Path) -> None:
    free = free_ports(1)[0]
    for port, files_port in ((server.port, free), (free, server.files_port)):
        code, message = serve(tmp_path / "other", port, files_port)
        assert code == 1
        taken = port if port != free else files_port
        assert message == f"apiserver: cannot listen on 127.0.0.1 port {taken}: another program listens there"
    assert not (tmp_path / "other").exists()


def health(server: Served) -> int:
    """The exit code of the command that asks whether the server is well."""
    return ended("health", variables=server.environment)[0]


def test_a_server_speaks_tls_on_both_ports_and_takes_a_new_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair, new = new_pair(tmp_path, days=10), new_pair(tmp_path, "new", days=20)
    at_once = Bounds(connections=ConnectionBounds(certificate_seconds=0.2))
    with served(tmp_path / "data", bounds=at_once, admin_key="", admin_secret="", **pair.settings) as server:
        conf = ConfigFactory.parse_string((tmp_path / "data" / "clearml.conf").read_text())["api"]
        assert (conf["api_server"], conf["files_server"]) == (server.api_url, server.files_url)
        key_pair = (conf["credentials"]["access_key"], conf["credentials"]["secret_key"])

        def told(name: str) -> float:
            text = httpx.get(f"{server.api_url}/metrics", auth=key_pair, verify=ANYBODY).text
            return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])

        trusting = ssl.create_default_context(cafile=pair.certificate)
        for url in (server.api_url, server.files_url):
            assert httpx.put(f"{url}/files/x", content=b"1", auth=key_pair, verify=trusting).status_code == 200
        assert health(server) == 0
        assert cli.main(["health", "--port", str(server.port)]) == 1  # without TLS: what the server answers is told
        asked = f"http://127.0.0.1:{server.port}"
        why = "it answers 400: This port speaks TLS: use an address with https://"
        assert f"apiserver: the server at {asked} is not well: {why}" in capsys.readouterr().err
        assert cli.main(["link", "--data", str(server.data)]) == 0
        ends = told("apiserver_tls_certificate_end_seconds")
        os.replace(new.certificate, pair.certificate)
        wait_until(lambda: told("apiserver_tls_certificate_outdated") == 1)
        assert told("apiserver_tls_certificate_end_seconds") == ends
        os.replace(new.key, pair.key)
        wait_until(lambda: told("apiserver_tls_certificate_outdated") == 0)
        later = told("apiserver_tls_certificate_end_seconds") - ends  # the second was made some seconds after the first
        assert 10 * 86400 <= later < 11 * 86400
        assert server.stop() == 0
        assert health(server) == 1


def test_a_certificate_that_cannot_be_used_is_named_and_no_data_is_touched(tmp_path: Path) -> None:
    pair = new_pair(tmp_path)
    pair.key.unlink()
    with pytest.raises(CannotServe, match=r"tls_key: cannot read .*a\.key: No such file"):
        serve_on(Settings(data=tmp_path / "data", **pair.settings), [])
    assert not (tmp_path / "data").exists()


def test_without_a_port_of_their_own_files_are_below_the_api(tmp_path: Path) -> None:
    with served(tmp_path / "data", files_port=0) as server, server.client() as client:
        assert client.put("/files/x", content=b"1").status_code == 200
        assert client.get("/files/x").content == b"1"


@pytest.mark.parametrize("path", ["/health", "/health/", "/v2.34/debug.ping", "/v1/jobs/x"])
def test_a_request_that_names_no_host_is_answered(server: Served, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        status = int(client.makefile("rb").readline().split()[1])
    assert status < 500


@pytest.fixture
def port() -> Iterator[socket.socket]:
    [number] = free_ports(1)
    with take_port("127.0.0.1", number) as taken:
        yield taken


def test_a_port_never_blocks_so_that_a_worker_that_starts_holds_no_other(port: socket.socket) -> None:
    assert not os.get_blocking(port.fileno())
    with ExitStack() as doors:
        for door in copies(port)[1:]:
            assert not os.get_blocking(doors.enter_context(door).fileno())


class Told(Exception):
    """The server has said that it listens."""


def test_who_is_told_that_the_server_listens_can_connect(
    tmp_path: Path, port: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*_: object) -> None:
        assert listens(port.getsockname()[1])
        raise Told

    monkeypatch.setattr(serving, "announce", told)
    with pytest.raises(Told):
        serve_on(Settings(data=tmp_path / "data", reserve_bytes=0), [port])


def test_a_port_that_two_take_at_once_is_served_by_one(tmp_path: Path, port: socket.socket) -> None:
    number = port.getsockname()[1]
    with take_port("127.0.0.1", number) as other:
        other.listen()
        with pytest.raises(CannotServe, match=f"cannot listen on 127.0.0.1 port {number}: another program listens"):
            serve_on(Settings(data=tmp_path / "data", reserve_bytes=0), [port])


def test_no_secret_is_logged(tmp_path: Path) -> None:
    with served(tmp_path / "data", log_level="debug", log_format="json") as server, server.client() as client:
        token = client.get("/auth.login").json()["data"]["token"]
        client.get("/debug.ping", params={"secret": "in-the-query"}, headers={"authorization": f"Bearer {token}"})
        client.put("/files/x", content=b"1")
        client.get("/auth.login", auth=(ADMIN_KEY, "a-wrong-secret"))
        server.stop()
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]
        assert any(line.get("endpoint") == "auth.login" and line.get("status") == 200 for line in lines)
        for secret in (token, server.secret, "in-the-query", "a-wrong-secret"):
            assert secret not in server.log.read_text()
