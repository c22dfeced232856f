"""Huawei Cloud ModelArts: the running metrics of a task of a training job, and the preview of its log.

Metrics are percentages, one average per minute, and −1 for a minute without reports. The first minute has the job's
start or its first report, whichever is earlier. The last minute has its end or its last report, whichever is later. GPU
and NPU metrics are means over a node's devices.

Error codes and their statuses are from the vendor's list of error codes.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path, Request, Response, Security
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field

from apiserver.events.model import Float64Array
from apiserver.events.queries import Grid
from apiserver.reading.log_tail import tail
from apiserver.services.bounds import PREVIEW
from apiserver.vendors.jobs import Job, Machine, find_job
from apiserver.vendors.measures import MEMORY_USAGE, mean_of
from apiserver.vendors.monitoring.curves import Curve, Curves, curves_of
from apiserver.vendors.monitoring.quantities import Quantity
from apiserver.vendors.refusals import Problem, Refused
from apiserver.vendors.routes import ErrorAnswer, TheCall, authorization_for, refuse_other_paths, vendor_route

_MINUTE = 60_000
_NOTHING = -1.0
_DIGITS = 3
_HEADER = "X-Auth-Token"
#: The header in which the vendor's own clients send a temporary token, beside a signature that cannot be checked here.
_OTHER_HEADER = "X-Security-Token"

#: The metrics, all of which are always answered, in the document's order; and the measure for each.
_METRICS = {
    "cpuUsage": mean_of(Quantity.CPU_USAGE),
    "memUsage": MEMORY_USAGE,
    "gpuUtil": mean_of(Quantity.GPU_UTILIZATION),
    "gpuMemUsage": mean_of(Quantity.GPU_MEMORY_USAGE),
    "npuUtil": mean_of(Quantity.NPU_UTILIZATION),
    "npuMemUsage": mean_of(Quantity.NPU_MEMORY_USAGE),
}
_QUANTITIES = {quantity for metric in _METRICS.values() for quantity in metric.quantities}


class MetricObject(BaseModel):
    """One metric over the job's minutes."""

    metric: str = Field(description=", ".join(_METRICS))
    value: list[float] = Field(description="Averages by minute; -1 for a minute without data")


class ShowTrainingJobMetricsResponse(BaseModel):
    """The running metrics of a task."""

    metrics: list[MetricObject]


class ShowTrainingJobLogsPreviewResponse(BaseModel):
    """A task's log, or the latest part of it."""

    content: str
    current_size: int = Field(description="Bytes of the content", le=PREVIEW)
    full_size: int = Field(description="Bytes of the whole log")


class ModelArtsError(BaseModel):
    """Why the request is refused."""

    error_msg: str
    error_code: str
    error_solution: str


#: By problem: status, error code, and what the caller can do.
ERRORS = {
    Problem.NO_CREDENTIALS: (401, "ModelArts.0201", f"Add a token in the header {_HEADER}."),
    Problem.BAD_SCHEME: (401, "ModelArts.0203", f"Use a token in the header {_HEADER}."),
    Problem.BAD_CREDENTIALS: (401, "ModelArts.0203", "Use a valid token."),
    Problem.EXPIRED: (401, "ModelArts.0202", "Use a token that has not expired."),
    Problem.FORBIDDEN: (403, "ModelArts.2784", "Check the token."),
    Problem.MISSING: (400, "ModelArts.2788", "Check the request parameter."),
    Problem.INVALID: (400, "ModelArts.2788", "Check the request parameter."),
    Problem.NO_PATH: (404, "ModelArts.2836", "Check the path and the method."),
    Problem.NO_PROJECT: (404, "ModelArts.2786", "Use a project of the token's company."),
    Problem.NO_JOB: (400, "ModelArts.2775", "Check whether the training job is in this project."),
    Problem.NO_NODE: (400, "ModelArts.2788", "Use worker-0, or another worker that reported."),
    Problem.NO_LOG: (400, "ModelArts.2818", "Look at the log after it has been generated."),
    Problem.OVERLOADED: (429, "ModelArts.2799", "Try again later."),
    Problem.UNAVAILABLE: (503, "ModelArts.2952", "Try again later."),
}
INTERNAL = (500, "ModelArts.2950", "Look into the server's log.")


def _error_answer(refused: Refused, request: Request, id: str) -> ErrorAnswer:
    status, code, solution = ERRORS.get(refused.problem, INTERNAL)
    return ErrorAnswer(status, {"error_msg": refused.message, "error_code": code, "error_solution": solution})


def _authorization(request: Request) -> str | None:
    token = request.headers.get(_HEADER) or request.headers.get(_OTHER_HEADER)
    return authorization_for(token) if token else None


router = APIRouter(
    prefix="/v2/{project_id}/training-jobs",
    tags=["ModelArts"],
    route_class=vendor_route(_authorization, _error_answer, id_header="x-request-id"),
    dependencies=[Security(APIKeyHeader(name=_HEADER, auto_error=False))],
    responses={"default": {"model": ModelArtsError, "description": "Why the request is refused"}},
)

ProjectId = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$", description="A project's id or name")]
JobId = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$", description="A task's id")]


async def _job_of(call: TheCall, project_id: ProjectId, training_job_id: JobId) -> Job:
    return await find_job(call.backend, call.caller, training_job_id, project=project_id)


TheJob = Annotated[Job, Depends(_job_of)]
TaskId = Annotated[str, Path(min_length=1, max_length=256, description="worker-0, worker-1 …, or a worker's name")]


@router.get(
    "/{training_job_id}/metrics/{task_id:path}",
    name="ShowTrainingJobMetrics",
    response_model=ShowTrainingJobMetricsResponse,
)
async def show_training_job_metrics(call: TheCall, job: TheJob, task_id: TaskId) -> Response:
    number, grid = job.node(task_id), _grid(job, call.backend.bounds.minutes)
    node = job.nodes[number : number + 1] if grid is not None else []
    (curves,) = await curves_of(call.backend.events, job.owner, node, _QUANTITIES, grid) if node and grid else [{}]
    return await call.answer(lambda: {"metrics": _metrics(curves, job.machine, grid)})


@router.get(
    "/{training_job_id}/tasks/{task_id:path}/logs/preview",
    name="ShowTrainingJobLogsPreview",
    response_model=ShowTrainingJobLogsPreviewResponse,
)
async def show_training_job_logs_preview(call: TheCall, job: TheJob, task_id: TaskId) -> Response:
    logs = await job.logs_of(call.backend.events, job.node(task_id))
    size = sum(log.bytes for log in logs.values())
    if not size:
        raise Refused(Problem.NO_LOG, f"no log has been generated for the task {task_id}")
    content = await tail(call.backend.events, job.owner, logs, min(size, call.backend.bounds.preview_bytes))
    sizes = {"current_size": len(content), "full_size": size}
    return await call.answer(lambda: {"content": content.decode(), **sizes})


refuse_other_paths(router, "/{path:path}")


def _grid(job: Job, most: int) -> Grid | None:
    """The job's last minutes, up to so many; None before it began or reported anything."""
    if job.first is None or job.last is None:
        return None
    whole = Grid.of(job.first, max(job.first, job.last), _MINUTE)
    return whole._replace(start=whole.start + max(whole.steps - most, 0) * _MINUTE)


def _metrics(curves: Curves, machine: Machine, grid: Grid | None) -> list[dict[str, Any]]:
    return [
        {"metric": name, "value": _by_minute(metric.read(curves, machine), grid)} for name, metric in _METRICS.items()
    ]


def _by_minute(curve: Curve, grid: Grid | None) -> Float64Array:
    values = np.full(grid.steps if grid is not None else 0, _NOTHING)
    values[curve.steps] = np.round(curve.values, _DIGITS) + 0.0  # there is no -0
    return values
