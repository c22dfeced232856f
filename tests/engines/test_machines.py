"""What workers, queues and containers report is kept and charted on Elasticsearch and MongoDB as on embedded stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.common.times import now_ms
from apiserver.services.history.store import DAY, Subject
from apiserver.services.queues.history import LENGTH, WAITING
from apiserver.services.serving.quantities import values_of
from tests.harness import Api, running_api

pytestmark = pytest.mark.anyio

#: Epoch seconds at which a step of 40 s begins.
START = now_ms() // 40_000 * 40 - 4000
DATES = {"from_date": START - 40, "to_date": START + 400, "interval": 40}


async def reported(api: Api) -> dict[str, Any]:
    """The charts of what a few machines reported, by their endpoints."""
    company, history = api.company, api.backend.history
    task = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
    for n in range(9):
        machine = {"cpu_usage": [n, 3 * n], "gpu_usage": [10 + n, 20 + n], "memory_used": 100.5 - n}
        report = {"worker": f"w{n % 2}", "timestamp": (START + 35 * n) * 1000, "machine_stats": machine}
        await api.call("workers.status_report", {**report, **({"task": task} if n < 4 else {})})
        container = Subject(company, "container", f"c{n % 3}", "http://a")
        stats = {"requests_num": n * n, "requests_min": n, "machine_stats": machine}
        await history.record(container, (START + 35 * n) * 1000, values_of(stats))
    queue = (await api.call("queues.get_default"))["id"]
    for n in range(5):
        held = {WAITING: abs(2.5 - n), LENGTH: n}
        await history.record(Subject(company, "queue", queue), (START + 11 * n) * 1000, held)
    await api.call("workers.unregister", {"worker": "w1"})
    await history.record(
        Subject(company, "worker", "old"), (START - 100 * DAY // 1000) * 1000, {("cpu_usage", "avg"): 1}
    )

    items = [{"key": key, "aggregation": name} for key in ("cpu_usage", "gpu_usage") for name in ("avg", "min", "max")]
    charts: dict[str, Any] = {
        "stats": await api.call("workers.get_stats", {**DATES, "items": items, "split_by_resource": True}),
        "keys": await api.call("workers.get_metric_keys"),
        "activity": await api.call("workers.get_activity_report", DATES),
        "queues": await api.call("queues.get_queue_metrics", DATES),
    }
    for quantity in ("requests", "requests_min", "cpu_util", "ram_used"):
        request = {**DATES, "endpoint_url": "http://a", "metric_type": quantity}
        charts[quantity] = await api.call("serving.get_endpoint_metrics_history", request)

    before = {owner.id async for owner in api.backend.events.owners()}
    await history.sweep()
    after = {owner.id async for owner in api.backend.events.owners()}
    charts["swept"] = len(before - after)
    assert [owner async for owner in api.backend.events.owners_to_restate()] == []
    return charts


async def test_charts_are_those_of_embedded_stores(tmp_path: Path, shared_engines: dict[str, Any]) -> None:
    async with running_api(tmp_path / "embedded") as api:
        embedded = await reported(api)
    async with running_api(tmp_path / "engines", **shared_engines) as api:
        answered = await reported(api)
    assert max(embedded["stats"]["workers"][0]["metrics"][0]["stats"][0]["values"]) > 0
    assert embedded["swept"] == 1
    assert answered == embedded
