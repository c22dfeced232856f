"""The nodes that a job ran on: the workers that reported, each with the series of its resources.

Nodes are told apart by their ranks where series say them, else by the workers' names; they come in the order of ranks,
then of their first reports. A node that runs anew under another name but with its old rank is the same node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import anyio.to_thread

from apiserver.aggregation.monitoring.quantities import Quantity, Resource, monitored, resource_of
from apiserver.events.model import EventType, Owner, WorkerSpan
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStore


@dataclass(slots=True)
class Node:
    """One machine, or pod, of a job. Times are epoch milliseconds."""

    name: str
    """Its worker's name, if it has one; of several nodes with the same one, also the rank."""
    number: int
    """Its rank, or else its place among the nodes."""
    workers: set[str]
    first: int
    last: int
    series: dict[tuple[Quantity, int], list[WorkerSpan]] = field(default_factory=dict)
    """What it reported, by quantity and number of the device; of more than one worker if it ran anew."""

    def spans_of(self, quantities: Collection[Quantity]) -> Iterator[WorkerSpan]:
        """All that it reported of these quantities."""
        return (span for (quantity, _), spans in self.series.items() if quantity in quantities for span in spans)


async def nodes_of(store: EventStore, owner: Owner) -> list[Node]:
    """The nodes that reported resources, the leader first."""
    selection = monitored(await store.series(owner, (EventType.SCALAR,)))
    if not selection:
        return []
    spans = await store.worker_spans(SeriesQuery(owner, EventType.SCALAR, selection))
    return await anyio.to_thread.run_sync(nodes, spans)  # there may be thousands


def nodes(spans: Iterable[WorkerSpan]) -> list[Node]:
    """The nodes that reported the spans, the leader first."""
    about = [(resource, span) for span in spans if (resource := resource_of(span.metric, span.variant)) is not None]
    by_key: dict[int | str, list[tuple[Resource, WorkerSpan]]] = {}
    for resource, span in _said_once(about):
        by_key.setdefault(span.worker if resource.rank is None else resource.rank, []).append((resource, span))
    # Keys are all ranks, or all names.
    ordered = sorted(by_key.items(), key=lambda one: (_rank(one[0]), min(span.first for _, span in one[1]), one[0]))
    found = [_node(key if isinstance(key, int) else n, of_node) for n, (key, of_node) in enumerate(ordered)]
    names = Counter(node.name for node in found)
    for node in found:
        if names[node.name] > 1:
            node.name = f"{node.name}:rank{node.number}"
        node.name = node.name or f"worker-{node.number}"
    return found


def _rank(key: int | str) -> int:
    return key if isinstance(key, int) else 0


def _said_once(about: Sequence[tuple[Resource, WorkerSpan]]) -> list[tuple[Resource, WorkerSpan]]:
    """What each node said, once.

    Where some say their rank, those who do not are the first node: it reports `:monitor:machine` while others report
    `:monitor:machine:rank1`. It may report the same as `rank 0` besides. What a worker with a rank reports without it,
    such as a scalar that its user added, is of its own node.
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
    """The ranks of those workers that say just one.

    Not of those that are two nodes by one name: they report the same both with a rank and without one.
    """
    said: dict[str, set[Resource]] = {}
    for resource, span in about:
        said.setdefault(span.worker, set()).add(resource)
    found = {}
    for worker, resources in said.items():
        ranks = {resource.rank for resource in resources if resource.rank is not None}
        if len(ranks) == 1 and not any(one.rank and one._replace(rank=None) in resources for one in resources):
            found[worker] = ranks.pop()
    return found


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
