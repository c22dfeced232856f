"""Writes points and log lines as servers did before there were blocks: a document each."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.events.log_text import sizes_of
from apiserver.events.model import EventBatch, EventType, LogColumns, Owner, ScalarColumns
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.migrations import ENGINE
from apiserver.stores.events.elasticsearch.old_scalars import INFINITE, MINUS_INFINITE, NAN
from apiserver.stores.migrations import steps_of

Item = tuple[EventType, Owner, str, str, dict[str, Any]]

#: The last step that changed the templates of old indices.
LAST_STEP = 5


class OldServer:
    """Takes batches. `with_sizes`: lines have their sizes, which servers of the first versions left out."""

    def __init__(self, cluster: Cluster, *, with_sizes: bool = True) -> None:
        self._cluster = cluster
        self._with_sizes = with_sizes
        self._made: set[str] = set()
        self._sequence = (time.time_ns() // 1000 - 1_577_836_800_000_000) << 10

    async def add(self, batch: EventBatch) -> None:
        """Keep the batch's points and lines."""
        await self.write([*self.items(batch)])

    def items(self, batch: EventBatch) -> Iterator[Item]:
        """Each event as type, owner, action, id and document, in the order they came."""
        for group in batch.scalars:
            yield from _points(group, batch.received)
        sent: Counter[tuple[Owner, bytes]] = Counter()
        for logs in batch.logs:
            body = logs.digest or os.urandom(16)
            first = sent[logs.owner, body]
            sent[logs.owner, body] += len(logs.messages)
            yield from self._lines(logs, batch.received, body, first)

    async def write(self, items: list[Item]) -> None:
        """Keep some items."""
        for (type, company), some in _by_index(items).items():
            index = names.index(self._cluster.prefix, type, company)
            await self._make(index, type)
            lines = []
            for _, owner, action, id, document in some:
                key = names.owner_key(owner)
                lines += [{action: {"_id": id, "routing": key}}, {**document, "owner": key}]
            outcomes = await self._cluster.bulk(index, b"".join([orjson.dumps(line) + b"\n" for line in lines]))
            assert all(one["status"] < 300 or one["status"] == 409 for one in outcomes), outcomes
            self._cluster.wrote([index])

    async def _make(self, index: str, type: EventType) -> None:
        if index not in self._made:
            template = _template(type)
            settings = {**template["settings"]["index"], "blocks": {"write": False}}
            await self._cluster.client.options(ignore_status=400).indices.create(
                index=index, mappings=template["mappings"], settings={"index": settings}
            )
            self._made.add(index)

    def _lines(self, logs: LogColumns, received: int, body: bytes, first: int) -> Iterator[Item]:
        key, count = names.owner_key(logs.owner), len(logs.messages)
        hashed = names.series_hash(key, body.hex())
        for n in range(count):
            id = names.id_of(hashed, first + n)
            self._sequence += 1 << 10
            document: dict[str, Any] = {
                "received": received,
                "timestamp": int(logs.timestamps[n]),
                "sequence": self._sequence,
                "worker": logs.workers[n],
                "metric": logs.metrics[n],
                "variant": logs.variants[n],
                "series": names.series_key(names.series_hash(key, logs.metrics[n], logs.variants[n])),
                "message": logs.messages[n],
            }
            given = {"level": logs.levels[n], "iter": logs.iters[n]}
            document |= {name: value for name, value in given.items() if value is not None}
            if n in logs.extras:
                document["extra"] = logs.extras[n].decode()
            if self._with_sizes:
                (size,) = sizes_of([logs.messages[n]]).tolist()
                document |= {"size": size, **({"large": size} if size >= 2**14 else {})}
            yield EventType.LOG, logs.owner, "create", id, document


def _points(group: ScalarColumns, received: int) -> Iterator[Item]:
    hashed = names.series_hash(names.owner_key(group.owner), group.metric, group.variant)
    columns = (group.iters.tolist(), group.timestamps.tolist(), group.values.tolist())
    for iter, timestamp, value in zip(*columns, strict=True):
        special = NAN if math.isnan(value) else INFINITE if value > 0 else MINUS_INFINITE
        document = {
            "metric": group.metric,
            "variant": group.variant,
            "series": names.series_key(hashed),
            "worker": group.worker,
            "received": received,
            "iter": iter,
            "timestamp": timestamp,
            **({"value": value} if math.isfinite(value) else {"special": special}),
        }
        yield EventType.SCALAR, group.owner, "index", names.id_of(hashed, iter), document


def _by_index(items: list[Item]) -> dict[tuple[EventType, str], list[Item]]:
    found: dict[tuple[EventType, str], list[Item]] = {}
    for item in items:
        found.setdefault((item[0], item[1].company), []).append(item)
    return found


def _template(type: EventType) -> dict[str, Any]:
    path = f"/_index_template/{{prefix}}-{type.plural}"
    requests = [request for step in steps_of(ENGINE) if step.number <= LAST_STEP for request in step.content]
    template: dict[str, Any] = [request["body"] for request in requests if request["path"] == path][-1]["template"]
    return template
