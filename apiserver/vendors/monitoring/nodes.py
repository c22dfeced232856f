"""Finds the nodes that a job ran on, from the workers that reported resources and the ranks in series' names.

If any series has a rank, each rank is a node, also when it was started again with another worker name. Otherwise each
worker is a node. Nodes are sorted by rank, or else by the time of their first report.

With ranks, a scalar without one still belongs to a node. For example, these are reported:

- worker `a`: `:monitor:machine` cpu_usage, `:monitor:npu` npu_0_utilization
- worker `b`: `:monitor:machine:rank1` cpu_usage, `:monitor:npu` npu_0_utilization

The SDK leaves the rank out on the first node, so `a` is rank 0. All ranks that `b` reports are 1, so its NPU (a scalar
that its user added) belongs to rank 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import anyio.to_thread

from apiserver.events.model import EventType, Owner, WorkerSpan
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.vendors.monitoring.quantities import Quantity, Resource, monitored, resource_of


@dataclass(slots=True)
class Node:
    """One machine, or pod, of a job. Times are epoch milliseconds."""

    name: str
    """The name of its worker, with the rank if several nodes have the same name; `worker-NUMBER` if it has no name."""
    number: int
    """Its rank, or else its place in the list of nodes."""
    workers: set[str]
    first: int
    last: int
    series: dict[tuple[Quantity, int], list[WorkerSpan]] = field(default_factory=dict)
    """What it reported, by quantity and number of the device. If it was started again, of more than one worker."""

    def spans_of(self, quantities: Collection[Quantity]) -> Iterator[WorkerSpan]:
        """The spans of all series with these quantities."""
        return (span for (quantity, _), spans in self.series.items() if quantity in quantities for span in spans)


async def nodes_of(store: EventStore, owner: Owner) -> list[Node]:
    """The nodes that reported resources, the one with the least rank first."""
    selection = monitored(await store.series(owner, (EventType.SCALAR,)))
    if not selection:
        return []
    spans = await store.worker_spans(SeriesQuery(owner, EventType.SCALAR, selection))
    return await anyio.to_thread.run_sync(nodes, spans)  # there may be thousands


def nodes(spans: Iterable[WorkerSpan]) -> list[Node]:
    """The nodes that reported the spans, in order."""
    about = [(resource, span) for span in spans if (resource := resource_of(span.metric, span.variant)) is not None]
    by_key: dict[int | str, list[tuple[Resource, WorkerSpan]]] = {}
    for resource, span in _said_once(about):
        by_key.setdefault(span.worker if resource.rank is None else resource.rank, []).append((resource, span))
    # The keys are either all ranks or all names.
    ordered = sorted(
        by_key.items(),
        key=lambda node: (node[0] if isinstance(node[0], int) else 0, min(span.first for _, span in node[1]), node[0]),
    )
    nodes = [_node(key if isinstance(key, int) else n, of_node) for n, (key, of_node) in enumerate(ordered)]
    names = Counter(node.name for node in nodes)
    for node in nodes:
        if names[node.name] > 1:
            node.name = f"{node.name}:rank{node.number}"
        node.name = node.name or f"worker-{node.number}"
    return nodes


def _said_once(about: Sequence[tuple[Resource, WorkerSpan]]) -> list[tuple[Resource, WorkerSpan]]:
    """The resources and spans, each with a rank if any has one.

    The first node may report the same twice, as `:monitor:machine` cpu_usage and as `:monitor:cpu_usage` rank 0. Then
    the one without a rank is left out.
    """
    ranked = {resource for resource, _ in about if resource.rank is not None}
    if not ranked:
        return list(about)
    ranks = _ranks(about)
    others = [
        (resource._replace(rank=ranks.get(span.worker, 0)), span) for resource, span in about if resource.rank is None
    ]
    return [
        *((resource, span) for resource, span in about if resource.rank is not None),
        *((resource, span) for resource, span in others if resource not in ranked),
    ]


def _ranks(about: Iterable[tuple[Resource, WorkerSpan]]) -> dict[str, int]:
    """The rank of each worker that reports just one.

    A worker that reports the same with a rank above 0 and without one is left out: two nodes have its name.
    """
    resources_of: dict[str, set[Resource]] = {}
    for resource, span in about:
        resources_of.setdefault(span.worker, set()).add(resource)
    rank_of = {}
    for worker, resources in resources_of.items():
        ranks = {resource.rank for resource in resources if resource.rank is not None}
        if len(ranks) == 1 and not any(
            resource.rank and resource._replace(rank=None) in resources for resource in resources
        ):
            rank_of[worker] = ranks.pop()
    return rank_of


def _node(number: int, reported: Sequence[tuple[Resource, WorkerSpan]]) -> Node:
    earliest = min(reported, key=lambda one: (one[1].first, one[1].worker))[1]
    node = Node(
        earliest.worker,
        number,
        {span.worker for _, span in reported},
        earliest.first,
        max(span.last for _, span in reported),
    )
    for resource, span in reported:
        node.series.setdefault((resource.quantity, resource.device), []).append(span)
    return node
