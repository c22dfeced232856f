"""The real agent takes tasks from a queue, runs one to its end, and stops the other one when it is told to.

On the embedded stores, and in `make longer` on Elasticsearch and MongoDB.
"""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.clients.sdk import Sdk
from tests.harness import Served, wait_until
from tests.longer import beyond

WORKER = "machine-1"
SECONDS = 60


def task_of(server: Served, task: str) -> dict[str, Any]:
    found: dict[str, Any] = server.call("tasks.get_by_id", {"task": task})["task"]
    return found


def status_of(server: Served, task: str) -> str:
    return str(task_of(server, task)["status"])


def workers(server: Served) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.call("workers.get_all")["workers"]
    return found


def console(server: Served, task: str) -> list[dict[str, Any]]:
    asked = {"task": task, "batch_size": 1000, "navigate_earlier": False}
    events: list[dict[str, Any]] = server.call("events.get_task_log", asked)["events"]
    return events


def waiting(server: Served, queue: str) -> int:
    return int(server.call("queues.get_num_entries", {"queue": queue})["num"])


@pytest.mark.parametrize("server", beyond(["embedded"], ["embedded", "engines"]), indirect=True)
def test_an_agent_runs_what_is_in_its_queue(sdk: Sdk, server: Served) -> None:
    queue = server.call("queues.create", {"name": "machines"})["id"]
    made = sdk.run("make_for_agent.py", "machines")
    assert waiting(server, queue) == 2

    with sdk.agent("machines", worker=WORKER) as agent:
        wait_until(lambda: status_of(server, made["ended"]) == "in_progress", SECONDS)
        [worker] = workers(server)
        assert worker["id"].startswith(WORKER)
        assert [known["id"] for known in worker["queues"]] == [queue]
        wait_until(lambda: status_of(server, made["ended"]) not in ("queued", "in_progress"), SECONDS)
        _check_ended(server, made["ended"], worker["id"])

        wait_until(lambda: _says(server, made["stopped"], "wait=1"), SECONDS)
        assert workers(server)[0]["task"]["id"] == made["stopped"]
        assert waiting(server, queue) == 0
        server.call("tasks.stop", {"task": made["stopped"]})
        assert task_of(server, made["stopped"])["status_message"] == "stopping"
        wait_until(lambda: status_of(server, made["stopped"]) != "in_progress", SECONDS)
        assert status_of(server, made["stopped"]) == "stopped"
        assert not _says(server, made["stopped"], "the end")

        agent.send_signal(signal.SIGINT)
        agent.wait(SECONDS)
    assert workers(server) == []


def _check_ended(server: Served, task: str, worker: str) -> None:
    assert status_of(server, task) == "completed"
    assert task_of(server, task)["last_worker"] == worker
    assert _says(server, task, "wait=0")
    assert _says(server, task, "the end")
    assert {line["worker"] for line in console(server, task)} == {worker}
    loss = server.call("events.scalar_metrics_iter_histogram", {"task": task})["loss"]["train"]
    assert loss["x"] == list(range(5))


def _says(server: Served, task: str, text: str) -> bool:
    return any(text in line["msg"] for line in console(server, task))
