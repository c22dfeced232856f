"""What is said to those who run a server is so: messages, backups, health."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

from docs.site.pages import DOCS, ROOT
from tests.docs.test_tutorial import blocks
from tests.harness import Served, served

OPERATIONS = DOCS / "operations"
_HEADING = re.compile(r"^### `(.*)`$", re.MULTILINE)
#: Where messages are put together of parts.
_TOGETHER = re.compile("…|: | [(]|[)]")
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


def test_a_copy_of_the_data_folder_is_a_backup(server: Served, tmp_path: Path) -> None:
    """The command of the page copies it, and another server goes on with the copy."""
    task = server.call("tasks.create", {"name": "kept", "type": "training"})["id"]
    point = {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": "v", "iter": 1, "value": 5}
    server.call("events.add", point)
    token = server.call("auth.login")["token"]
    server.stop()
    command = next(block.text for block in blocks(OPERATIONS / "backup.md") if block.language == "sh")
    places = {"DATA": str(server.data), "BACKUP": str(tmp_path / "backup")}
    subprocess.run(["sh", "-euc", command], env=places, check=True)
    with served(tmp_path / "backup") as restored:
        curve = restored.call("events.scalar_metrics_iter_histogram", {"task": task})["m"]["v"]
        assert curve["y"] == [5]
        assert restored.call("auth.validate_token", {"token": token})["valid"]


def test_health_is_as_it_is_shown(server: Served) -> None:
    [shown] = [block.text for block in blocks(OPERATIONS / "monitoring.md") if block.language == "json"]
    with server.client() as client:
        assert client.get("/health", auth=None).json() == json.loads(shown)
