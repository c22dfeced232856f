"""docker/nginx.conf before servers of a test, by a real nginx where there is one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from tests.deployment.compose import ROOT
from tests.harness import Served, free_ports, wait_until

CONFIGURATION = (ROOT / "docker" / "nginx.conf").read_text()
#: The servers that it names.
SERVERS = ("apiserver-1", "apiserver-2")


@contextlib.contextmanager
def gateway(folder: Path, servers: Sequence[Served]) -> Iterator[tuple[int, int]]:
    """The ports of API and files behind nginx, whose own files are in `folder`; the test is skipped without nginx."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("no nginx")
    api, files = free_ports(2)
    # Its own files are below /tmp in the container.
    text = CONFIGURATION.replace("/tmp/", f"{folder}/")
    text = text.replace("listen 8008", f"listen 127.0.0.1:{api}").replace("listen 8081", f"listen 127.0.0.1:{files}")
    for name, server in zip(SERVERS, servers, strict=True):
        text = text.replace(f"{name}:8008", f"127.0.0.1:{server.port}")
        text = text.replace(f"{name}:8081", f"127.0.0.1:{server.files_port}")
    (folder / "nginx.conf").write_text(text)
    log = folder / "nginx.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [nginx, "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr", "-g", "daemon off;"],
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: process.poll() is not None or _answers(f"http://127.0.0.1:{api}/health"))
        assert process.poll() is None, log.read_text()
        yield api, files
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5, verify=False).status_code == 200
    except httpx.TransportError:
        return False
