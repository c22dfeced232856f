"""How much each owner has in the indices, by aggregations: nothing is read but columns of small numbers.

An index tells its bytes, but not whose they are. So they are shared out by events: a task with a tenth of the points of
a company has a tenth of the bytes. Points count for each block that has them: until blocks are compacted, a point that
was overwritten counts twice, and so does all that a chunk has taken over whose fragments are still to be removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import numpy as np

from apiserver.events.model import EventType, JsonObject, Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.blocks import BLOCK_TYPES
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import errors
from apiserver.stores.events.usage import LONGEST, TYPES, Usage, too_long

ESTIMATED = (
    "Elasticsearch tells bytes of indices only: they are shared out by numbers of events",
    "points and lines that were overwritten, or came into chunks a moment ago, may count twice",
    "numbers of series are estimates above some thousands",
)
FRAGMENTS, CHUNKS = "fragments", "chunks"
#: Up to so many series of an owner are counted exactly.
_PRECISION = 3000
_OWNERS_AT_ONCE = 2000
#: Seconds until a caller may ask again for what took too long.
_AGAIN = 600


class IndexSize(NamedTuple):
    """An index, with bytes of its primary shards, and documents."""

    name: str
    bytes: int
    documents: int


async def index_sizes(cluster: Cluster, patterns: Sequence[str]) -> list[IndexSize]:
    """The indices whose names match, by name."""
    parameters = (
        "filter_path=indices.*.primaries.store.size_in_bytes,indices.*.primaries.docs.count&ignore_unavailable=true"
    )
    with errors():
        answer = await cluster.client.perform_request(
            "GET", f"/{','.join(patterns)}/_stats/store,docs?{parameters}", headers={"accept": "application/json"}
        )
    stats_by_index = dict(answer.body.get("indices", {}))
    return [
        IndexSize(name, stats["primaries"]["store"]["size_in_bytes"], stats["primaries"]["docs"]["count"])
        for name, stats in sorted(stats_by_index.items())
    ]


class _OwnerTotal(NamedTuple):
    """What an owner has in one index."""

    owner: Owner
    events: int
    series: int
    parts: dict[str, int]


async def usage(cluster: Cluster, company: str | None = None) -> Usage:
    """What is kept of each owner, of a company or of all; EventStoreBusy."""
    indices: list[tuple[EventType, int, list[_OwnerTotal]]] = []
    for type in TYPES:
        is_blocks = type in BLOCK_TYPES
        for index in await index_sizes(cluster, [_pattern(cluster.prefix, type, company, is_blocks=is_blocks)]):
            totals = [total async for total in _owners(cluster, index.name, is_blocks=is_blocks)]
            if type is EventType.LOG:
                totals = [total._replace(series=0) for total in totals]
            indices.append((type, index.bytes, totals))
    return _joined(indices)


async def usage_in_time(cluster: Cluster, company: str) -> Usage:
    """The usage of a company; EventStoreBusy, also if it takes too long."""
    try:
        async with asyncio.timeout(LONGEST):
            return await usage(cluster, company)
    except TimeoutError:
        raise EventStoreBusy(too_long(LONGEST), retry_after=_AGAIN, overloaded=False) from None


def _joined(indices: Sequence[tuple[EventType, int, Sequence[_OwnerTotal]]]) -> Usage:
    owners = sorted({total.owner for _, _, totals in indices for total in totals})
    places = {owner: n for n, owner in enumerate(owners)}
    joined = Usage.of(owners)
    joined.estimated = ESTIMATED
    joined.parts = {name: np.zeros(len(owners), np.int64) for name in (FRAGMENTS, CHUNKS)}
    for type, bytes, totals in indices:
        rows, column = np.array([places[total.owner] for total in totals], np.int64), TYPES.index(type)
        events = np.array([total.events for total in totals], np.int64)
        np.add.at(joined.events[:, column], rows, events)
        np.add.at(joined.series[:, column], rows, np.array([total.series for total in totals], np.int64))
        shares = (events * (bytes / max(int(events.sum()), 1))).astype(np.int64)
        np.add.at(joined.bytes[:, column], rows, shares)
        for name, numbers in joined.parts.items():
            np.add.at(numbers, rows, np.array([total.parts.get(name, 0) for total in totals], np.int64))
    return joined


def _pattern(prefix: str, type: EventType, company: str | None, *, is_blocks: bool) -> str:
    """What matches the indices of a type, of a company or of all."""
    if company is not None:
        return names.blocks(prefix, type, company) if is_blocks else names.index(prefix, type, company)
    return names.blocks_of_all(prefix, type) if is_blocks else f"{prefix}-{type.plural}-*"


async def _owners(cluster: Cluster, index: str, *, is_blocks: bool) -> AsyncIterator[_OwnerTotal]:
    company = names.company_of(cluster.prefix, index)
    aggs: JsonObject = {"series": {"cardinality": {"field": "series", "precision_threshold": _PRECISION}}}
    if is_blocks:
        aggs |= {"events": {"sum": {"field": "count"}}, "chunks": {"value_count": {"field": "up_to"}}}
    walk = cluster.composite(index, {"match_all": {}}, ["owner"], routing=None, size=_OWNERS_AT_ONCE, aggs=aggs)
    async for bucket in walk:
        owner, documents = names.owner_of(company, bucket["key"]["owner"]), bucket["doc_count"]
        series = int(bucket["series"]["value"])
        if is_blocks:
            chunks = int(bucket["chunks"]["value"])
            parts = {FRAGMENTS: documents - chunks, CHUNKS: chunks}
            yield _OwnerTotal(owner, int(bucket["events"]["value"]), series, parts)
        else:
            yield _OwnerTotal(owner, documents, series, {})
