"""The code of the quick start and of the tutorial runs as it is written, with the real SDK."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from docs.site.pages import DOCS, ROOT
from tests.clients.sdk import sdk_of
from tests.harness import Served

_BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]*)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
_NEXT = "--- the next block ---"
#: With it, a run does not wait ten seconds in the end, as `operations/troubleshooting.md` says.
_QUICK_TO_END = "sdk { development { report_use_subprocess: false } }\n"


class Block(NamedTuple):
    """A block of code on a page."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The blocks of code on a page, in their order."""
    return [Block(*found.groups(default="")) for found in _BLOCK.finditer(page.read_text("utf-8"))]


def test_the_tutorial_runs(server: Served, tmp_path: Path) -> None:
    """Scripts are saved under their titles; shell blocks run one after another in one shell, and print what follows."""
    page = blocks(DOCS / "tutorial.md")
    for block in page:
        if block.language == "python":
            assert block.title
            (tmp_path / block.title).write_text(block.text, "utf-8")
    shell = [block.text for block in page if block.language == "sh"]
    printed = iter(_run(server, tmp_path, shell, _QUICK_TO_END))
    output = ""
    for block in page[1:]:
        if block.language == "sh":
            output = next(printed)
        elif block.language == "text":
            wanted = ".*".join(map(re.escape, block.text.strip().split("…")))
            assert re.search(wanted.replace("\\\n", "\n *"), output, re.DOTALL), output
    with server.client() as client:
        assert client.post("/projects.get_all", json={"name": "tutorial"}).json()["data"]["projects"] == []


def test_the_quick_start_runs(server: Served, tmp_path: Path) -> None:
    page = blocks(DOCS / "quick-start.md")
    script = next(block.text for block in page if block.language == "python")
    assert script in (ROOT / "README.md").read_text("utf-8")
    call = next(block.text for block in page if block.text.startswith("curl"))
    (tmp_path / "first.py").write_text(script, "utf-8")
    commands = ["python first.py", call.replace("http://127.0.0.1:8008", server.api_url)]
    printed = _run(server, tmp_path, commands)
    assert "\n0.001 {'value': 42}\n" in printed[0]
    assert '"name":"first run"' in printed[1]


def _run(server: Served, folder: Path, commands: list[str], more: str = "") -> list[str]:
    """What each of some shell commands prints that follow on each other, in a folder with a `clearml.conf`.

    `more` is added to the configuration that the server makes.
    """
    python = sdk_of(server, folder).python
    with open(folder / "clearml.conf", "a") as configuration:
        configuration.write(more)
    environment = {
        **{"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        **{"KEY": server.key, "SECRET": server.secret, "S": server.api_url, "PYTHONUNBUFFERED": "1"},
        "CLEARML_CACHE_DIR": str(folder / "cache"),
    }
    script = f"\necho '\n{_NEXT}'\n".join(commands)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout.split(_NEXT)
