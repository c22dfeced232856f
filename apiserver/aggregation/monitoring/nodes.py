"""The nodes that a job ran on: the workers that reported, each with the curves of its resources.

Nodes are told apart by their ranks where series say them, else by the workers' names; they come in the order of ranks,
then of their first reports. A node that runs anew under another name but with its old rank is the same node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from apiserver.aggregation.monitoring.quantities import Quantity, Resource, monitored, resource_of
from apiserver.events.model import EventType, Owner, WorkerSpan
from apiserver.stores.events.base import EventStore


@dataclass(slots=True)
class Node:
    """One machine, or pod, of a job. Times are epoch milliseconds."""

    name: str
    """Its worker's name, if it has one; of several nodes with the same one, also the rank."""
    workers: set[str]
    first: int
    last: int
    curves: dict[tuple[Quantity, int], list[WorkerSpan]] = field(default_factory=dict)
    """What it reported, by quantity and number of the device; of more than one worker if it ran anew."""


async def nodes_of(store: EventStore, owner: Owner) -> list[Node]:
    """The nodes that reported resources, the leader first."""
    selection = monitored(await store.series(owner, (EventType.SCALAR,)))
    return nodes(await store.worker_spans(owner, selection)) if selection else []


def nodes(spans: Iterable[WorkerSpan]) -> list[Node]:
    """The nodes that reported the spans, the leader first."""
    about = [(resource, span) for span in spans if (resource := resource_of(span.metric, span.variant)) is not None]
    by_key: dict[int | str, list[tuple[Resource, WorkerSpan]]] = {}
    for resource, span in _said_once(about):
        by_key.setdefault(span.worker if resource.rank is None else resource.rank, []).append((resource, span))
    # Keys are all ranks, or all names.
    ordered = sorted(by_key.items(), key=lambda one: (_rank(one[0]), min(span.first for _, span in one[1]), one[0]))
    found = [_node(of_node) for _, of_node in ordered]
    names = [node.name for node in found]
    for n, (node, (key, _)) in enumerate(zip(found, ordered, strict=True)):
        if names.count(node.name) > 1:
            node.name = f"{node.name}:rank{key}"
        node.name = node.name or f"worker-{n}"
    return found


def _rank(key: int | str) -> int:
    return key if isinstance(key, int) else 0


def _said_once(about: Sequence[tuple[Resource, WorkerSpan]]) -> list[tuple[Resource, WorkerSpan]]:
    """With ranks, those without one are of their worker's node, or the first, which may say the same with its rank."""
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
    """The ranks of the workers that say one; a name that says the same without it is that of another node, too."""
    said: dict[str, set[Resource]] = {}
    for resource, span in about:
        said.setdefault(span.worker, set()).add(resource)
    found = {}
    for worker, resources in said.items():
        ranks = {resource.rank for resource in resources if resource.rank is not None}
        if len(ranks) == 1 and not any(one.rank and one._replace(rank=None) in resources for one in resources):
            found[worker] = ranks.pop()
    return found


def _node(reported: Sequence[tuple[Resource, WorkerSpan]]) -> Node:
    earliest = min(reported, key=lambda one: (one[1].first, one[1].worker))[1]
    node = Node(
        earliest.worker,
        {span.worker for _, span in reported},
        earliest.first,
        max(span.last for _, span in reported),
    )
    for resource, span in reported:
        node.curves.setdefault((resource.quantity, resource.device), []).append(span)
    return node
