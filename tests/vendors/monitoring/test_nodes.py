"""Which node reported what."""

from __future__ import annotations

from apiserver.events.model import WorkerSpan
from apiserver.vendors.monitoring.nodes import nodes

CPU, NPU, GPU = (
    (":monitor:machine", "cpu_usage"),
    (":monitor:npu", "npu_0_utilization"),
    (":monitor:gpu", "gpu_1_mem_usage"),
)


def span(worker: str, name: tuple[str, str], *, rank: int | None = None, first: int = 0) -> WorkerSpan:
    metric, variant = name
    return WorkerSpan(metric if rank is None else f"{metric}:rank{rank}", variant, worker, 3, first, first + 10)


def found(*spans: WorkerSpan) -> dict[str, set[tuple[str, str]]]:
    """The nodes in their order, and by whom they reported what."""
    return {
        node.name: {(one.worker, quantity.name) for (quantity, _), spans in node.series.items() for one in spans}
        for node in nodes(spans)
    }


def test_without_ranks_nodes_are_workers_in_the_order_of_their_first_reports() -> None:
    spans = [span("b", CPU, first=5), span("a", CPU, first=9), span("a", NPU, first=1), span("c", CPU, first=5)]
    assert found(*spans) == {
        "a": {("a", "CPU_USAGE"), ("a", "NPU_UTILIZATION")},
        "b": {("b", "CPU_USAGE")},
        "c": {("c", "CPU_USAGE")},
    }
    assert list(found(*spans)) == ["a", "b", "c"]


def test_nodes_come_in_the_order_of_their_ranks() -> None:
    spans = [span("c", CPU, rank=10, first=1), span("b", CPU, rank=2, first=2), span("a", CPU, first=3)]
    assert list(found(*spans)) == ["a", "b", "c"]


def test_what_has_no_rank_is_of_its_workers_node() -> None:
    spans = [span("a", CPU), span("b", CPU, rank=1), span("a", NPU), span("b", NPU)]
    assert found(*spans) == {
        "a": {("a", "CPU_USAGE"), ("a", "NPU_UTILIZATION")},
        "b": {("b", "CPU_USAGE"), ("b", "NPU_UTILIZATION")},
    }


def test_what_has_no_rank_and_comes_from_elsewhere_is_of_the_first_node() -> None:
    spans = [span("a", CPU), span("b", CPU, rank=1), span("elsewhere", NPU)]
    assert found(*spans)["a"] == {("a", "CPU_USAGE"), ("elsewhere", "NPU_UTILIZATION")}


def test_workers_of_one_name_are_told_apart_by_their_ranks_alone() -> None:
    spans = [span("w", CPU), span("w", CPU, rank=1), span("w", NPU), span("w", GPU, rank=1)]
    assert found(*spans) == {
        "w:rank0": {("w", "CPU_USAGE"), ("w", "NPU_UTILIZATION")},
        "w:rank1": {("w", "CPU_USAGE"), ("w", "GPU_MEMORY_USAGE")},
    }


def test_what_is_said_with_the_rank_and_without_is_said_once() -> None:
    series = WorkerSpan(":monitor:cpu_usage", "rank 0", "a", 3, 0, 10)
    assert found(span("a", CPU), series, span("b", CPU, rank=1)) == {
        "a": {("a", "CPU_USAGE")},
        "b": {("b", "CPU_USAGE")},
    }
    (first, _) = nodes([span("a", CPU), series, span("b", CPU, rank=1)])
    assert [one for spans in first.series.values() for one in spans] == [series]


def test_what_is_no_resource_makes_no_node() -> None:
    assert nodes([span("a", ("loss", "train")), span("a", (":monitor:machine", "cpu_temperature"))]) == []
