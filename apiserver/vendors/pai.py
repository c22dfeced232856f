"""Alibaba Cloud PAI-DLC's GetJobMetrics (version 2020-12-03): one metric of each pod of a job, averaged by steps.

Usages are in percent, rates in MB a second (of 2²⁰ bytes, as the SDK reports them). A GPU metric is the mean over the
pod's GPUs. Steps count from StartTime; steps without reports are left out.

The vendor's document has no error codes, so they follow the patterns of its gateway. Its own clients sign requests
(`ACS3-HMAC-SHA256`). This server stores only hashes of secrets and so cannot check the signature: a signed request also
needs a token.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from apiserver.common.times import epoch_millis, now_ms
from apiserver.events.queries import Grid
from apiserver.vendors.jobs import find_job
from apiserver.vendors.measures import MEMORY_USAGE, mean_of
from apiserver.vendors.monitoring.curves import curves_of
from apiserver.vendors.monitoring.quantities import Quantity
from apiserver.vendors.refusals import Problem, Refused
from apiserver.vendors.routes import ErrorAnswer, TheCall, authorization_for, refuse_other_paths, vendor_route

_HOUR = 3_600_000
_UNITS = {"s": 1_000, "m": 60_000, "h": _HOUR, "d": 24 * _HOUR}
_STEP = re.compile(r"([0-9]{1,9})([smhd]?)")
#: How the Authorization header of a signed request begins.
_SIGNED = ("acs ", "acs3-", "acs4-")
#: The headers that may have a token. The query may have one, too.
_TOKEN_HEADERS = ("x-acs-bearer-token", "x-acs-security-token")


class MetricType(StrEnum):
    """The metrics of the API."""

    GPU_CORE_USAGE = "GpuCoreUsage"
    GPU_MEMORY_USAGE = "GpuMemoryUsage"
    CPU_CORE_USAGE = "CpuCoreUsage"
    MEMORY_USAGE = "MemoryUsage"
    NETWORK_INPUT_RATE = "NetworkInputRate"
    NETWORK_OUTPUT_RATE = "NetworkOutputRate"
    DISK_READ_RATE = "DiskReadRate"
    DISK_WRITE_RATE = "DiskWriteRate"


#: The measure for each metric.
_METRICS = {
    MetricType.GPU_CORE_USAGE: mean_of(Quantity.GPU_UTILIZATION),
    MetricType.GPU_MEMORY_USAGE: mean_of(Quantity.GPU_MEMORY_USAGE),
    MetricType.CPU_CORE_USAGE: mean_of(Quantity.CPU_USAGE),
    MetricType.MEMORY_USAGE: MEMORY_USAGE,
    MetricType.NETWORK_INPUT_RATE: mean_of(Quantity.NETWORK_RECEIVED),
    MetricType.NETWORK_OUTPUT_RATE: mean_of(Quantity.NETWORK_SENT),
    MetricType.DISK_READ_RATE: mean_of(Quantity.DISK_READ),
    MetricType.DISK_WRITE_RATE: mean_of(Quantity.DISK_WRITTEN),
}


class Metric(BaseModel):
    """The average of one step."""

    Time: int = Field(description="When the step begins, in epoch milliseconds")
    Value: float


class PodMetric(BaseModel):
    """What one pod reported."""

    PodId: str
    Metrics: list[Metric]


class GetJobMetricsResponse(BaseModel):
    """The monitoring data of a job."""

    JobId: str
    PodMetrics: list[PodMetric]
    RequestId: str


class PaiError(BaseModel):
    """Why the request is refused."""

    RequestId: str
    HostId: str
    Code: str
    Message: str


ERRORS = {
    Problem.NO_CREDENTIALS: (401, "MissingSecurityToken"),
    Problem.BAD_SCHEME: (403, "SignatureDoesNotMatch"),
    Problem.BAD_CREDENTIALS: (403, "InvalidSecurityToken.Malformed"),
    Problem.EXPIRED: (403, "InvalidSecurityToken.Expired"),
    Problem.FORBIDDEN: (403, "Forbidden"),
    Problem.MISSING: (400, "Missing{parameter}"),
    Problem.INVALID: (400, "Invalid{parameter}"),
    Problem.NO_PATH: (404, "InvalidApi.NotFound"),
    Problem.NO_JOB: (404, "InvalidJobId.NotFound"),
    Problem.OVERLOADED: (429, "Throttling.User"),
    Problem.UNAVAILABLE: (503, "ServiceUnavailable"),
}
INTERNAL = (500, "InternalError")


def _error_answer(refused: Refused, request: Request, id: str) -> ErrorAnswer:
    status, code = ERRORS.get(refused.problem, INTERNAL)
    body = {
        "RequestId": id,
        "HostId": request.url.netloc,
        "Code": code.format(parameter=refused.parameter or "Parameter"),
        "Message": refused.message,
    }
    retry = {} if refused.retry_after is None else {"x-acs-retry-after": str(refused.retry_after * 1000)}
    return ErrorAnswer(status, body, retry)


def _authorization(request: Request) -> str | None:
    said = request.headers.get("authorization", "").lower()
    if said and not said.startswith(_SIGNED):
        return None
    tokens = (request.query_params.get("Token"), *map(request.headers.get, _TOKEN_HEADERS))
    return next((authorization_for(token) for token in tokens if token), None)


router = APIRouter(
    tags=["PAI"],
    route_class=vendor_route(_authorization, _error_answer, id_header="x-acs-request-id"),
    responses={"default": {"model": PaiError, "description": "Why the request is refused"}},
)


@router.get("/api/v1/jobs/{JobId}/metrics", name="GetJobMetrics", response_model=GetJobMetricsResponse)
async def get_job_metrics(
    call: TheCall,
    job_id: Annotated[str, Path(alias="JobId", pattern=r"^[A-Za-z0-9_-]{1,64}$")],
    metric_type: Annotated[MetricType, Query(alias="MetricType")],
    start_time: Annotated[str | None, Query(alias="StartTime", description="UTC; an hour ago by default")] = None,
    end_time: Annotated[str | None, Query(alias="EndTime", description="UTC; now by default")] = None,
    time_step: Annotated[str, Query(alias="TimeStep", description="Minutes, or with a unit: 30s, 5m, 1h")] = "5",
    token: Annotated[str | None, Query(alias="Token", description="A token, or key:secret")] = None,
) -> Response:
    now = now_ms()
    start, end = _time("StartTime", start_time, now - _HOUR), _time("EndTime", end_time, now)
    grid = _grid(start, end, _step(time_step))
    job = await find_job(call.backend, call.caller, job_id)
    most = call.backend.bounds.pai_steps
    if grid.steps * len(job.nodes) > most:
        reason = f"{len(job.nodes)} pods would have {grid.steps} steps each, and may have {most} together"
        raise Refused(Problem.INVALID, reason, parameter="TimeStep")
    metric = _METRICS[metric_type]
    read = await curves_of(call.backend.events, job.owner, job.nodes, metric.quantities, grid)

    def answer() -> dict[str, Any]:
        pods = []
        for node, curves in zip(job.nodes, read, strict=True):
            curve = metric.read(curves, job.machine)
            pairs = zip(grid.times(curve.steps).tolist(), curve.values.tolist(), strict=True)
            metrics = [{"Time": time, "Value": value} for time, value in pairs]
            pods.append({"PodId": f"{job_id}-worker-{node.number}", "Metrics": metrics})
        return {"JobId": job_id, "PodMetrics": pods, "RequestId": call.id}

    return await call.answer(answer)


refuse_other_paths(router, "/api/v1/jobs/{path:path}")


def _time(name: str, text: str | None, default: int) -> int:
    """An ISO time in epoch milliseconds. Without an offset it is UTC."""
    if not text:
        return default
    time = epoch_millis(text)
    if time is None:
        raise Refused(Problem.INVALID, "expected a UTC time such as 2020-11-08T16:00:00Z", parameter=name)
    return time


def _step(text: str) -> int:
    """A number of minutes, or a number with a unit, in milliseconds."""
    found = _STEP.fullmatch(text or "5")
    if found is None or not int(found[1]):
        raise Refused(Problem.INVALID, "expected minutes, or a number with a unit: 30s, 5m, 1h", parameter="TimeStep")
    return int(found[1]) * _UNITS[found[2] or "m"]


def _grid(start: int, end: int, step: int) -> Grid:
    if start >= end:
        raise Refused(
            Problem.INVALID, "it must be before EndTime, and is an hour ago by default", parameter="StartTime"
        )
    return Grid.of(start, end - 1, step)
