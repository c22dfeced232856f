"""workers.*, through the whole server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apiserver.common.times import from_now, seconds_since
from apiserver.stores.documents.query import Update
from tests.harness import Api

pytestmark = pytest.mark.anyio

STATS = {"cpu_usage": [12.5], "memory_free": 1024.25, "disk_free_home": 55, "gpu_fraction": [0.5]}


async def workers(api: Api, **request: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.call("workers.get_all", request))["workers"]
    return found


async def names(api: Api, **request: Any) -> list[str]:
    return [worker["id"] for worker in await workers(api, **request)]


async def age(api: Api, worker: str, seconds: int) -> None:
    """Have the worker's last call be so long ago."""
    [found] = await api.backend.documents.find("workers", {"company": api.company, "name": worker})
    earlier = {
        field: (datetime.fromisoformat(found[field]) - timedelta(seconds=seconds)).isoformat(timespec="microseconds")
        for field in ("last_activity_time", "expires")
    }
    await api.backend.documents.update("workers", {"company": api.company, "name": worker}, Update(set=earlier))


def report(worker: str, **fields: Any) -> dict[str, Any]:
    """A status report as the agent sends it."""
    timestamp = int(datetime.now(UTC).timestamp()) * 1000
    return {"worker": worker, "timestamp": timestamp, "machine_stats": STATS, "is_daemon": True, **fields}


async def test_registered_workers_are_seen(api: Api) -> None:
    queue = (await api.call("queues.get_default"))["id"]

    request = {"worker": "host:gpu0", "queues": [queue], "tags": ["a"], "timeout": 60}
    assert await api.call("workers.register", request, version="2.4") == {}

    [worker] = await workers(api)
    assert worker["id"] == "host:gpu0"
    described = {"id": queue, "name": "default", "display_name": "default"}
    assert worker["queues"] == [{**described, "num_tasks": 0, "next_task": None}]
    assert worker["key"] == f"worker_{api.company}_{worker['user']['id']}_host:gpu0"
    assert worker["ip"] == "127.0.0.1"
    assert (worker["tags"], worker["system_tags"], worker["task"]) == (["a"], [], None)
    assert worker["user"]["name"] == "admin"
    assert worker["company"] == {"id": api.company, "name": "default"}
    assert "2020" < worker["register_time"] <= worker["last_activity_time"]
    assert await api.call("workers.get_count") == {"count": 1}


async def test_registering_with_an_unknown_queue_is_an_error(api: Api) -> None:
    answer = await api.call("workers.register", {"worker": "w", "queues": ["no queue"]}, expect=400)
    assert answer["meta"]["result_subcode"] == 701
    assert await names(api) == []


async def test_unregistered_workers_are_gone(api: Api) -> None:
    await api.call("workers.register", {"worker": "w"})
    await api.call("workers.unregister", {"worker": "w", "queues": []})
    assert await names(api) == []
    answer = await api.call("workers.unregister", {"worker": "w"}, expect=400)
    assert answer["meta"]["result_subcode"] == 1004


async def test_a_report_says_what_a_worker_does(api: Api) -> None:
    queue = (await api.call("queues.get_default"))["id"]
    project = (await api.call("projects.create", {"name": "p", "description": ""}))["id"]
    task, waiting = [
        (await api.call("tasks.create", {"name": name, "type": "training", "project": project}))["id"]
        for name in ("runs", "waits")
    ]
    await api.call("tasks.enqueue", {"task": waiting, "queue": queue})
    await api.call("tasks.started", {"task": task})
    begun = from_now(-100)
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"started": begun}))

    await api.call("workers.status_report", report("w", task=task, queue=queue, queues=[queue]))

    [worker] = await workers(api)
    assert 100_000 <= worker["task"].pop("running_time") <= 1000 * seconds_since(begun, from_now(1))
    assert worker["task"] == {"id": task, "name": "runs", "last_iteration": 0}
    assert worker["project"] == {"id": project, "name": "p"}
    assert worker["queue"] == {"id": queue, "name": "default"}
    [listened] = worker["queues"]
    assert (listened["num_tasks"], listened["next_task"]) == (1, {"id": waiting, "name": "waits"})
    assert worker["machine_stats"] == STATS
    running = (await api.call("tasks.get_by_id", {"task": task}))["task"]
    assert running["last_worker"] == "w"
    assert running["last_worker_report"] == worker["last_report_time"]


async def test_the_next_report_clears_the_task_and_keeps_the_queues(api: Api) -> None:
    queue = (await api.call("queues.get_default"))["id"]
    task = (await api.call("tasks.create", {"name": "runs", "type": "training"}))["id"]
    await api.call("workers.status_report", report("w", task=task, queue=queue, queues=[queue], tags=["a"]))

    await api.call("workers.status_report", report("w", machine_stats=None))

    [worker] = await workers(api)
    assert (worker["task"], worker["queue"], worker["tags"]) == (None, None, ["a"])
    assert [listened["id"] for listened in worker["queues"]] == [queue]
    assert worker["machine_stats"] == STATS


async def test_a_worker_whose_task_is_gone_still_reports(api: Api) -> None:
    await api.call("workers.status_report", report("w", task="no task", queue="no queue"))
    [worker] = await workers(api)
    assert worker["task"]["id"] == "no task"
    assert worker["project"] is None


async def test_workers_time_out(api: Api) -> None:
    await api.call("workers.register", {"worker": "short", "timeout": 60})
    await api.call("workers.register", {"worker": "long", "timeout": 600})
    for worker in ("short", "long"):
        await age(api, worker, 100)

    assert await names(api) == ["long"]
    assert await api.call("workers.get_count") == {"count": 1}

    await api.call("workers.status_report", report("short"))
    assert await names(api) == ["long", "short"]
    await age(api, "short", 61)
    assert await names(api) == ["long"]  # its own timeout still holds
    await api.call("workers.register", {"worker": "new"})
    assert await api.backend.documents.count("workers", {"company": api.company}) == 2


async def test_workers_are_found_by_when_they_were_seen(api: Api) -> None:
    await api.call("workers.register", {"worker": "old", "timeout": 100_000})
    await api.call("workers.register", {"worker": "new"})
    await age(api, "old", 4000)

    assert await names(api) == ["new"]
    assert await names(api, last_seen=5000) == ["new", "old"]
    assert await names(api, last_seen=0) == ["new", "old"]
    assert await names(api, last_seen=2**62) == ["new", "old"]
    assert await api.call("workers.get_count") == {"count": 2}
    assert await api.call("workers.get_count", {"last_seen": 3600}) == {"count": 1}


async def test_workers_are_found_by_name_and_tags(api: Api) -> None:
    await api.call("workers.register", {"worker": "host:gpu0,1", "tags": ["fast"]})
    await api.call("workers.register", {"worker": "host.cpu"})

    assert await names(api, last_seen=600, worker_pattern="host:gpu*") == ["host:gpu0,1"]
    assert await names(api, worker_pattern="host?cpu") == []
    assert await names(api, worker_pattern="*") == ["host.cpu", "host:gpu0,1"]
    assert await names(api, tags=["fast"]) == ["host:gpu0,1"]
    assert await names(api, tags=["-fast"]) == ["host.cpu"]


async def test_runtime_properties_work_before_a_worker_registers(api: Api) -> None:
    properties = {"worker": "w"}
    assert await api.call("workers.get_runtime_properties", properties) == {"runtime_properties": []}

    items = [{"key": "available_gpus", "value": "0_0,1_5"}, {"key": "a.b", "value": "x", "expiry": 60}]
    answer = await api.call("workers.set_runtime_properties", {"worker": "w", "runtime_properties": items})
    assert answer == {"added": ["available_gpus", "a.b"], "updated": [], "errors": []}

    change = [{"key": "a.b", "value": "y"}]
    answer = await api.call("workers.set_runtime_properties", {"worker": "w", "runtime_properties": change})
    assert answer == {"added": [], "updated": ["a.b"], "errors": []}
    found = (await api.call("workers.get_runtime_properties", properties))["runtime_properties"]
    assert found == [items[0], {"key": "a.b", "value": "y"}]


async def test_runtime_properties_expire(api: Api) -> None:
    items = [{"key": "force", "value": "on", "expiry": 60}]
    await api.call("workers.set_runtime_properties", {"worker": "w", "runtime_properties": items})
    past = Update(set={"properties.force.expires": "2020-01-01T00:00:00.000000+00:00"})
    await api.backend.documents.update("worker_properties", {"company": api.company, "name": "w"}, past)

    assert await api.call("workers.get_runtime_properties", {"worker": "w"}) == {"runtime_properties": []}
    answer = await api.call("workers.set_runtime_properties", {"worker": "w", "runtime_properties": items})
    assert answer["added"] == ["force"]
