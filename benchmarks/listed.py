"""Makes the documents for measuring lists: users, projects, tasks and models of a large company, the same each time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from apiserver.stores.documents.query import Document

USERS = 50
METRICS = (
    *(("loss", "train"), ("loss", "validation"), ("accuracy", "train"), ("accuracy", "validation"), ("lr", "group 0")),
    *((":monitor:gpu", "gpu_0_utilization"), (":monitor:gpu", "gpu_0_mem_used_gb"), (":monitor:machine", "cpu_usage")),
    *(("epoch", "time"), ("grad", "norm"), ("f1", "macro"), ("f1", "micro"), ("bleu", "dev"), ("wer", "test")),
)
PARAMETERS = ("lr", "batch_size", "epochs", "seed", "dropout", "optimizer", "warmup", "weight_decay", "model", "data")
_START = datetime(2025, 1, 1, tzinfo=UTC)
_STATUSES = {"completed": 60, "failed": 12, "stopped": 12, "created": 8, "published": 5, "in_progress": 2, "queued": 1}
_TYPES = {"training": 80, "testing": 8, "data_processing": 5, "controller": 4, "inference": 3}
_TAGS = [f"tag {number}" for number in range(60)]
_PER_PROJECT = 8
"""Each project has so many of the METRICS, and two metrics of its own."""


def hashed(name: str) -> str:
    """The key of a metric or a variant in `last_metrics`."""
    return hashlib.md5(name.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Company:
    """The documents of one company."""

    id: str
    projects: list[Document]
    weights: list[float] = field(default_factory=list)
    """For each project, how likely a task belongs to it. A few projects have many tasks, and most have few."""

    @classmethod
    def of(cls, id: str, projects: int) -> Company:
        """A company with so many projects, which are up to three levels deep."""
        random, made = Random(0), list[Document]()
        for number in range(projects):
            above = random.choice(made[: projects // 4]) if number >= max(projects // 10, 1) else None
            if above and len(above["path"]) > 1:
                above = None
            made.append(_project(id, number, above))
        return cls(id, made, [1 / (place + 3) for place in range(projects)])

    def users(self) -> list[Document]:
        """The users who made the documents."""
        return [
            {
                "id": f"user{number}",
                "company": self.id,
                "name": f"Ann {number}",
                "created": _time(number),
                "role": "user",
            }
            for number in range(USERS)
        ]

    def tasks(self, count: int) -> Iterator[Document]:
        """The tasks, oldest first. One in ten has a parent."""
        random = Random(1)
        for number, project in enumerate(random.choices(self.projects, self.weights, k=count)):
            yield self._task(number, project, random)

    def models(self, count: int) -> Iterator[Document]:
        """Models that the first tasks made."""
        random = Random(2)
        for number, project in enumerate(random.choices(self.projects, self.weights, k=count)):
            yield {
                **_stamps(self.id, number, count, random),
                "id": f"model{number:027x}",
                "name": f"model {number}",
                "project": project["id"],
                "task": task_id(number),
                "uri": f"https://files.example.com/{number}/model.pt",
                "framework": random.choice(["PyTorch", "Keras", "ScikitLearn", ""]),
                "ready": random.random() < 0.7,
                "tags": random.sample(_TAGS, 1),
                "system_tags": ["archived"] if random.random() < 0.2 else [],
                "labels": {"cat": 1, "dog": 2},
                "metadata": {"size": {"key": "size", "type": "int", "value": str(random.randrange(1000))}},
                "last_metrics": {},
            }

    def _task(self, number: int, project: Document, random: Random) -> Document:
        stamps = _stamps(self.id, number, 100_000, random)
        status = random.choices(list(_STATUSES), list(_STATUSES.values()))[0]
        seconds, iteration = random.randrange(60, 200_000), random.randrange(10_000)
        started = {} if status in ("created", "queued") else {"started": stamps["created"], "active_duration": seconds}
        ended = {} if status in ("created", "queued", "in_progress") else {"completed": stamps["last_update"]}
        return {
            **stamps,
            **started,
            **ended,
            "id": task_id(number),
            "name": f"{random.choice(['train', 'eval', 'tune', 'export'])} {project['basename']} #{number}",
            "comment": "baseline with another seed" if random.random() < 0.1 else "",
            "project": project["id"],
            "parent": task_id(number - number % 50) if number % 10 == 3 else None,
            "status": status,
            "type": random.choices(list(_TYPES), list(_TYPES.values()))[0],
            "tags": random.sample(_TAGS, random.choice([0, 0, 1, 2])),
            "system_tags": random.choices([[], ["archived"], ["development"]], [70, 15, 15])[0],
            "last_iteration": iteration,
            "last_changed_by": stamps["user"],
            "last_metrics": _metrics(project["number"], iteration, random),
            "metric_stats": {},
            "hyperparams": _parameters(random),
            "configuration": {"General": {"name": "General", "type": "dict", "value": "x" * 300}},
            "script": {"repository": "https://example.com/r.git", "entry_point": "train.py", "diff": "d" * 1500},
            "execution": {"queue": f"queue{number % 20}", "artifacts": [], "parameters": {}, "model_labels": {}},
            "models": {"input": [], "output": []},
            "runtime": {"gpu_count": 8, "hostname": f"node-{number % 40}"},
            "container": {"image": "nvidia/cuda:12.1", "arguments": "", "setup_shell_script": ""},
            "output": {},
        }


def task_id(number: int) -> str:
    """The id of a task. The order of ids is not that of times."""
    return hashed(f"task {number}")


def _project(company: str, number: int, above: Document | None) -> Document:
    basename = f"project {number}"
    return {
        "id": hashed(basename),
        "number": number,
        "company": company,
        "name": f"{above['name']}/{basename}" if above else basename,
        "basename": basename,
        "path": [*above["path"], above["id"]] if above else [],
        **({"parent": above["id"]} if above else {}),
        "description": "",
        "user": f"user{number % USERS}",
        "created": _time(number),
        "last_update": _time(number * 7 % 1000),
        "tags": [f"tag {number % 12}"] if number % 5 == 0 else [],
        "system_tags": [],
    }


def _stamps(company: str, number: int, count: int, random: Random) -> Document:
    created, updated = _time(number), _time(number + random.randrange(count // 10 + 1))
    user = f"user{min(int(random.expovariate(0.1)), USERS - 1)}"
    return {"company": company, "user": user, "created": created, "last_update": updated, "last_change": updated}


def _time(minutes: int) -> str:
    return (_START + timedelta(minutes=5 * minutes, microseconds=minutes)).isoformat(timespec="microseconds")


def metrics_of(project: int) -> Sequence[tuple[str, str]]:
    """The series that the tasks of a project report."""
    common = [METRICS[(project + place) % len(METRICS)] for place in range(_PER_PROJECT)]
    return [*common, (f"score {project % 100}", "a"), (f"score {project % 100}", "b")]


def _metrics(project: int, iteration: int, random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for metric, variant in metrics_of(project):
        value = random.random()
        found.setdefault(hashed(metric), {})[hashed(variant)] = {
            "metric": metric,
            "variant": variant,
            "value": value,
            "min_value": value / 2,
            "min_value_iteration": iteration // 2,
            "max_value": value * 2,
            "max_value_iteration": iteration // 3,
            "first_value": value / 3,
            "first_value_iteration": 0,
            "count": iteration,
            "mean_value": value,
            "x_axis_label": "Iterations",
        }
    return found


def _parameters(random: Random) -> dict[str, Any]:
    args = {name: str(random.choice([random.randrange(200), round(random.random(), 4)])) for name in PARAMETERS}
    general = {f"option_{number}": f"value {random.randrange(9)}" for number in range(6)}
    return {
        section: {
            name: {"section": section, "name": name, "value": value, "type": "str", "description": ""}
            for name, value in values.items()
        }
        for section, values in (("Args", args), ("General", general))
    }
