"""Plots and images of a task: a row each, with the figure as JSON, or the image's URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import Depends, Query, Response

from apiserver.common import answers
from apiserver.common.off_loop import in_thread
from apiserver.data.calls import DataCall, TheCall
from apiserver.data.parameters import Axis, From, Metrics, PlainCsv, Selector, To, Variants, range_of, selector
from apiserver.data.places import find_owner
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.events import figures
from apiserver.events.model import EventType, Owner, Sample, SamplePosition
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.stores.events.sizes import bytes_of_all
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Batch, Column, Kind, Table

routes = router()

#: Samples that are read at once.
_PAGE = 500

_NAMES = (
    *(Column("metric", Kind.TEXT), Column("variant", Kind.TEXT)),
    *(Column("iter", Kind.INT), Column("timestamp", Kind.TIME)),
)
_COLUMNS = {
    EventType.PLOT: (*_NAMES, Column("plot", Kind.JSON)),
    EventType.IMAGE: (*_NAMES, Column("key", Kind.TEXT), Column("url", Kind.TEXT)),
}

Latest = Annotated[
    int | None, Query(ge=1, le=100_000, description="Only those of each series' newest so many iterations.")
]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of a task."""

    metrics: Sequence[str]
    variants: Sequence[str]
    iterations: Range
    latest: int | None
    options: Options


async def _asked(
    metrics: Metrics = [],  # noqa: B006
    variants: Variants = [],  # noqa: B006
    start: From = None,
    stop: To = None,
    latest: Latest = None,
    csv: PlainCsv = None,
) -> _Asked:
    return _Asked(metrics, variants, range_of(start, stop, Axis.ITER), latest, Options(csv == "plain"))


_AskedSamples = Annotated[_Asked, Depends(_asked)]


@table(routes, "/tasks/{task:path}/plots")
async def plots(call: TheCall, task: str, asked: _AskedSamples) -> Response:
    """The plots of a task, by iteration. `plot` is the figure as it was reported: the SDK reports Plotly's JSON.

    NaN and infinities in it are null.
    """
    return await _answer(call, EventType.PLOT, task, asked)


@table(routes, "/tasks/{task:path}/images")
async def images(call: TheCall, task: str, asked: _AskedSamples) -> Response:
    """The debug images of a task and where they lie, by iteration."""
    return await _answer(call, EventType.IMAGE, task, asked)


async def _answer(call: DataCall, type: EventType, task: str, asked: _Asked) -> Response:
    owner = await find_owner(call, task)
    select = selector(call, type, asked.metrics, asked.variants)

    def make() -> Table:
        return Table(_COLUMNS[type], _rows(call, owner, type, select, asked), {"task": owner.id})

    return await answer(call, f"{owner.id}-{type.plural}", make, owners=[owner], options=asked.options)


async def _rows(
    call: DataCall, owner: Owner, type: EventType, select: Selector, asked: _Asked
) -> AsyncGenerator[Batch, None]:
    store, iterations, latest = call.backend.events, asked.iterations, asked.latest
    selection = await select(owner)
    series = None if selection is None else SeriesQuery(owner, type, selection)
    after: SamplePosition | None = None
    while series is not None:
        if latest is None:
            read = partial(store.samples, series, PageQuery(_PAGE, after), iterations)
        else:
            read = partial(store.latest_samples, series, latest, after)
        page = await answers.held_page(read, lambda page: 2 * bytes_of_all(page), first=after is None)
        if not page:
            return
        after = page[-1].position
        inside = [one for one in page if iterations.least <= one.iter <= iterations.greatest]
        yield await asyncio.to_thread(in_thread(partial(_batch, series.type, inside)))
        del page, inside


def _batch(type: EventType, samples: list[Sample]) -> Batch:
    columns: list[list[Any]] = [
        [one.metric for one in samples],
        [one.variant for one in samples],
        [one.iter for one in samples],
        [one.timestamp for one in samples],
    ]
    documents = [orjson.loads(one.document) for one in samples]
    if type is EventType.PLOT:
        columns.append([_figure(one.get("plot_str")) for one in documents])
    else:
        columns += [[one.get("key") for one in documents], [one.get("url") for one in documents]]
    return Batch(len(samples), columns)


def _figure(reported: Any) -> bytes | None:
    """The figure as JSON: what was reported as a text is JSON already, nearly always, but for NaN."""
    if isinstance(reported, str):
        figure = figures.without_nan(reported)
        try:
            orjson.loads(figure)
        except orjson.JSONDecodeError:
            return orjson.dumps(reported)
        return figure.encode()
    return None if reported is None else orjson.dumps(reported)
