"""Vectors, plots and images as rows: reads pages and the newest of each series, and merges those of memtables."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from apiserver.common import answers
from apiserver.events.model import EventType, Owner, Sample, SamplePosition, SampleSeries
from apiserver.events.queries import GREATEST, LEAST, PageQuery, Range, SeriesQuery
from apiserver.stores.events.codec import compression
from apiserver.stores.events.codec.checked import decoder
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.hot import Memtable, SampleKey
from apiserver.stores.events.embedded.names import Registrar, series_ids
from apiserver.stores.events.sizes import page_of

HotSamples = Mapping[Name, Mapping[SampleKey, Sample]]


class _Row(NamedTuple):
    """A merged sample: its position, and the number of its document, which is read later."""

    position: SamplePosition
    timestamp: int
    document: int


@dataclass(slots=True, frozen=True)
class Samples:
    """A consistent view of an owner's samples of one type: ids of merged series, and hot samples laid over them."""

    conn: sqlite3.Connection
    owner: Owner
    type: EventType
    merged: dict[Name, int]
    hot: dict[Name, dict[SampleKey, Sample]]
    many: int
    """The samples of more series than these are read by one statement."""

    @classmethod
    def view(
        cls, conn: sqlite3.Connection, series: SeriesQuery, hot: Sequence[HotSamples], bounds: EmbeddedBounds
    ) -> Samples:
        """The samples of the series; `hot` has those in each memtable, oldest first."""
        merged = series_ids(conn, series)
        laid_over: dict[Name, dict[SampleKey, Sample]] = {}
        for table in hot:
            for name, found in table.items():
                laid_over.setdefault(name, {}).update(found)
        return cls(conn, series.owner, series.type, merged, laid_over, bounds.many_series)

    @property
    def names(self) -> list[Name]:
        """The selected series, sorted."""
        return sorted(self.merged.keys() | self.hot.keys())

    def series(self) -> list[SampleSeries]:
        """What is known of each series."""
        return [self._series(name) for name in self.names]

    def _series(self, name: Name) -> SampleSeries:
        id, hot = self.merged.get(name), self.hot.get(name)
        if id is None or hot is None:
            times = {key: sample.timestamp for key, sample in (hot or {}).items()}
        else:
            query = "SELECT iter, key, timestamp FROM samples WHERE series = ?"
            times = {(iter, key): timestamp for iter, key, timestamp in self.conn.execute(query, (id,))}
            times.update((key, sample.timestamp) for key, sample in hot.items())
        if not times:
            query = "SELECT count(*), min(iter), max(iter), max(timestamp) FROM samples WHERE series = ?"
            return SampleSeries(*name, *self.conn.execute(query, (id,)).fetchone())
        iters = [iter for iter, _ in times]
        return SampleSeries(*name, len(times), min(iters), max(iters), max(times.values()))

    def count(self) -> int:
        """How many samples there are."""
        return sum(series.count for series in self.series())

    def page(self, wanted: PageQuery[SamplePosition], iterations: Range) -> list[Sample]:
        """A page of the samples of these iterations."""
        low, high = iterations.least, iterations.greatest
        after, descending = wanted.after, wanted.descending
        if after is not None:
            low, high = (low, min(high, after.iter)) if descending else (max(low, after.iter), high)
        if len(self.merged) + len(self.hot) > self.many:
            walk = self._walk_of_many(low, high, wanted)
        else:
            walks = [self._walk(name, low, high, descending) for name in self.names]
            walk = heapq.merge(*walks, key=_position, reverse=descending)
        if after is not None:
            walk = (one for one in walk if (_position(one) < after if descending else _position(one) > after))
        return page_of(map(self._sample, islice(walk, wanted.limit)))

    def latest(self, iterations: int, after: SamplePosition | None) -> list[Sample]:
        """A page of the samples of each series' newest iterations, newest first."""
        return page_of(map(self._sample, self._latest(iterations, after)))

    def _latest(self, iterations: int, after: SamplePosition | None) -> Iterator[Sample | _Row]:
        for name in self.names:
            if after is not None and name < (after.metric, after.variant):
                continue
            walk = self._walk(name, LEAST, GREATEST, descending=True)
            by_iter = groupby(walk, key=lambda sample: _position(sample).iter)
            for _, ones in islice(by_iter, iterations):
                in_order = sorted(ones, key=lambda sample: _position(sample).key)
                yield from (
                    sample
                    for sample in in_order
                    if after is None or _newest_first(_position(sample)) > _newest_first(after)
                )

    def iterations(self, page: PageQuery[int]) -> list[int]:
        """A page of the distinct iterations with a sample."""
        low, high, descending = LEAST, GREATEST, page.descending
        if page.after is not None:
            low, high = (LEAST, page.after - 1) if descending else (page.after + 1, GREATEST)
        if not LEAST <= low <= high <= GREATEST:
            return []
        if len(self.merged) + len(self.hot) > self.many:
            iterations = {iter for keys in self.hot.values() for iter, _ in keys if low <= iter <= high}
            iterations.update(iter for (iter,) in self._of_many("DISTINCT iter", low, high))
            return sorted(iterations, reverse=descending)[: page.limit]
        walks = [self._iterations(name, low, high, descending) for name in self.names]
        merged = heapq.merge(*walks, reverse=descending)
        return [iter for iter, _ in islice(groupby(merged), page.limit)]

    def _iterations(self, name: Name, low: int, high: int, descending: bool) -> Iterator[int]:
        hot = {iter for iter, _ in self.hot.get(name, ()) if low <= iter <= high}
        id = self.merged.get(name)
        order = "DESC" if descending else "ASC"
        query = f"SELECT DISTINCT iter FROM samples WHERE series = ? AND iter BETWEEN ? AND ? ORDER BY iter {order}"
        merged = () if id is None else map(itemgetter(0), self.conn.execute(query, (id, low, high)))
        return heapq.merge(sorted(hot, reverse=descending), merged, reverse=descending)

    def _walk(self, name: Name, low: int, high: int, descending: bool) -> Iterator[Sample | _Row]:
        """The samples of one series with low ≤ iter ≤ high, by (iter, key)."""
        hot = self.hot.get(name)
        if not hot:
            return self._rows(name, low, high, descending)
        recent = [sample for (iter, _), sample in hot.items() if low <= iter <= high]
        recent.sort(key=_position, reverse=descending)
        if name not in self.merged:
            return iter(recent)
        merged = (
            row for row in self._rows(name, low, high, descending) if (row.position.iter, row.position.key) not in hot
        )
        return heapq.merge(recent, merged, key=_position, reverse=descending)

    def _walk_of_many(self, low: int, high: int, page: PageQuery[SamplePosition]) -> Iterator[Sample | _Row]:
        """The samples with low ≤ iter ≤ high, at least to the end of the page.

        A statement for each of many series would take minutes. So one statement finds the iteration at which the page
        surely ends, and another one reads all samples up to it. For example, a page of 20, with 3 hot samples, after a
        sample at iteration 7, at which there are 5 merged samples: the 28th merged sample has the last iteration
        needed, as 3 of them may be overwritten, and 5 may lie before the page.
        """
        enough, descending = page.limit + sum(map(len, self.hot.values())), page.descending
        if page.after is not None:
            enough += next(self._of_many("count(*)", page.after.iter, page.after.iter))[0]
        way = "ORDER BY iter DESC" if descending else "ORDER BY iter"
        last = next(self._of_many("iter", low, high, f"{way} LIMIT 1 OFFSET {enough - 1}"), None)
        if last is not None:
            low, high = (last[0], high) if descending else (low, last[0])
        names = {id: name for name, id in self.merged.items()}
        samples: list[Sample | _Row] = [
            sample for known in self.hot.values() for (at, _), sample in known.items() if low <= at <= high
        ]
        for id, at, key, timestamp, document in self._of_many("series, iter, key, timestamp, document", low, high):
            if (at, key) not in self.hot.get(names[id], ()):
                samples.append(_Row(SamplePosition(at, *names[id], key), timestamp, document))
        return iter(sorted(samples, key=_position, reverse=descending))

    def _of_many(self, columns: str, low: int, high: int, end: str = "") -> Iterator[tuple[Any, ...]]:
        """Columns of the merged samples with low ≤ iter ≤ high."""
        ids = orjson.dumps([*self.merged.values()]).decode()
        series = "(SELECT value AS wanted FROM json_each(?))"
        query = f"SELECT {columns} FROM {series} CROSS JOIN samples ON series = wanted AND iter BETWEEN ? AND ? {end}"
        return self.conn.execute(query, (ids, low, high))

    def _rows(self, name: Name, low: int, high: int, descending: bool) -> Iterator[_Row]:
        id = self.merged.get(name)
        if id is None:
            return
        order = "iter DESC, key DESC" if descending else "iter, key"
        query = (
            "SELECT iter, key, timestamp, document FROM samples"
            f" WHERE series = ? AND iter BETWEEN ? AND ? ORDER BY {order}"
        )
        for iter, key, timestamp, document in self.conn.execute(query, (id, low, high)):
            yield _Row(SamplePosition(iter, *name, key), timestamp, document)

    def _sample(self, one: Sample | _Row) -> Sample:
        if isinstance(one, Sample):
            return one
        row = self.conn.execute("SELECT body FROM sample_documents WHERE id = ?", (one.document,)).fetchone()
        at = one.position
        return Sample(self.owner, self.type, at.metric, at.variant, at.iter, at.key, one.timestamp, _document(row[0]))


def _decompressed(body: bytes) -> bytes:
    answers.will_read(compression.size_of(body))
    return compression.decompress(body)


_document = decoder(_decompressed, "a plot, image or vector")


def _position(one: Sample | _Row) -> SamplePosition:
    return one.position


def _newest_first(at: SamplePosition) -> tuple[str, str, int, str]:
    return (at.metric, at.variant, -at.iter, at.key)


def merge_samples(conn: sqlite3.Connection, table: Memtable, registrar: Registrar) -> None:
    """Write the memtable's samples to the database, a row for each identity, in the caller's transaction."""
    for owner, hot in table.owners.items():
        for type, series in hot.samples.items():
            for name, samples in series.items():
                (id,) = registrar.series(type, [(owner, *name)])
                for sample in samples.values():
                    body = compression.compress(sample.document, checked=True)
                    _put(conn, id, sample.iter, sample.key, sample.timestamp, body)


def _put(conn: sqlite3.Connection, series: int, iter: int, key: str, timestamp: int, body: bytes) -> None:
    identity = (series, iter, key)
    row = conn.execute("SELECT document FROM samples WHERE series = ? AND iter = ? AND key = ?", identity).fetchone()
    if row is None:
        document = conn.execute("INSERT INTO sample_documents (body) VALUES (?)", (body,)).lastrowid
    else:
        document = row[0]
        conn.execute("UPDATE sample_documents SET body = ? WHERE id = ?", (body, document))
    conn.execute("REPLACE INTO samples VALUES (?, ?, ?, ?, ?)", (*identity, timestamp, document))
