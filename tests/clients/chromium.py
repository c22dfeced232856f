"""A real Chromium without a window, by the HTTP protocol of chromedriver (W3C WebDriver).

To it, all host names that end in `.test` are this machine.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.harness import free_ports, wait_until

CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
#: Marks tests that need both.
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="there is no chromium with a chromedriver: apt-get install chromium chromium-driver",
)
_ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"),
    *("--disable-features=HttpsUpgrades", "--host-resolver-rules=MAP *.test 127.0.0.1"),
)


@dataclass(frozen=True, slots=True)
class Chromium:
    """One window."""

    client: httpx.Client
    session: str

    def show(self, url: str) -> None:
        """Go to a page, as by its address."""
        self._ask("url", url=url)

    def run(self, script: str, *values: Any) -> Any:
        """What `done(…)` is called with by a script on the page; it finds the values as `values`."""
        text = f"const values = [...arguments], done = values.pop();\n{script}"
        return self._ask("execute/async", script=text, args=list(values))

    def _ask(self, path: str, **body: Any) -> Any:
        answer = self.client.post(f"/session/{self.session}/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["value"]


@contextmanager
def chromium() -> Iterator[Chromium]:
    """A browser of its own, with no cookies."""
    assert CHROMIUM is not None
    assert DRIVER is not None
    [port] = free_ports(1)
    options = {"binary": CHROMIUM, "args": list(_ARGUMENTS)}
    wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
    with (
        subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=False) as client,
    ):
        try:
            wait_until(lambda: _answers(client))
            session = client.post("/session", json=wanted).json()["value"]["sessionId"]
            yield Chromium(client, session)
            client.delete(f"/session/{session}")
        finally:
            driver.terminate()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/status").status_code == 200
    except httpx.HTTPError:
        return False
