"""What Baseten's training metrics are asked by and answered with, by the names that its document gives."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, StrictInt


class MetricsRequest(BaseModel):
    """A period of time; without its ends, all of it."""

    model_config = ConfigDict(title="GetTrainingJobMetricsRequestV1")

    end_epoch_millis: StrictInt | None = Field(None, description="Epoch milliseconds to end at")
    start_epoch_millis: StrictInt | None = Field(None, description="Epoch milliseconds to start at")
    step_seconds: StrictInt | None = Field(None, ge=1, description="How long steps are; by default, as is needed")


class Metric(BaseModel):
    """A value at a time."""

    model_config = ConfigDict(title="TrainingJobMetricV1")

    value: float
    timestamp: datetime


class StorageMetrics(BaseModel):
    """What is used of a storage."""

    model_config = ConfigDict(title="StorageMetricsV1")

    usage_bytes: list[Metric]
    utilization: list[Metric] = Field(description="As a fraction")


class NodeMetrics(BaseModel):
    """The curves of one node."""

    model_config = ConfigDict(title="TrainingJobMetricsV1")

    gpu_memory_usage_bytes: dict[str, list[Metric]] = Field(description="By the GPU's rank")
    gpu_utilization: dict[str, list[Metric]] = Field(description="By the GPU's rank, as a fraction")
    cpu_usage: list[Metric] = Field(description="In cores")
    cpu_memory_usage_bytes: list[Metric]
    ephemeral_storage: StorageMetrics


class TrainingJobNode(BaseModel):
    """A node and its curves."""

    model_config = ConfigDict(title="TrainingJobNodeMetricsV1")

    node_id: str
    metrics: NodeMetrics


class InstanceType(BaseModel):
    """What a node is like; 0 or null is not known."""

    model_config = ConfigDict(title="InstanceTypeV1")

    id: str
    name: str
    memory_limit_mib: int
    millicpu_limit: int
    gpu_count: int
    gpu_type: str | None
    gpu_memory_limit_mib: int | None


class TrainingProject(BaseModel):
    """A project's id and name."""

    model_config = ConfigDict(title="TrainingProjectSummaryV1")

    id: str
    name: str


class TrainingJob(BaseModel):
    """A job."""

    model_config = ConfigDict(title="TrainingJobV1")

    id: str
    created_at: datetime
    current_status: str
    error_message: str | None = None
    instance_type: InstanceType
    updated_at: datetime
    training_project_id: str
    training_project: TrainingProject
    name: str | None = None


class MetricsResponse(NodeMetrics):
    """The curves of the leader, those of each node, and the job."""

    model_config = ConfigDict(title="GetTrainingJobMetricsResponseV1")

    training_job: TrainingJob
    cache: StorageMetrics | None
    per_node_metrics: list[TrainingJobNode]


class Error(BaseModel):
    """Why there is no answer."""

    code: str
    message: str
