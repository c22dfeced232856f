"""Finds log lines by their numbers, and the numbers of positions. The oldest line has number 0.

Elasticsearch counts lines of a range of time quickly, but skips few only. So the log's time is cut into 64 parts, whose
lines are counted by one search, then the part with a wanted number is cut again, until a part has few lines. A part
that is a single millisecond is cut by sequence numbers. For example, of 10 million lines over a day:

    line 6,000,000: part 38 of the day has lines 5,937,500 to 6,093,749; part 25 of that has 5,998,535 to 6,000,975;
    the line is the 1,466th from there, and is found by skipping 1,465
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apiserver.events.model import EventType, JsonObject, LogLine, LogPosition, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import PAGE_BYTES, bytes_of_all
from apiserver.stores.events.elasticsearch import logs, names
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import BARE, all_of, any_of, between, of, ordered

_PARTS = 64
#: The most lines that a search skips.
SKIPPED = 5000
_BY = ("timestamp", "sequence")


class _Span(NamedTuple):
    """The lines whose `field` is from `least` to `greatest`, and that meet `conditions`: `lines` of them."""

    field: str
    conditions: tuple[JsonObject, ...]
    least: int
    greatest: int
    first: int
    """The number of the first line."""
    lines: int

    @property
    def query(self) -> list[JsonObject]:
        return [*self.conditions, *between(self.field, self.least, self.greatest)]

    @property
    def parts(self) -> list[tuple[int, int]]:
        width = -(-(self.greatest - self.least + 1) // _PARTS)
        return [(start, min(start + width - 1, self.greatest)) for start in range(self.least, self.greatest + 1, width)]


async def numbered(cluster: Cluster, owner: Owner, numbers: Sequence[int]) -> tuple[list[LogLine], int]:
    """Lines by their numbers, as `EventStore.log_numbered` describes it."""
    reader = _Reader(cluster, owner)
    total = await cluster.count(reader.index, of(reader.series), routing=reader.routing)
    lines: list[LogLine] = []
    size = 0
    span: _Span | None = None
    for first, length in _runs([number for number in numbers if number < total]):
        if span is None or not span.first <= first < span.first + span.lines:
            span = await reader.small_span(first, total)
            if span is None:  # lines were deleted since they were counted
                break
        after = await reader.before(span, first)
        if after is None:
            break
        some = await logs.log_lines(cluster, reader.series, PageQuery(length, after), None)
        lines += some
        size += bytes_of_all(some)
        if size >= PAGE_BYTES or len(some) < length:
            break
    return lines, total


async def number(cluster: Cluster, owner: Owner, position: LogPosition) -> int:
    """How many lines lie before the position."""
    reader = _Reader(cluster, owner)
    time, sequence = position
    same = all_of(*between("timestamp", time, time), *between("sequence", None, max(sequence, -(2**63) + 1) - 1))
    earlier = between("timestamp", None, time - 1) if time > -(2**63) else []
    return await cluster.count(reader.index, of(reader.series, any_of([same, *earlier])), routing=reader.routing)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first number, and how many, of each run of neighbours: 4, 5, 6, 9 → (4, 3), (9, 1)."""
    start = 0
    for n in range(1, len(numbers) + 1):
        if n == len(numbers) or numbers[n] != numbers[n - 1] + 1:
            yield numbers[start], n - start
            start = n


class _Reader:
    """Searches the log of one owner."""

    def __init__(self, cluster: Cluster, owner: Owner) -> None:
        self.series = SeriesQuery(owner, EventType.LOG)
        self.index = names.index_of(cluster.prefix, self.series)
        self.routing = names.owner_key(owner)
        self._cluster = cluster

    async def small_span(self, number: int, total: int) -> _Span | None:
        """A span with line `number`, and few others; None if there is no such line any more."""
        span = await self._span("timestamp", (), 0, total)
        while span is not None and span.lines > SKIPPED:
            if span.least < span.greatest:
                span = await self._part(span, number)
            elif span.field == "timestamp":
                span = await self._span("sequence", tuple(span.query), span.first, span.lines)
            else:
                return span
        return span

    async def before(self, span: _Span, number: int) -> LogPosition | None:
        """A position just before line `number` of the span; None if there is no such line any more."""
        if number == span.first:
            if span.field == "timestamp":
                return LogPosition(span.least, -1)
            return LogPosition(span.conditions[0]["range"]["timestamp"]["gte"], span.least - 1)
        body = {**BARE, "query": of(self.series, *span.query), "sort": ordered(_BY), "size": 1}
        skipping = {**body, "from": number - span.first - 1}
        hits = (await self._cluster.search(self.index, skipping, routing=self.routing))["hits"]["hits"]
        return LogPosition(*hits[0]["sort"]) if hits else None

    async def _span(self, field: str, conditions: tuple[JsonObject, ...], first: int, count: int) -> _Span | None:
        ends: list[int] = []
        for descending in (False, True):
            body = {**BARE, "query": of(self.series, *conditions), "sort": ordered((field,), descending=descending)}
            answer = await self._cluster.search(self.index, {**body, "size": 1}, routing=self.routing)
            ends += [hit["sort"][0] for hit in answer["hits"]["hits"]]
        return _Span(field, conditions, ends[0], ends[1], first, count) if len(ends) == 2 else None

    async def _part(self, span: _Span, number: int) -> _Span | None:
        """The part of the span that has line `number`."""
        parts = [between(span.field, *part)[0] for part in span.parts]
        aggs = {"parts": {"filters": {"filters": parts}}}
        body = {**BARE, "size": 0, "query": of(self.series, *span.query), "aggs": aggs}
        answer = await self._cluster.search(self.index, body, routing=self.routing)
        first = span.first
        for (least, greatest), bucket in zip(span.parts, answer["aggregations"]["parts"]["buckets"], strict=True):
            count = bucket["doc_count"]
            if number < first + count:
                return _Span(span.field, span.conditions, least, greatest, first, count)
            first += count
        return None
