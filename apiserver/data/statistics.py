"""Statistics of each curve of a task: a row each."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from fastapi import Response

from apiserver.common import answers
from apiserver.data.calls import DataCall, TheCall
from apiserver.data.parameters import Metrics, PlainCsv, Selector, Variants, selector
from apiserver.data.places import find_owner
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.events.model import EventType, Owner, ScalarStats
from apiserver.events.queries import SeriesQuery
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Batch, Column, Kind, Table

routes = router()

#: Bytes of memory that the statistics of a series take, about.
_BYTES = 2000

_COLUMNS = (
    *(Column("metric", Kind.TEXT), Column("variant", Kind.TEXT), Column("count", Kind.INT)),
    *(Column("not_finite", Kind.INT), Column("first_not_finite_iter", Kind.INT)),
    *(Column("first_iter", Kind.INT), Column("first_timestamp", Kind.TIME), Column("first_value", Kind.FLOAT)),
    *(Column("last_iter", Kind.INT), Column("last_timestamp", Kind.TIME), Column("last_value", Kind.FLOAT)),
    *(Column("min_iter", Kind.INT), Column("min_value", Kind.FLOAT), Column("iters_since_min", Kind.INT)),
    *(Column("max_iter", Kind.INT), Column("max_value", Kind.FLOAT), Column("iters_since_max", Kind.INT)),
    *(Column("mean", Kind.FLOAT), Column("std", Kind.FLOAT)),
)


@table(routes, "/tasks/{task:path}/stats")
async def of_task(
    call: TheCall,
    task: str,
    metrics: Metrics = [],  # noqa: B006
    variants: Variants = [],  # noqa: B006
    csv: PlainCsv = None,
) -> Response:
    """What there is to know of each curve without its points: where it is best, how much it varies, where it is NaN."""
    owner = await find_owner(call, task)
    select = selector(call, EventType.SCALAR, metrics, variants)

    def make() -> Table:
        return Table(_COLUMNS, _rows(call, owner, select), {"task": owner.id})

    return await answer(call, f"{owner.id}-stats", make, owners=[owner], options=Options(csv == "plain"))


async def _rows(call: DataCall, owner: Owner, select: Selector) -> AsyncGenerator[Batch, None]:
    selection = await select(owner)
    if selection is None:
        return
    query = SeriesQuery(owner, EventType.SCALAR, selection)
    read = partial(call.backend.events.scalar_stats, query, spread=True)
    found = await answers.held_page(read, lambda stats: _BYTES * len(stats), first=True)
    if found:
        yield Batch(len(found), [list(column) for column in zip(*map(_row, found), strict=True)])


def _row(stats: ScalarStats) -> tuple[Any, ...]:
    finite = stats.finite_count
    return (
        *(stats.metric, stats.variant, stats.count, stats.count - finite, stats.first_not_finite_iter),
        *(stats.first_iter, stats.min_timestamp, stats.first_value),
        *(stats.last_iter, stats.max_timestamp, stats.last_value),
        *(stats.min_value_iter, stats.min_value, _since(stats, stats.min_value_iter)),
        *(stats.max_value_iter, stats.max_value, _since(stats, stats.max_value_iter)),
        stats.sum / finite if finite else None,
        math.sqrt((stats.deviations or 0.0) / finite) if finite else None,
    )


def _since(stats: ScalarStats, iter: int | None) -> int | None:
    return None if iter is None else min(stats.max_iter - iter, 2**63 - 1)
