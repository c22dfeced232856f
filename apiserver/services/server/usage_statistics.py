"""How much a company uses the server: its tasks, and the load of the server and of its workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.common.times import epoch_millis, now_ms, utc_now
from apiserver.services.access.roles import owns_server
from apiserver.services.backend import Call, documents
from apiserver.services.history.steps import ChartCurve, Steps
from apiserver.services.history.store import HistorySeries
from apiserver.services.tasks.task_documents import TASKS
from apiserver.services.workers.machine_stats import curve_of, curves_of
from apiserver.services.workers.worker_documents import WORKERS, subject_of
from apiserver.stores.documents.query import Document, Filter, NotIn

#: By the name in the answer: the workers' metric that it comes from, and what the values are divided by.
_RESOURCES = {"cpu_usage": ("cpu_usage", 1), "mem_used_gb": ("memory_used", 1024), "mem_free_gb": ("memory_free", 1024)}
_RAN: Filter = {"started": NotIn([None]), "status": NotIn(["created", "queued"])}


async def of_company(call: Call, server: dict[str, Any], seconds: int) -> dict[str, Any]:
    """The answer of server.get_stats. `server`: more fields of the server. `seconds`: how far back workers count."""
    tasks = await documents(call).find(
        TASKS, _RAN, projection=["started", "last_update", "last_iteration", "last_worker"]
    )
    machine = _this_machine() if owns_server(call.identity, call.backend.settings) else {}
    counts = {kind: {"count": await documents(call).count(kind, {})} for kind in ("queues", "users")}
    return {
        "time": utc_now(),
        "company_id": call.identity.company,
        "server": {**server, **counts, "resources": machine, "experiments": _experiments(tasks)},
        "agents": await _agents(call, tasks, seconds),
    }


async def _agents(call: Call, tasks: Iterable[Document], seconds: int) -> list[dict[str, Any]]:
    now = now_ms() / 1000
    steps = Steps.touched({"from_date": now - seconds, "to_date": now, "interval": max(60, seconds // 24)})
    weeks = await call.backend.history.weeks(call.identity.company, "worker", start=steps.start, stop=steps.stop)
    workers = await documents(call).find(WORKERS, {}, projection=["name", "machine_stats"])
    cores = {worker["name"]: len((worker.get("machine_stats") or {}).get("cpu_usage") or ()) for worker in workers}
    of_worker: dict[str, list[Document]] = {name: [] for name in sorted({*cores, *(week["name"] for week in weeks)})}
    for task in tasks:
        if (worker := task.get("last_worker")) in of_worker:
            of_worker[worker].append(task)
    metrics = [metric for metric, _ in _RESOURCES.values()]
    curves = await call.backend.history.curves([subject_of(call, name) for name in of_worker], metrics, steps)
    return [
        {
            "uuid": name,
            "resources": {
                "interval_sec": seconds,
                "num_cores": cores.get(name, 0),
                **_reported(curves.get(subject_of(call, name), {}), steps),
            },
            "experiments": _experiments(its),
        }
        for name, its in of_worker.items()
    ]


def _reported(curves: dict[HistorySeries, ChartCurve], steps: Steps) -> dict[str, Any]:
    resources = {}
    for name, (metric, unit) in _RESOURCES.items():
        if curves_of(metric, curves):
            mean, least, greatest = (curve_of(metric, kind, curves, steps) for kind in ("avg", "min", "max"))
            numbers = {"min": least.min.min(), "max": greatest.max.max(), "avg": mean.sum.sum() / mean.count.sum()}
            resources[name] = {kind: float(value) / unit for kind, value in numbers.items()}
    return resources


def _this_machine() -> dict[str, Any]:
    cores, gigabyte = os.cpu_count() or 1, 2**30
    page = os.sysconf("SC_PAGE_SIZE")
    total, free = (page * os.sysconf(name) for name in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    now = {
        "cpu_usage": min(100.0, os.getloadavg()[0] / cores * 100),
        "mem_used_gb": (total - free) / gigabyte,
        "mem_free_gb": free / gigabyte,
    }
    resources = {name: dict.fromkeys(("min", "max", "avg"), value) for name, value in now.items()}
    return {"interval_sec": 60, "num_cores": cores, **resources}


def _experiments(experiments: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The number of tasks, and their mean run time (s) and iterations."""
    tasks = list(experiments)
    if not tasks:
        return {"count": 0}
    milliseconds = [
        (epoch_millis(task.get("last_update")) or began) - began
        for task in tasks
        if (began := epoch_millis(task["started"])) is not None
    ]
    return {
        "count": len(tasks),
        "avg_run_time_sec": int(sum(milliseconds) / len(tasks) / 1000),
        "avg_iterations": int(sum(task.get("last_iteration") or 0 for task in tasks) / len(tasks)),
    }
