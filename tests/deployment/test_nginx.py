"""docker/nginx.conf before two real servers, by a real nginx where there is one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deployment.compose import services
from tests.deployment.gateway import CONFIGURATION, SERVERS, gateway
from tests.harness import ADMIN_KEY, ADMIN_SECRET, CHEAP_PASSWORDS, PATIENCE, Served, served


def test_it_names_the_servers_and_ports_of_the_compose_file() -> None:
    named = re.findall(r"^ +server (\S+):(\d+) ", CONFIGURATION, re.MULTILINE)
    assert sorted(named) == [(server, port) for server in SERVERS for port in ("8008", "8081")]
    assert set(SERVERS) == services()["gateway"]["depends_on"].keys()
    published = [port.rpartition(":")[2] for port in services()["gateway"]["ports"]]
    assert re.findall(r"listen (\d+);", CONFIGURATION) == published


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[Served]]:
    with ExitStack() as running:
        options: dict[str, Any] = {"trusted_proxies": "127.0.0.1", "bounds": CHEAP_PASSWORDS}
        yield [running.enter_context(served(tmp_path / name, **options)) for name in SERVERS]


def test_two_servers_are_one_and_tell_clients_apart(tmp_path: Path, pair: list[Served]) -> None:
    admin = (ADMIN_KEY, ADMIN_SECRET)
    with gateway(tmp_path, pair) as ports, httpx.Client(auth=admin, timeout=PATIENCE, verify=False) as client:
        api, files = (f"http://127.0.0.1:{port}" for port in ports)
        for _ in range(4):
            assert client.post(f"{api}/debug.ping", json={}).status_code == 200
        assert {guess(api, "127.0.0.2", f"192.0.2.{number}") for number in range(12)} == {401, 429}
        assert {guess(api, f"127.0.0.{number}", "192.0.2.1") for number in range(3, 9)} == {401}
        content = os.urandom(3 * 2**20)
        assert client.post(files, files={"/a folder/a file.bin": content}).status_code == 200
        stored = [path for server in pair for path in (server.data / "files").rglob("a file.bin")]
        assert [path.stat().st_size for path in stored] == [len(content)]
        pair[0].kill()
        for _ in range(4):
            assert client.post(f"{api}/debug.ping", json={}).status_code == 200


def guess(api: str, address: str, claimed: str) -> int:
    """Somebody at an address tries to log in, and claims to be at another."""
    headers = {"X-Forwarded-For": claimed}
    transport = httpx.HTTPTransport(local_address=address, verify=False)
    with httpx.Client(transport=transport, headers=headers, timeout=PATIENCE) as client:
        return client.get(f"{api}/auth.login", auth=("alice", "wrong-password")).status_code
