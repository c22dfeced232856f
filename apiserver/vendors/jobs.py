"""Jobs as vendors know them: tasks, with their project, their times, their nodes, and what a node is like."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.aggregation.monitoring.nodes import Node, nodes_of
from apiserver.aggregation.monitoring.quantities import Kind
from apiserver.events.model import Owner
from apiserver.rpc.call import Identity
from apiserver.services.backend import Backend
from apiserver.services.names import unescape_keys
from apiserver.stores.documents.base import Document
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.times import epoch_millis
from apiserver.vendors.refusals import Problem, Refused

_FIELDS = (
    *("id", "name", "project", "status", "status_message", "status_reason"),
    *("created", "started", "completed", "last_update", "runtime"),
)
_DASHED = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBERED = re.compile(r"worker-(0|[1-9]\d{0,8})")
_NUMBER = re.compile(r"(?<!\d)\d{1,9}(?!\d)(?:\.\d{1,9})?")


@dataclass(slots=True, frozen=True)
class Machine:
    """What a node is like, as the SDK says once a run in `task.runtime`; what it did not say is None, or zero GPUs."""

    cores: int | None
    memory_gib: float | None
    gpus: int
    gpu_type: str | None
    gpu_memory_gib: float | None


@dataclass(slots=True)
class Job:
    """A task as a job. `project` is its project's document; times are epoch milliseconds."""

    owner: Owner
    task: Document
    project: Document | None
    nodes: list[Node]

    @property
    def first(self) -> int | None:
        """The earlier of its start and its first report; None before both."""
        started = epoch_millis(self.task.get("started"))
        return min([*([] if started is None else [started]), *(node.first for node in self.nodes)], default=None)

    @property
    def last(self) -> int | None:
        """Where it ended, or its last report if that is later or it has not ended; inclusive."""
        end = epoch_millis(self.task.get("completed"))
        return max([*([] if end is None else [end - 1]), *(node.last for node in self.nodes)], default=None)

    def node(self, name: str) -> int:
        """The number of the node of this name, or else of `worker-` and a number. Refused NO_NODE.

        A job of which no node is known has one, as other jobs have at least.
        """
        by_name = [number for number, node in enumerate(self.nodes) if node.name == name]
        numbered = _NUMBERED.fullmatch(name)
        number = by_name[0] if by_name else int(numbered[1]) if numbered else None
        if number is None or number >= max(len(self.nodes), 1):
            raise Refused(Problem.NO_NODE, f"the training job {self.owner.id} has no task {name}")
        return number

    def logged_by(self, number: int) -> Callable[[str], bool]:
        """Tells which workers' lines are of this node; those of workers that are no node are of the first."""
        holders = {worker: n for n, node in reversed([*enumerate(self.nodes)]) for worker in node.workers}
        return lambda worker: holders.get(worker, 0) == number

    @property
    def machine(self) -> Machine:
        """What its nodes are like; of nodes that differ, the one that said so last. GPUs that report are there, too."""
        runtime = self.task.get("runtime") or {}
        curves = self.nodes[0].curves if self.nodes else {}
        reporting = {device for quantity, device in curves if quantity.kind is Kind.GPU}
        gpu_type = str(runtime.get("gpu_type") or "").partition(",")[0].strip()
        cores, gpus = _number(runtime, "cpu_cores"), _number(runtime, "gpu_count")
        return Machine(
            int(cores) if cores else None,
            _number(runtime, "memory_gb"),
            max(int(gpus or 0), len(reporting)),
            gpu_type or None,
            _number(runtime, "gpu_memory"),
        )


async def find_job(backend: Backend, caller: Identity, id: str, *, project: str | None = None) -> Job:
    """The caller's job of this id, which may be a UUID with dashes; with `project`, by id or name, only if in it.

    Refused NO_PROJECT or NO_JOB.
    """
    documents = backend.documents_of(caller.company)
    in_project = None if project is None else await _find_project(documents, project)
    await backend.last_metrics.settle(caller.company, ids=_ids(id))
    task = await documents.find_one("tasks", {"id": {"$in": _ids(id)}}, projection=_FIELDS)
    if task is None or (in_project is not None and task.get("project") != in_project["id"]):
        raise Refused(Problem.NO_JOB, f"there is no training job {id}")
    owner = Owner(caller.company, task["id"])
    nodes = await nodes_of(backend.events, owner) or await _loggers(backend, owner)
    return Job(owner, unescape_keys(task), in_project, nodes)


async def _loggers(backend: Backend, owner: Owner) -> list[Node]:
    """Where no resources were reported, the workers that logged, in the order of their first lines."""
    logs = await backend.events.log_sizes(owner)
    ordered = sorted(logs.items(), key=lambda one: (one[1].first, one[0]))
    return [Node(worker or f"worker-{n}", {worker}, log.first, log.first) for n, (worker, log) in enumerate(ordered)]


async def _find_project(documents: CompanyDocuments, wanted: str) -> Document:
    found = await documents.find("projects", {"$or": [{"id": {"$in": _ids(wanted)}}, {"name": wanted}]})
    if not found:
        raise Refused(Problem.NO_PROJECT, f"there is no project {wanted}")
    return next((project for project in found if project["id"] == wanted), found[0])


def _ids(id: str) -> list[str]:
    """What a document may have for id: UUIDs are stored without dashes."""
    return [id, id.replace("-", "").lower()] if _DASHED.fullmatch(id) else [id]


def _number(runtime: Mapping[str, Any], name: str) -> float | None:
    """The (first) number of a runtime property, such as 8, "8" or "80GB, 80GB"."""
    found = _NUMBER.search(str(runtime.get(name, "")))
    return float(found[0]) if found is not None else None
