"""Reads log lines: pages in the order of their timestamps, and of arrival for equal timestamps. Deletes them, too."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from apiserver.events.model import JsonObject, LogLine, LogPosition, Selection
from apiserver.events.queries import LEAST, PageQuery, SeriesQuery
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
from apiserver.stores.events.elasticsearch.queries import between, of, ordered, terms, without
from apiserver.stores.events.elasticsearch.writing import LARGE_LINE

_BY = ("timestamp", "sequence")
_FIELDS = ("level", "worker", "iter", "metric", "variant", "received")
#: Lines of one answer.
WINDOW = paging.AN_ANSWER // LARGE_LINE


async def log_lines(
    cluster: Cluster, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None
) -> list[LogLine]:
    """A page, as `EventStore.log_lines` describes it."""
    of_workers = [] if workers is None else [terms("worker", sorted(workers))]
    lines = await _page(cluster, series, page, *of_workers)
    if not page.whole or not may_go_on(lines, page.limit):
        return lines
    before, size, position = whole_timestamps_of(lines), bytes_of_all(lines), lines[-1].position
    same = between("timestamp", position.timestamp, position.timestamp)
    rest = True
    while rest:
        if before and size >= PAGE_BYTES:
            return before
        further = PageQuery(paging.ALL, position, page.descending)
        more = await _page(cluster, series, further, *of_workers, *same)
        lines, size = [*lines, *more], size + bytes_of_all(more)
        rest = may_go_on(more, paging.ALL) and size < TIMESTAMP_BYTES
        position = lines[-1].position
    return page_of(lines, TIMESTAMP_BYTES)


async def delete_logs(cluster: Cluster, series: SeriesQuery, before: int | None, exclude: Selection) -> int:
    """Delete lines, as `EventStore.delete_logs` describes it."""
    if before is not None and before <= LEAST:
        return 0
    conditions = between("timestamp", None, None if before is None else before - 1)
    if exclude:
        conditions.append(without(of(replace(series, selection=exclude))))
    index, routing = names.index_of(cluster.prefix, series), names.owner_key(series.owner)
    return await cluster.delete([index], of(series, *conditions), routing=routing)


async def _page(
    cluster: Cluster, series: SeriesQuery, page: PageQuery[LogPosition], *conditions: JsonObject
) -> list[LogLine]:
    hits = paging.texts(
        cluster,
        names.index_of(cluster.prefix, series),
        names.owner_key(series.owner),
        of(series, *conditions),
        ordered(_BY, descending=page.descending),
        fields=_FIELDS,
        stored=["message", "extra"],
        after=page.after,
        limit=page.limit,
        window=WINDOW,
        number="" if page.descending else "timestamp",
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
