"""The requests and answers of Baseten's training metrics API, with the names in its document."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field, StrictInt


class GetTrainingJobMetricsRequestV1(BaseModel):
    """A period of time. Without an end, it is not bounded there."""

    end_epoch_millis: StrictInt | None = Field(None, description="Epoch milliseconds to end at")
    start_epoch_millis: StrictInt | None = Field(None, description="Epoch milliseconds to start at")
    step_seconds: StrictInt | None = Field(None, ge=1, description="Our addition: the length of a step")


class TrainingJobMetricV1(BaseModel):
    """A value at a time."""

    value: float
    timestamp: datetime


class StorageMetricsV1(BaseModel):
    """How much of a storage is used."""

    usage_bytes: list[TrainingJobMetricV1]
    utilization: list[TrainingJobMetricV1] = Field(description="As a fraction")


class TrainingJobMetricsV1(BaseModel):
    """The curves of one node."""

    gpu_memory_usage_bytes: dict[str, list[TrainingJobMetricV1]] = Field(description="By the GPU's rank")
    gpu_utilization: dict[str, list[TrainingJobMetricV1]] = Field(description="By the GPU's rank, as a fraction")
    cpu_usage: list[TrainingJobMetricV1] = Field(description="In cores")
    cpu_memory_usage_bytes: list[TrainingJobMetricV1]
    ephemeral_storage: StorageMetricsV1


class TrainingJobNodeMetricsV1(BaseModel):
    """A node and its curves."""

    node_id: str
    metrics: TrainingJobMetricsV1


class InstanceTypeV1(BaseModel):
    """The machine of a node; 0 or null means not known."""

    id: str
    name: str
    memory_limit_mib: int
    millicpu_limit: int
    gpu_count: int
    gpu_type: str | None
    gpu_memory_limit_mib: int | None


class TrainingProjectSummaryV1(BaseModel):
    """A project's id and name."""

    id: str
    name: str


class TrainingJobV1(BaseModel):
    """A job."""

    id: str
    created_at: datetime
    current_status: str
    error_message: str | None = None
    instance_type: InstanceTypeV1
    updated_at: datetime
    training_project_id: str
    training_project: TrainingProjectSummaryV1
    name: str | None = None


class GetTrainingJobMetricsResponseV1(TrainingJobMetricsV1):
    """The curves of the leader (the first node), those of each node, and the job."""

    training_job: TrainingJobV1
    cache: StorageMetricsV1 | None
    per_node_metrics: list[TrainingJobNodeMetricsV1]


class BasetenError(BaseModel):
    """Why the request is refused."""

    code: str
    message: str
