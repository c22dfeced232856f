"""The real SDK waits when its user sends too fast, and whoever trains sees what a quota does not let in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.settings.values import Quota
from tests.clients.sdk import Sdk, sdk_of
from tests.clients.test_heavy import assert_all_arrived_once
from tests.harness import Served, served, wait_until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "data", quotas=(Quota("user", events_per_second=100),)) as running:
        yield running


def test_a_run_that_sends_too_fast_waits_and_loses_nothing(sdk: Sdk, server: Served) -> None:
    """However slowly the machine runs it: something else has used up the quota whenever it sends."""
    refused = Refused(server, server.call("tasks.create", {"name": "other", "type": "training"})["id"])
    process = sdk.start("heavy.py", "700", "20")
    try:
        wait_until(refused.somebody_else)
        assert_all_arrived_once(server, sdk.finish(process)["task"], 700, 20)
    finally:
        sdk.kill(process)


class Refused:
    """Sends 2,000 points of a task whenever they are let in, so that for twenty seconds nothing else is."""

    def __init__(self, server: Served, task: str) -> None:
        self._server = server
        self._points = "\n".join(
            json.dumps({"type": "training_stats_scalar", "task": task, "metric": "m", "iter": number, "value": 1})
            for number in range(2000)
        )
        self._own = 0

    def somebody_else(self) -> bool:
        """Whether others were refused than this one."""
        with self._server.client() as client:
            self._own += client.post("/events.add_batch", content=self._points).status_code == 429
            numbers = client.get("/metrics").text
        refusals = re.search(r"^apiserver_quota_refusals_total (\d+)", numbers, re.MULTILINE)
        assert refusals is not None
        return int(refusals[1]) > self._own


def test_whoever_trains_sees_what_is_left_out(tmp_path: Path) -> None:
    """In the console of the run, and in what the SDK prints of a file."""
    (tmp_path / "home").mkdir()
    with served(tmp_path / "data", quotas=(Quota("task", series=4, bytes=200_000),)) as server:
        run = sdk_of(server, tmp_path / "home").run("over_quota.py")
        assert not run["stored"]
        assert f"The file was not stored: Over quota: task over ({run['task']}) may have 200,000 bytes" in run["raised"]
        said = console(server, run["task"])
        assert "New series are left out" in said
        assert "was not stored, because there is too little room" in said
        assert len(server.call("events.scalar_metrics_iter_histogram", {"task": run["task"]})["loss"]) == 4


def test_what_a_quota_refuses_is_no_damage(tmp_path: Path) -> None:
    """Of what the SDK uploads while a quota is used up, the doctor tells what is left, and why it may be."""
    (tmp_path / "home").mkdir()
    with served(tmp_path / "data", quotas=(Quota("task", series=2, bytes=200_000),)) as server:
        run = sdk_of(server, tmp_path / "home").run("left_over.py")
        assert [one["key"] for one in run["artifacts"]] == ["named"]
        uris = {model["name"]: model["uri"] for model in server.call("models.get_all", {})["models"]}
        assert uris["waited for"].endswith("/uploading_file")
        assert uris["later"].endswith("/failed_uploading")
    doctor = [sys.executable, "-m", "apiserver", "doctor", "--data", str(tmp_path / "data")]
    said = subprocess.run(doctor, capture_output=True, text=True).stdout
    assert f"the file of the artifact named of task {run['task']} is missing" in said
    assert "or be refused by a quota or a full disk" in said
    assert "1 finding\n" in said
    assert "note: 2 files of models, or of artifacts of tasks that run, did not come" in said
    assert "names 1 file, with" in said  # the picture whose event was refused
    assert "belong to events that were refused" in said


def test_whoever_trains_sees_why_a_run_waits(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with served(tmp_path / "data", quotas=(Quota("task", bytes=1),)) as server:
        process = (sdk := sdk_of(server, tmp_path / "home")).start("over_quota.py")
        try:
            wait_until(lambda: "Nothing that this run reports is stored" in all_warnings(server), 60)
        finally:
            sdk.kill(process)


def all_warnings(server: Served) -> str:
    """What the consoles of all runs say."""
    return "".join(
        console(server, task["id"]) for task in server.call("tasks.get_all", {"only_fields": ["id"]})["tasks"]
    )


def console(server: Served, task: str) -> str:
    """The warnings in the console of a run."""
    events = server.call("events.get_task_log", {"task": task, "batch_size": 1000})["events"]
    return "\n".join(event["msg"] for event in events if event.get("level") == "warning")
