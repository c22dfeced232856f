"""What is said to those who run a server is so: messages, backups, health."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from docs.site.pages import DOCS, ROOT
from tests.docs.test_tutorial import blocks
from tests.harness import Served, served

OPERATIONS = DOCS / "operations"
_HEADING = re.compile(r"^### `(.*)`$", re.MULTILINE)
#: Where messages are put together of parts; what waits is named by whoever repeats it.
_TOGETHER = re.compile("…| waits: |: | [(]|[)]")
_ALERT = re.compile(r"^\| `(?!apiserver_)([^`]*)` \|", re.MULTILINE)


def messages() -> str:
    """All texts in the code, with a line feed between them; where a text is put together of parts, these are apart."""
    trees = (ast.parse(path.read_text("utf-8")) for path in (ROOT / "apiserver").rglob("*.py"))
    texts = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return "\n".join(re.sub(r"%[sdr]", "\n", text) for text in texts if isinstance(text, str))


def test_messages_are_those_of_the_server() -> None:
    known = messages()
    symptoms = _HEADING.findall((OPERATIONS / "troubleshooting.md").read_text("utf-8"))
    alerts = _ALERT.findall((OPERATIONS / "monitoring.md").read_text("utf-8"))
    assert len(symptoms) > 15
    assert len(alerts) > 5
    parts = {part for message in symptoms + alerts for part in _TOGETHER.split(message)}
    assert {part for part in parts if part not in known} == set()


def test_a_backup_is_restored_by_the_commands_of_the_page(server: Served, tmp_path: Path) -> None:
    """And another server goes on with what was restored."""
    task = server.call("tasks.create", {"name": "kept", "type": "training"})["id"]
    point = {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": "v", "iter": 1, "value": 5}
    server.call("events.add", point)
    token = server.call("auth.login")["token"]
    backup, restore, *_ = (block.text for block in blocks(OPERATIONS / "backup.md") if block.language == "sh")
    for given, place in (("/mnt/backups", "backups"), ("/srv/new", "new")):
        backup, restore = (text.replace(given, str(tmp_path / place)) for text in (backup, restore))
    [restore] = [line for line in restore.splitlines() if " restore " in line]  # the other one serves
    environment = {"DATA": str(server.data), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-euc", f"{backup}\n{restore}"], env=environment, check=True)
    with served(tmp_path / "new") as restored:
        curve = restored.call("events.scalar_metrics_iter_histogram", {"task": task})["m"]["v"]
        assert curve["y"] == [5]
        assert restored.call("auth.validate_token", {"token": token})["valid"]


def test_health_is_as_it_is_shown(server: Served) -> None:
    [shown] = [block.text for block in blocks(OPERATIONS / "monitoring.md") if block.language == "json"]
    with server.client() as client:
        assert client.get("/health", auth=None).json() == json.loads(shown)


def test_tests_that_pages_name_are_there() -> None:
    named = {name for page in DOCS.rglob("*.md") for name in re.findall(r"`(tests/[\w/.]+)`", page.read_text("utf-8"))}
    assert len(named) > 20
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_tests_that_promises_name_are_there() -> None:
    named = [
        pair for page in DOCS.rglob("*.md") for pair in re.findall(r"`(tests/[\w/.]+)::(\w+)`", page.read_text("utf-8"))
    ]
    assert len(named) > 10
    there = [(file, test) for file, test in named if f"def {test}(" in (ROOT / file).read_text("utf-8")]
    assert there == named


def test_each_page_that_promises_something_says_which_tests_hold_it() -> None:
    """A new page has a table of its own, or rows in the one of all others."""
    others = (OPERATIONS / "promises.md").read_text("utf-8")
    own = re.compile(r"^\| (promise|what happens) \|.* test \|", re.MULTILINE)

    def is_held(page: Path) -> bool:
        row = rf"^\| [^|]* \| \[[^|]*\]\({page.name}[)#][^|]*\| `tests/"
        return bool(own.search(page.read_text("utf-8")) or re.search(row, others, re.MULTILINE))

    promises_nothing = {"troubleshooting.md", "performance.md", "figures.md"}  # what to do, and what was measured
    assert {page.name for page in OPERATIONS.glob("*.md") if not is_held(page)} == promises_nothing
