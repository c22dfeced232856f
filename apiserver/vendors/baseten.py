"""Baseten's training metrics of a job: the curves of its leader and of each node, with the job itself.

The vendor's document has POST with the scheme Api-Key. Its newer clients use GET and the scheme Bearer, so these work,
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response, Security
from fastapi.security import APIKeyHeader

from apiserver.common.times import epoch_millis, iso_millis
from apiserver.vendors.baseten_curves import NodeCurves, no_curves, read
from apiserver.vendors.baseten_schemas import (
    BasetenError,
    GetTrainingJobMetricsRequestV1,
    GetTrainingJobMetricsResponseV1,
)
from apiserver.vendors.jobs import Job, Machine, find_job
from apiserver.vendors.refusals import Problem, Refused
from apiserver.vendors.routes import ErrorAnswer, TheCall, authorization_for, refuse_other_paths, vendor_route

_MIB_A_GIB = 1024


ERRORS = {
    Problem.NO_CREDENTIALS: (401, "UNAUTHORIZED"),
    Problem.BAD_SCHEME: (401, "UNAUTHORIZED"),
    Problem.BAD_CREDENTIALS: (401, "UNAUTHORIZED"),
    Problem.EXPIRED: (401, "UNAUTHORIZED"),
    Problem.FORBIDDEN: (403, "FORBIDDEN"),
    Problem.MISSING: (400, "VALIDATION_ERROR"),
    Problem.INVALID: (400, "VALIDATION_ERROR"),
    Problem.NO_PATH: (404, "NOT_FOUND"),
    Problem.NO_PROJECT: (404, "NOT_FOUND"),
    Problem.NO_JOB: (404, "NOT_FOUND"),
    Problem.TOO_SLOW: (408, "REQUEST_TIMEOUT"),
    Problem.TOO_LARGE: (413, "VALIDATION_ERROR"),
    Problem.OVERLOADED: (429, "TOO_MANY_REQUESTS"),
    Problem.UNAVAILABLE: (503, "SERVICE_UNAVAILABLE"),
}
INTERNAL = (500, "INTERNAL_SERVER_ERROR")
_SCHEMES = ("api-key", "bearer")


def _error_answer(refused: Refused, request: Request, id: str) -> ErrorAnswer:
    status, code = ERRORS.get(refused.problem, INTERNAL)
    return ErrorAnswer(status, {"code": code, "message": refused.message})


def _authorization(request: Request) -> str | None:
    scheme, _, key = request.headers.get("authorization", "").strip().partition(" ")
    return authorization_for(key) if scheme.lower() in _SCHEMES else None


router = APIRouter(
    tags=["Baseten"],
    route_class=vendor_route(_authorization, _error_answer),
    dependencies=[Security(APIKeyHeader(name="Authorization", scheme_name="ApiKeyAuth", auto_error=False))],
    responses={"default": {"model": BasetenError, "description": "Why the request is refused"}},
)


# Names of projects have slashes, so the pattern is a path.
_PATH = "/v1/training_projects/{training_project_id:path}/jobs/{training_job_id}/metrics"
ProjectId = Annotated[str, Path(max_length=1024, description="A project's id or name")]
JobId = Annotated[str, Path(max_length=256, description="A task's id")]


async def _job_of(call: TheCall, training_project_id: ProjectId, training_job_id: JobId) -> Job:
    return await find_job(call.backend, call.caller, training_job_id, project=training_project_id)


TheJob = Annotated[Job, Depends(_job_of)]


@router.post(_PATH, name="get_training_job_metrics", response_model=GetTrainingJobMetricsResponseV1)
async def get_training_job_metrics(call: TheCall, job: TheJob, asked: GetTrainingJobMetricsRequestV1) -> Response:
    start, stop = asked.start_epoch_millis, asked.end_epoch_millis
    if start is not None and stop is not None and start > stop:
        raise Refused(Problem.INVALID, "it must not be after end_epoch_millis", parameter="start_epoch_millis")
    step, all_points = asked.step_seconds and asked.step_seconds * 1000, call.backend.bounds.baseten_points
    nodes = await read(call.backend.events, job, start, stop, step, all_points=all_points)
    return await call.answer(lambda: _answer(job, nodes))


# Not in the vendor's document, but used by its newer clients.
@router.get(_PATH, name="get_training_job_metrics_by_query", response_model=GetTrainingJobMetricsResponseV1)
async def get_training_job_metrics_by_query(
    call: TheCall,
    job: TheJob,
    start_epoch_millis: Annotated[int | None, Query()] = None,
    end_epoch_millis: Annotated[int | None, Query()] = None,
    step_seconds: Annotated[int | None, Query(ge=1)] = None,
) -> Response:
    wanted = GetTrainingJobMetricsRequestV1(
        start_epoch_millis=start_epoch_millis, end_epoch_millis=end_epoch_millis, step_seconds=step_seconds
    )
    return await get_training_job_metrics(call, job, wanted)


refuse_other_paths(router, "/v1/training_projects/{path:path}")


def _answer(job: Job, nodes: Sequence[NodeCurves]) -> dict[str, Any]:
    metrics = [node.metrics() for node in nodes]
    leader = nodes[0] if nodes else no_curves(job.machine)
    return {
        **(metrics[0] if metrics else leader.metrics()),
        "training_job": _job(job),
        "cache": leader.cache(),
        "per_node_metrics": [
            {"node_id": node.name, "metrics": of_node} for node, of_node in zip(job.nodes, metrics, strict=True)
        ],
    }


_FAILED = "TRAINING_JOB_FAILED"
_STATUSES = {
    "created": "TRAINING_JOB_CREATED",
    "queued": "TRAINING_JOB_PENDING",
    "in_progress": "TRAINING_JOB_RUNNING",
    "stopped": "TRAINING_JOB_STOPPED",
    **dict.fromkeys(("completed", "closed", "publishing", "published"), "TRAINING_JOB_COMPLETED"),
    **dict.fromkeys(("failed", "unknown"), _FAILED),
}


def _job(job: Job) -> dict[str, Any]:
    task, project = job.task, job.project or {}
    failed = task["status"] == "failed"
    return {
        "id": task["id"],
        "created_at": _time(task.get("created")),
        "current_status": _STATUSES.get(task["status"], _FAILED),
        "error_message": (task.get("status_message") or task.get("status_reason") or None) if failed else None,
        "instance_type": _instance_type(job.machine),
        "updated_at": _time(task.get("last_update") or task.get("created")),
        "training_project_id": project.get("id", ""),
        "training_project": {"id": project.get("id", ""), "name": project.get("name", "")},
        "name": task.get("name"),
    }


def _time(text: Any) -> str:
    """A task's time in the form of all times here: with milliseconds and a Z."""
    return iso_millis(epoch_millis(text) or 0)


def _instance_type(machine: Machine) -> dict[str, Any]:
    cores, memory = machine.cores or 0, machine.memory_gib or 0
    gpus = f"{machine.gpu_type or 'GPU'} x{machine.gpus}, " if machine.gpus else ""
    return {
        "id": f"{machine.gpus}x{cores}x{memory:g}",
        "name": f"{gpus}{cores} cores, {memory:g} GiB",
        "memory_limit_mib": round(memory * _MIB_A_GIB),
        "millicpu_limit": cores * 1000,
        "gpu_count": machine.gpus,
        "gpu_type": machine.gpu_type,
        "gpu_memory_limit_mib": round(machine.gpu_memory_gib * _MIB_A_GIB) if machine.gpu_memory_gib else None,
    }
