"""The commands of the guides do what the pages say."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from docs.site.pages import DOCS
from tests.docs.test_tutorial import blocks
from tests.harness import Served


def test_the_vendors_calls_answer(server: Served, tmp_path: Path) -> None:
    project = server.call("projects.create", {"name": "examples"})["id"]
    task = server.call("tasks.create", {"name": "train", "type": "training", "project": project})["id"]
    server.call("tasks.started", {"task": task})
    point = {"type": "training_stats_scalar", "task": task, "iter": 1, "value": 50}
    server.call("events.add", {**point, "metric": ":monitor:gpu", "variant": "gpu_0_utilization"})
    server.call("events.add", {"type": "log", "task": task, "msg": "epoch 1"})
    command = _only(_shell("vendor-apis.md"), "S=http")
    modelarts, preview, baseten, pai = _answers(server, tmp_path, command, TASK=task, PROJECT=project)
    assert 50 in next(one["value"] for one in modelarts["metrics"] if one["metric"] == "gpuUtil")
    assert preview["content"] == "epoch 1\n"
    assert baseten["training_job"]["id"] == task
    assert pai["PodMetrics"][0]["Metrics"][0]["Value"] == 50


def test_files_are_sent_and_fetched(server: Served, tmp_path: Path) -> None:
    (tmp_path / "loss.png").write_bytes(b"picture")
    send, fetch = _only(_shell("files.md"), "loss.png").splitlines()
    (sent,) = _answers(server, tmp_path, send)
    assert sent["files"] == [{"path": "/reports/loss.png", "size": 7}]
    (tmp_path / "loss.png").unlink()
    assert _answers(server, tmp_path, fetch) == []
    assert (tmp_path / "loss.png").read_bytes() == b"picture"


def _shell(page: str) -> list[str]:
    return [block.text for block in blocks(DOCS / "guides" / page) if block.language == "sh"]


def _only(texts: list[str], wanted: str) -> str:
    (found,) = [text for text in texts if wanted in text]
    return found


def _answers(server: Served, folder: Path, command: str, **variables: str) -> list[Any]:
    """The JSON that commands print, one after another."""
    for shown, real in (("http://127.0.0.1:8008", server.api_url), ("http://127.0.0.1:8081", server.files_url)):
        command = command.replace(shown, real)
    environment = {"PATH": os.environ["PATH"], "KEY": server.key, "SECRET": server.secret, **variables}
    shell = ["bash", "-euo", "pipefail", "-c", command]
    printed = subprocess.run(shell, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout
    found, decoder = [], json.JSONDecoder()
    while printed := printed.strip():
        answer, end = decoder.raw_decode(printed)
        found.append(answer)
        printed = printed[end:]
    return found
