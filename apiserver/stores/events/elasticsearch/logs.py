"""Log lines: pages in the order of their timestamps, and of their arrival where those are equal."""

from __future__ import annotations

from collections.abc import Collection

from apiserver.events.model import EventType, JsonObject, LogLine, LogPosition, Owner, Selection
from apiserver.stores.events.base import (
    PAGE_BYTES,
    TIMESTAMP_BYTES,
    bytes_of_all,
    may_go_on,
    page_of,
    whole_timestamps_of,
)
from apiserver.stores.events.elasticsearch import names, paging
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import between, of_owner, ordered, terms, without
from apiserver.stores.events.elasticsearch.writing import LARGE_LINE

_BY = ("timestamp", "sequence")
_FIELDS = ("level", "worker", "iter", "metric", "variant", "received")
_LEAST = -(2**63)
#: Lines of one answer.
_WINDOW = paging.AN_ANSWER // LARGE_LINE


def index_of(cluster: Cluster, owner: Owner) -> str:
    """Where the owner's lines are."""
    return names.index(cluster.prefix, EventType.LOG, owner.company)


async def log_lines(
    cluster: Cluster,
    owner: Owner,
    selection: Selection,
    after: LogPosition | None,
    *,
    descending: bool,
    limit: int,
    whole_timestamps: bool,
    workers: Collection[str] | None,
) -> list[LogLine]:
    """A page, as the protocol says."""
    of_workers = [] if workers is None else [terms("worker", sorted(workers))]
    lines = await _page(cluster, owner, of_owner(owner, selection, *of_workers), after, descending, limit)
    if not whole_timestamps or not may_go_on(lines, limit):
        return lines
    before, size, position = whole_timestamps_of(lines), bytes_of_all(lines), lines[-1].position
    same = of_owner(owner, selection, *of_workers, *between("timestamp", position.timestamp, position.timestamp))
    rest = True
    while rest:
        if before and size >= PAGE_BYTES:
            return before
        more = await _page(cluster, owner, same, position, descending, paging.ALL)
        lines, size = [*lines, *more], size + bytes_of_all(more)
        rest = may_go_on(more, paging.ALL) and size < TIMESTAMP_BYTES
        position = lines[-1].position
    return page_of(lines, TIMESTAMP_BYTES)


async def delete_logs(
    cluster: Cluster, owner: Owner, before: int | None, exclude: Selection, include: Selection
) -> int:
    """Delete lines as the protocol says."""
    if before is not None and before <= _LEAST:
        return 0
    conditions = between("timestamp", None, None if before is None else before - 1)
    if exclude:
        conditions.append(without(of_owner(owner, exclude)))
    query = of_owner(owner, include, *conditions)
    return await cluster.delete([index_of(cluster, owner)], query, routing=names.owner_key(owner))


async def _page(
    cluster: Cluster, owner: Owner, query: JsonObject, after: LogPosition | None, descending: bool, limit: int
) -> list[LogLine]:
    hits = paging.texts(
        cluster,
        index_of(cluster, owner),
        names.owner_key(owner),
        query,
        ordered(_BY, descending=descending),
        fields=_FIELDS,
        stored=["message", "extra"],
        after=after,
        limit=limit,
        window=_WINDOW,
    )
    return await paging.page(hits, _line)


def _line(hit: JsonObject) -> LogLine:
    fields = hit["fields"]
    return LogLine(
        LogPosition(*hit["sort"]),
        fields["level"][0] if "level" in fields else None,
        fields["worker"][0],
        fields["message"][0],
        fields["iter"][0] if "iter" in fields else None,
        fields["metric"][0],
        fields["variant"][0],
        fields["received"][0],
        fields["extra"][0].encode() if "extra" in fields else None,
    )
