"""Jobs: tasks as vendors' APIs see them, with their project, times, nodes and machines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.common.times import epoch_millis
from apiserver.events.model import LogSize, Owner
from apiserver.rpc.call import Identity
from apiserver.services.backend import Backend
from apiserver.services.documents.keys import unescape_keys
from apiserver.stores.documents.query import AnyOf, Document, In
from apiserver.stores.documents.scoped import VisibleDocuments
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.vendors.monitoring.nodes import Node, nodes_of
from apiserver.vendors.monitoring.quantities import Kind
from apiserver.vendors.refusals import Problem, Refused

_FIELDS = (
    *("id", "name", "project", "status", "status_message", "status_reason"),
    *("created", "started", "completed", "last_update", "runtime"),
)
_DASHED = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBERED = re.compile(r"worker-(0|[1-9]\d{0,8})")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?(?![0-9eE,])")


@dataclass(slots=True, frozen=True)
class Machine:
    """The machine of a node, from `task.runtime`, where the SDK stores it at each start. Unknown is None, or 0 GPUs."""

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
    logs: Mapping[str, LogSize] | None = None
    """How much each worker logged; None if it was not looked up."""

    @property
    def first(self) -> int | None:
        """The job's start or its first report, whichever is earlier; None before both."""
        begins = [epoch_millis(self.task.get("started")), *(node.first for node in self.nodes)]
        return min((begin for begin in begins if begin is not None), default=None)

    @property
    def last(self) -> int | None:
        """The job's end or its last report, whichever is later; inclusive. None before both."""
        completed = epoch_millis(self.task.get("completed"))
        ends = [None if completed is None else completed - 1, *(node.last for node in self.nodes)]
        return max((end for end in ends if end is not None), default=None)

    def node(self, name: str) -> int:
        """The index in `nodes` of the node with this name, or else the one with the number in `worker-<number>`.

        A job without reports counts as one with a node 0. Raises Refused (NO_NODE) for other names.
        """
        numbered = _NUMBERED.fullmatch(name)
        number = int(numbered[1]) if numbered is not None else None
        if not self.nodes and number == 0:
            return 0
        by_name = [n for n, node in enumerate(self.nodes) if node.name == name]
        found = by_name or [n for n, node in enumerate(self.nodes) if node.number == number]
        if not found:
            raise Refused(Problem.NO_NODE, f"the training job {self.owner.id} has no task {name}")
        return found[0]

    async def logs_of(self, store: LogStore, number: int) -> dict[str, LogSize]:
        """How much each worker of a node logged. Workers that belong to no node count for the first one."""
        logs = await store.log_sizes(self.owner) if self.logs is None else self.logs
        nodes = {worker: n for n, node in reversed([*enumerate(self.nodes)]) for worker in node.workers}
        return {worker: size for worker, size in logs.items() if nodes.get(worker, 0) == number}

    @property
    def machine(self) -> Machine:
        """The machine of its nodes. If nodes differ, the last one to say so counts. GPUs that report count, too."""
        runtime = self.task.get("runtime") or {}
        curves = self.nodes[0].series if self.nodes else {}
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
    """The job with this id, which may have a UUID's dashes; with `project` (an id or a name) only a job in it.

    Raises Refused (NO_PROJECT or NO_JOB).
    """
    documents = backend.visible_to(caller)
    in_project = None if project is None else await _find_project(documents, project)
    await backend.last_metrics.settle(caller.company, ids=_ids(id))
    task = next(iter(await documents.find_kept("tasks", _ids(id), _FIELDS)), None)
    if task is None or (in_project is not None and task.get("project") != in_project["id"]):
        raise Refused(Problem.NO_JOB, f"there is no training job {id}")
    owner = Owner(task["company"], task["id"])
    nodes = await nodes_of(backend.events, owner)
    if nodes:
        return Job(owner, unescape_keys(task), in_project, nodes)
    logs = await backend.events.log_sizes(owner)
    return Job(owner, unescape_keys(task), in_project, _loggers(logs), logs)


def _loggers(logs: Mapping[str, LogSize]) -> list[Node]:
    """The nodes of a job without resource reports: the workers that logged, in the order of their first lines."""
    ordered = sorted(logs.items(), key=lambda one: (one[1].first, one[0]))
    return [Node(worker or f"worker-{n}", n, {worker}, log.first, log.first) for n, (worker, log) in enumerate(ordered)]


async def _find_project(documents: VisibleDocuments, id_or_name: str) -> Document:
    projects = await documents.find("projects", AnyOf([{"id": In(_ids(id_or_name))}, {"name": id_or_name}]))
    if not projects:
        raise Refused(Problem.NO_PROJECT, f"there is no project {id_or_name}")
    return next((project for project in projects if project["id"] == id_or_name), projects[0])


def _ids(id: str) -> list[str]:
    """The ids that a document may have for this one: UUIDs are stored without dashes."""
    return [id, id.replace("-", "").lower()] if _DASHED.fullmatch(id) else [id]


def _number(runtime: Mapping[str, Any], name: str) -> float | None:
    """The first number in a runtime property, such as 8, "8" or "80GB, 80GB"; None if there is none."""
    found = _NUMBER.match(str(runtime.get(name, "")))
    return float(found[0]) if found is not None else None
