"""docker/nginx.conf before two real servers, by a real nginx where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.deployment.compose import ROOT, services
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Served, free_ports, served, wait_until

CONFIGURATION = (ROOT / "docker" / "nginx.conf").read_text()
SERVERS = ("apiserver-1", "apiserver-2")


def test_it_names_the_servers_and_ports_of_the_compose_file() -> None:
    named = re.findall(r"^ +server (\S+):(\d+) ", CONFIGURATION, re.MULTILINE)
    assert sorted(named) == [(server, port) for server in SERVERS for port in ("8008", "8081")]
    assert set(SERVERS) == services()["gateway"]["depends_on"].keys()
    published = [port.rpartition(":")[2] for port in services()["gateway"]["ports"]]
    assert re.findall(r"listen (\d+);", CONFIGURATION) == published


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[Served]]:
    with ExitStack() as running:
        yield [running.enter_context(served(tmp_path / name)) for name in SERVERS]


@pytest.fixture
def gateway(tmp_path: Path, pair: list[Served]) -> Iterator[tuple[str, str]]:
    """The URLs of API and files behind nginx."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("no nginx")
    api, files = free_ports(2)
    # Its own files are below /tmp in the container.
    text = CONFIGURATION.replace("/tmp/", f"{tmp_path}/")
    text = text.replace("listen 8008", f"listen 127.0.0.1:{api}").replace("listen 8081", f"listen 127.0.0.1:{files}")
    for name, server in zip(SERVERS, pair, strict=True):
        text = text.replace(f"{name}:8008", f"127.0.0.1:{server.port}")
        text = text.replace(f"{name}:8081", f"127.0.0.1:{server.files_port}")
    (tmp_path / "nginx.conf").write_text(text)
    log = tmp_path / "nginx.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [nginx, "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-e", "stderr", "-g", "daemon off;"],
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: process.poll() is not None or _answers(f"http://127.0.0.1:{api}/health"))
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{api}", f"http://127.0.0.1:{files}"
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def test_two_servers_are_one(gateway: tuple[str, str], pair: list[Served]) -> None:
    api, files = gateway
    admin = (ADMIN_KEY, ADMIN_SECRET)
    with httpx.Client(auth=admin, timeout=30) as client:
        for _ in range(4):
            assert client.post(f"{api}/debug.ping", json={}).status_code == 200
        content = os.urandom(3 * 2**20)
        assert client.post(files, files={"/a folder/a file.bin": content}).status_code == 200
        stored = [path for server in pair for path in (server.data / "files").rglob("a file.bin")]
        assert [path.stat().st_size for path in stored] == [len(content)]
        pair[0].kill()
        for _ in range(4):
            assert client.post(f"{api}/debug.ping", json={}).status_code == 200
