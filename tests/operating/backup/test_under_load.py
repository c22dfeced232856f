"""A backup that is taken while clients write, and killed now and then, and restored elsewhere, has all that was
acknowledged before it began, and nothing by half.

`EVENTS_KILLS=100 pytest tests/operating/backup/test_under_load.py` takes and kills more.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.harness import Served, apiserver, run, served, wait_until
from tests.longer import beyond
from tests.robustness.writers import Writer, assert_a_moment, beside, new_task, writing

BACKUPS = int(os.environ.get("EVENTS_KILLS", "2"))


@dataclass
class Uploader:
    """Uploads files, and then makes tasks that name them."""

    server: Served
    made: list[str] = field(default_factory=list)
    """The ids of the tasks that were acknowledged."""

    def run(self, stop: Event) -> None:
        """Upload until told to stop."""
        with self.server.client() as client:
            while not stop.is_set():
                uri = f"{self.server.files_url}/project/{len(self.made)}.bin"
                assert client.put(uri, content=content(len(self.made))).status_code == 200
                execution = {"artifacts": [{"key": "file", "type": "custom", "uri": uri}]}
                request = {"name": f"file {len(self.made)}", "type": "training", "execution": execution}
                answer = client.post("/v2.34/tasks.create", json=request)
                assert answer.status_code == 200, answer.text
                self.made.append(answer.json()["data"]["id"])


def content(number: int) -> bytes:
    return f"{number} ".encode() * (number % 50 + 1) * 100


def assert_files(server: Served, ids: Sequence[str]) -> None:
    """The tasks are there, and each that is there has its file."""
    asked = {"name": "^file ", "only_fields": ["id", "name", "execution"], "page_size": 500}
    found: list[dict[str, Any]] = []
    while page := server.call("tasks.get_all", {**asked, "page": len(found) // 500})["tasks"]:
        found += page
        if len(page) < 500:
            break
    assert set(ids) <= {task["id"] for task in found}
    with server.client() as client:
        for task in found:
            uri: str = task["execution"]["artifacts"][0]["uri"]
            answer = client.get(f"{server.files_url}{uri[uri.index('/project') :]}")
            assert (answer.status_code, answer.content) == (200, content(int(task["name"].removeprefix("file "))))


@pytest.mark.parametrize("durability", beyond(["process"], ["process", "fsync"]))
def test_a_backup_under_load_is_one_moment(tmp_path: Path, dice: random.Random, durability: str) -> None:
    destination = tmp_path / "backups"
    settings: dict[str, Any] = {"durability": durability, "merge_events": 200}  # so that merges go on all the time
    with served(tmp_path / "data", **settings) as server:
        writers = [Writer(server, new_task(server), name) for name in ("one", "two")]
        uploader = Uploader(server)
        with writing(writers), beside([uploader.run]):
            for number in range(BACKUPS):
                goal = writers[0].acknowledged + dice.randrange(20, 60)
                wait_until(lambda goal=goal: writers[0].acknowledged >= goal)  # type: ignore[misc]
                if dice.random() < 0.5:
                    killed = apiserver("backup", destination, "--data", server.data)
                    try:
                        killed.wait(dice.uniform(0.5, 4))
                    except subprocess.TimeoutExpired:
                        killed.kill()
                    killed.communicate()
                before, tasks = [writer.acknowledged for writer in writers], list(uploader.made)
                run("backup", destination, "--data", server.data, *(["--fast"] if number % 2 else []))
                after = [writer.acknowledged for writer in writers]
                assert "all backups are well" in run("backup", destination, "--check")
                new = tmp_path / f"new{number}"
                run("restore", destination, "--data", new)
                with served(new) as restored:
                    assert_a_moment(restored, writers, before, after)
                    assert_files(restored, tasks)
        assert "Traceback" not in server.log.read_text()
    assert "is what the backup says" in run("restore", destination, "--data", tmp_path / "last", "--verify")
