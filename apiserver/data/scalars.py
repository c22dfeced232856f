"""Scalars of one task, and of many: the points of their curves, or buckets of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Query, Response

from apiserver.common import answers
from apiserver.common.off_loop import together
from apiserver.data.calls import DataCall, TheCall, bad_parameter
from apiserver.data.parameters import (
    Axis,
    From,
    Metrics,
    PlainCsv,
    Selector,
    Smooth,
    To,
    Variants,
    range_of,
    selector,
    smoothing_of,
)
from apiserver.data.places import find_owner
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.events.aggregates import Aggregate, Buckets
from apiserver.events.model import EventType, Owner
from apiserver.events.queries import Range, SeriesQuery
from apiserver.events.smoothing import Smoothing
from apiserver.reading import whole_series
from apiserver.reading.histogram import HistogramQuery, Key
from apiserver.reading.whole_series import PointsQuery
from apiserver.stores.events.protocols.scalars import OWNERS_AT_ONCE
from apiserver.tables.formats import TABLES, Format, chosen
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Batch, Column, Kind, Repeated, Table

routes = router()

FORMATS: tuple[Format, ...] = (*TABLES, Format.BINARY)
#: Bytes of memory that a bucket takes while it is read and written, about.
_BUCKET_BYTES = 300
#: The most buckets a curve: more are points.
_MOST_BUCKETS = 100_000

_NAMES = (Column("metric", Kind.TEXT), Column("variant", Kind.TEXT))
#: What buckets tell if the request does not say, in the order of the columns.
_AGGREGATES = (Aggregate.COUNT, Aggregate.MEAN, Aggregate.MIN, Aggregate.MAX, Aggregate.FIRST, Aggregate.LAST)
_POSSIBLE = (*_AGGREGATES, Aggregate.NOT_FINITE)

Points = Annotated[
    int,
    Query(
        ge=0,
        le=_MOST_BUCKETS,
        description="About how many buckets each curve is put together in. 0: all points, one by one.",
    ),
]


Of = Annotated[
    str | None,
    Query(max_length=100, description="Of buckets, only some of their columns: `mean,min,max`."),
]


class Width(IntEnum):
    """The bits of a float."""

    SINGLE = 32
    DOUBLE = 64


Workers = Annotated[bool, Query(description="Of points: also a column `worker`, who reported each.")]
Bits = Annotated[Width, Query(description="In `.bin`: the bits of each float.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of each task."""

    metrics: Sequence[str]
    variants: Sequence[str]
    axis: Axis
    range: Range
    points: int
    smooth: Smoothing | None
    named: Sequence[Aggregate]
    """The columns of buckets that the request names."""
    workers: bool = False
    """Whether points tell who reported them."""

    @property
    def in_buckets(self) -> bool:
        return self.points > 0 or self.smooth is not None

    @property
    def aggregates(self) -> Sequence[Aggregate]:
        """What buckets tell."""
        return self.named or _AGGREGATES

    @property
    def columns(self) -> list[Column]:
        """The columns, without that of the task."""
        if self.in_buckets:
            x = Kind.TIME if self.axis is Axis.TIMESTAMP else Kind.INT
            return [*_NAMES, Column("x", x), *[Column(one.value, _kind(one)) for one in self.aggregates]]
        relative = [Column("relative", Kind.INT)] if self.axis is Axis.RELATIVE else []
        numbers = [Column("iter", Kind.INT), Column("timestamp", Kind.TIME), *relative, Column("value", Kind.FLOAT)]
        return [*_NAMES, *numbers, *([Column("worker", Kind.TEXT)] if self.workers else [])]


def _kind(aggregate: Aggregate) -> Kind:
    return Kind.INT if aggregate in (Aggregate.COUNT, Aggregate.NOT_FINITE) else Kind.FLOAT


async def _asked(
    metrics: Metrics = [],  # noqa: B006
    variants: Variants = [],  # noqa: B006
    start: From = None,
    stop: To = None,
    axis: Axis = Axis.ITER,
    points: Points = 0,
    smooth: Smooth = None,
    columns: Of = None,
) -> Asked:
    asked = Asked(metrics, variants, axis, range_of(start, stop, axis), points, smoothing_of(smooth), _named(columns))
    if columns is not None and not asked.in_buckets:
        raise bad_parameter("columns", "only buckets have them: ask for some 'points'")
    return asked


def _named(columns: str | None) -> Sequence[Aggregate]:
    """The columns of buckets that a parameter names; 400 if there is no such column."""
    names = [name.strip() for name in (columns or "").split(",") if name.strip()]
    for name in names:
        if name not in _POSSIBLE:
            raise bad_parameter("columns", f"there is no '{name[:50]}': use {', '.join(_POSSIBLE)}")
    return [aggregate for aggregate in _POSSIBLE if aggregate in names]


async def _options(bits: Bits = Width.SINGLE, csv: PlainCsv = None) -> Options:
    return Options(csv == "plain", double=bits is Width.DOUBLE)


#: What the parameters of an address with scalars ask for. 400 names the one that is wrong.
AskedScalars = Annotated[Asked, Depends(_asked)]
#: How the parameters of an address with scalars want them to be written.
ScalarOptions = Annotated[Options, Depends(_options)]


@table(routes, "/tasks/{task:path}/scalars", FORMATS)
async def of_task(
    call: TheCall, task: str, asked: AskedScalars, options: ScalarOptions, workers: Workers = False
) -> Response:
    """The points of a task's curves, one curve after the other, or buckets of them.

    In `.bin`, curves are plain columns of 32-bit or 64-bit floats, for charts.
    """
    owner = await find_owner(call, task)
    asked = replace(asked, workers=workers)
    if workers and asked.in_buckets:
        raise bad_parameter("workers", "only points have them: leave 'points' and 'smooth' out")
    format = chosen(call.request.path_params.get("ending"), call.headers.get("accept", ""), FORMATS)
    if workers and format is Format.BINARY:
        raise bad_parameter("workers", "these are texts, and .bin has numbers only: use another format")

    def make() -> Table:
        return Table(asked.columns, rows(call, [owner], asked), {"task": owner.id})

    return await answer(call, f"{owner.id}-scalars", make, owners=[owner], possible=FORMATS, options=options)


def rows(
    call: DataCall, owners: Sequence[Owner], asked: Asked, *, with_task: bool = False
) -> AsyncGenerator[Batch, None]:
    """The rows of each owner's curves, after a column with the task's id if asked for."""
    return (_buckets if asked.in_buckets else _points)(call, owners, asked, with_task)


async def _points(
    call: DataCall, owners: Sequence[Owner], asked: Asked, with_task: bool
) -> AsyncGenerator[Batch, None]:
    select, first = selector(call, EventType.SCALAR, asked.metrics, asked.variants), True
    at_once = call.backend.bounds.points
    for owner in owners:
        selection = await select(owner)
        if selection is None:
            continue
        query = PointsQuery(owner, selection, asked.axis.column, asked.range, asked.workers)
        async with aclosing(whole_series.walk(call.backend.events, query, first=first, at_once=at_once)) as found:
            async for points in found:
                first = False
                metrics, variants = zip(*points.names, strict=True)
                task = [Repeated(np.zeros(len(points), np.int32), [owner.id])] if with_task else []
                names = [*task, Repeated(points.series, metrics), Repeated(points.series, variants)]
                relative = [points.since] if asked.axis is Axis.RELATIVE else []
                workers = [points.workers] if asked.workers else []
                yield Batch(len(points), [*names, points.iters, points.timestamps, *relative, points.values, *workers])
                del points


async def _buckets(
    call: DataCall, owners: Sequence[Owner], asked: Asked, with_task: bool
) -> AsyncGenerator[Batch, None]:
    select = selector(call, EventType.SCALAR, asked.metrics, asked.variants)

    async def read(some: Sequence[Owner]) -> list[tuple[str, Buckets]]:
        return await answers.held_page(
            partial(_buckets_of, call, some, asked, select), _bytes_of, first=some[0] == owners[0]
        )

    async with aclosing(answers.some_at_a_time(owners, OWNERS_AT_ONCE, read)) as parts:
        async for found in parts:
            if found:
                yield _batch(found, asked.aggregates, with_task)
            del found


async def _buckets_of(
    call: DataCall, owners: Sequence[Owner], asked: Asked, select: Selector
) -> list[tuple[str, Buckets]]:
    """The id of each curve's owner, and its buckets."""
    key = Key.DURATION if asked.axis is Axis.RELATIVE else Key(asked.axis.value)
    query = HistogramQuery(asked.points, key, True, asked.range, asked.smooth).buckets
    query = replace(query, aggregates=frozenset(asked.aggregates), may_be_finer=True)

    with answers.reading():
        selections = await together(*map(select, owners))
    queries = [
        SeriesQuery(owner, EventType.SCALAR, selection)
        for owner, selection in zip(owners, selections, strict=True)
        if selection is not None
    ]
    with answers.reading():
        found = await call.backend.events.scalar_buckets_of_each(queries, query)
    return [(query.owner.id, buckets) for query, series in zip(queries, found, strict=True) for buckets in series]


def _bytes_of(series: Sequence[tuple[str, Buckets]]) -> int:
    return _BUCKET_BYTES * sum([len(buckets.x) for _, buckets in series])


def _batch(series: Sequence[tuple[str, Buckets]], aggregates: Sequence[Aggregate], with_task: bool) -> Batch:
    numbers = np.repeat(np.arange(len(series), dtype=np.int32), [len(buckets.x) for _, buckets in series])
    names = [[buckets.metric for _, buckets in series], [buckets.variant for _, buckets in series]]
    if with_task:
        names = [[task for task, _ in series], *names]
    x = np.concatenate([buckets.x for _, buckets in series])
    columns: list[Any] = [*(Repeated(numbers, column) for column in names), x]
    for aggregate in aggregates:
        values = np.concatenate([buckets.values[aggregate] for _, buckets in series])
        columns.append(values.astype(np.int64) if _kind(aggregate) is Kind.INT else values)
    return Batch(len(numbers), columns)
