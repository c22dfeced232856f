"""Telling series of the SDK's resource monitor from others."""

from __future__ import annotations

import pytest

from apiserver.events.monitors import OTEL, is_monitor


@pytest.mark.parametrize(
    "metric", [":monitor:machine", ":monitor:gpu", ":monitor:machine:rank1", ":monitor:gpu:rank012"]
)
def test_metrics_of_machines_and_cards_are_the_monitors(metric: str) -> None:
    assert is_monitor(metric, "cpu_usage")
    assert is_monitor(metric, "of a user, too")


def test_a_metric_for_each_resource_is_the_monitors_if_its_variant_is_a_rank() -> None:
    assert is_monitor(":monitor:gpu_0_utilization", "rank 03")
    assert not is_monitor(":monitor:gpu_0_utilization", "mean")
    assert not is_monitor("accuracy", "rank 03")


def test_those_of_opentelemetry_are() -> None:
    assert is_monitor(OTEL + "hw.gpu.utilization", "gpu=0")
    assert is_monitor(OTEL + "two\nlines", "value")


@pytest.mark.parametrize(
    "metric",
    [
        "",
        "loss",
        "monitor:gpu",
        ":monitor:",
        ":monitor:gpus",
        ":monitor:otel",
        ":monitor:otel:",
        ":monitor:gpu:rank",
        ":monitor:gpu:rank1 ",
        "a:monitor:gpu",
    ],
)
def test_others_are_not(metric: str) -> None:
    assert not is_monitor(metric, "cpu_usage")
