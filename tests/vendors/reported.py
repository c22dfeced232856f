"""Jobs as tests report them, and what vendors should make of the reports, counted by hand: plain lists and sums."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs

from tests.harness import Api

#: Sunday, some milliseconds after a minute began.
BEGIN = 1_772_359_263_250
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

RUNTIME = {
    "cpu_cores": 8,
    "memory_gb": 31.4,
    "gpu_count": 2,
    "gpu_type": "NVIDIA A100, NVIDIA A100",
    "gpu_memory": "80GB, 80GB",
    "hostname": "host-a",
}
GIB = 2**30

_SCHEMAS = Path(__file__).parent / "schemas"


class Report(NamedTuple):
    """One value of a scalar."""

    worker: str
    metric: str
    variant: str
    time: int
    value: float


class Line(NamedTuple):
    """One message of a log."""

    worker: str
    time: int
    message: str


#: A value, and when it was reported.
Points = list[tuple[int, float]]
#: Means by step.
Means = dict[int, float]


@dataclass(slots=True)
class Reported:
    """A task of a project, with what was reported of it."""

    api: Api
    id: str
    project: str
    reports: list[Report] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    @property
    def dashed(self) -> str:
        """Its id as UUIDs are written."""
        parts = (self.id[n:m] for n, m in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
        return "-".join(parts)

    async def document(self) -> dict[str, Any]:
        """The task as the API answers it."""
        task: dict[str, Any] = (await self.api.call("tasks.get_by_id", {"task": self.id}))["task"]
        return task

    async def send(self, reports: Sequence[Report] = (), lines: Sequence[Line] = ()) -> None:
        """Report more."""
        # Of one iteration a series has one value: the last.
        scalars = [_scalar(self.id, n, report) for n, report in enumerate(reports, len(self.reports))]
        events = [*scalars, *(_log(self.id, line) for line in lines)]
        self.reports += reports
        self.lines += lines
        body = "\n".join([json.dumps(event, ensure_ascii=False) for event in events])
        response = await self.api.raw("POST", "/events.add_batch", content=body)
        assert response.json()["data"] == {"added": len(events), "errors": 0, "errors_info": {}}

    def points(self, worker: str, metric: str, variant: str) -> Points:
        """What a worker reported of a scalar, by time; what is no number does not count."""
        mine = [one for one in self.reports if one[:3] == (worker, metric, variant) and math.isfinite(one.value)]
        return sorted((one.time, one.value) for one in mine)


async def reported(api: Api, *, project: str = "a/b", runtime: dict[str, Any] | None = None) -> Reported:
    """A running task without reports."""
    projects = (await api.call("projects.get_all", {"name": f"^{project}$"}))["projects"]
    made = projects[0] if projects else await api.call("projects.create", {"name": project})
    task = await api.call("tasks.create", {"name": "the job", "type": "training", "project": made["id"]})
    await api.call("tasks.started", {"task": task["id"]})
    await api.call(
        "tasks.edit", {"task": task["id"], "force": True, "runtime": RUNTIME if runtime is None else runtime}
    )
    return Reported(api, task["id"], made["id"])


def _scalar(task: str, iteration: int, report: Report) -> dict[str, Any]:
    value = report.value if math.isfinite(report.value) else str(report.value).replace("inf", "Infinity")
    return {
        "type": "training_stats_scalar",
        "task": task,
        "worker": report.worker,
        "metric": report.metric,
        "variant": report.variant,
        "iter": iteration,
        "timestamp": report.time,
        "value": "NaN" if math.isnan(report.value) else value,
    }


def _log(task: str, line: Line) -> dict[str, Any]:
    return {"type": "log", "task": task, "worker": line.worker, "timestamp": line.time, "msg": line.message}


# --- a job on two machines ---------------------------------------------------------------------------

#: When reports are made, in seconds: of some minutes two, of one three, of most none.
_TIMES = (0, 29.75, 61, 88.5, 121.25, 415, 446.125, 475.875, 476, 900.5, 931)
#: What a machine reports, and up to which value.
MACHINE = {
    "cpu_usage": 100,
    "memory_used_gb": 15,
    "memory_free_gb": 15,
    "network_rx_mbs": 900,
    "network_tx_mbs": 90,
    "io_read_mbs": 400,
    "io_write_mbs": 40,
    "disk_free_percent": 100,
}
GPU = {"utilization": 100, "mem_usage": 100, "mem_used_gb": 80, "temperature": 90}
#: Workers, what their rank adds to names, and by how many milliseconds one is late.
RANKED = (("host-a", "", 0), ("host-b", ":rank1", 12_400))


async def two_machines(api: Api) -> Reported:
    """A job of two machines with two GPUs each, as the SDK's resource monitor reports it, and what they log."""
    job = await reported(api)
    reports = list(chain.from_iterable(_reports_of(*machine) for machine in RANKED))
    # What arrives first is not what was reported first.
    await job.send(reports[len(reports) // 3 :], [line for line in _lines() if line.worker == "host-b"])
    await job.send(reports[: len(reports) // 3], [line for line in _lines() if line.worker == "host-a"])
    return job


def _reports_of(worker: str, rank: str, late: int) -> Iterator[Report]:
    numbers = random.Random(worker)
    for n, seconds in enumerate((*_TIMES, 1010) if rank else _TIMES):
        time = BEGIN + int(seconds * SECOND) + late
        for variant, most in MACHINE.items():
            value = round(numbers.uniform(0, most), 3)
            if variant == "cpu_usage" and seconds in (900.5, 931):
                value = math.nan if seconds == 931 else math.inf
            yield Report(worker, ":monitor:machine" + rank, variant, time, value)
        for gpu in (0, 1):
            for name, most in GPU.items():
                value = math.nan if (gpu, name, n) == (0, "utilization", 3) else round(numbers.uniform(0, most), 3)
                yield Report(worker, ":monitor:gpu" + rank, f"gpu_{gpu}_{name}", time, value)
                if gpu == 1 and n % 2 == 0:
                    more = round(numbers.uniform(0, most), 3)
                    yield Report(worker, ":monitor:gpu" + rank, f"gpu_1_{name}", time + 7 * SECOND, more)
        yield Report(worker, "train", "loss", time, numbers.random())


def _lines() -> Iterator[Line]:
    for n in range(5):
        for worker, _, late in RANKED:
            yield Line(
                worker, BEGIN + n * SECOND + late, f"line {n} of {worker}" + ("\nsecond — 行\n" if n == 3 else "")
            )


# --- by hand -----------------------------------------------------------------------------------------


def by_steps(points: Iterable[tuple[int, float]], start: int, step: int, stop: int | None = None) -> Means:
    """The mean of each step of `step` milliseconds from `start` on, of the points before `stop`."""
    values: dict[int, list[float]] = {}
    for time, value in points:
        if time >= start and (stop is None or time < stop):
            values.setdefault((time - start) // step, []).append(value)
    return {number: sum(of_step) / len(of_step) for number, of_step in sorted(values.items())}


def mean_of(*devices: Means) -> Means:
    """The mean of several devices' means at each step that one of them has."""
    steps = sorted(set(chain.from_iterable(devices)))
    values = {step: [device[step] for device in devices if step in device] for step in steps}
    return {step: sum(of_step) / len(of_step) for step, of_step in values.items()}


def iso(millis: int) -> str:
    """Epoch milliseconds as RFC 3339 has them, in UTC."""
    seconds, rest = divmod(millis, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03}Z"


def millis(text: str) -> int:
    """Epoch milliseconds of a time with its zone, rounded."""
    time = datetime.fromisoformat(text)
    assert time.tzinfo is not None
    return round(time.timestamp() * 1000)


def validate(answer: Any, schema: str) -> None:
    """Hold an answer against the schema of its document; jsonschema_rs.ValidationError where it fails."""
    read = json.loads((_SCHEMAS / f"{schema}.json").read_text())
    jsonschema_rs.Draft202012Validator(read, validate_formats=True).validate(answer)
