"""The event stores that the contract is tested on, and short ways to fill and read them.

An engine may hold the same events in different states, such as in memory or on disk. It is tested in each: tests call
`settle` where a state may be taken on, after some of their writes. `make test` takes those states of the embedded store
that differ most, `make check` also Elasticsearch and the plain store, and `make longer` all.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from apiserver.common.off_loop import together
from apiserver.events.aggregates import ALL, Buckets
from apiserver.events.model import (
    BucketAxis,
    EventBatch,
    EventType,
    LogColumns,
    MetricSelection,
    Owner,
    Sample,
    ScalarColumns,
    Scalars,
)
from apiserver.events.queries import EVERYWHERE, BucketQuery, PageQuery, Range, SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.elasticsearch.address import elasticsearch_address
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from apiserver.stores.events.parts import in_parts
from tests.contract.plain_event_store import PlainEventStore
from tests.engines import elasticsearch as engine
from tests.longer import beyond

if TYPE_CHECKING:
    from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore

OWNER = Owner("company", "task")
SCALARS, LOGS, PLOTS = (SeriesQuery(OWNER, type) for type in (EventType.SCALAR, EventType.LOG, EventType.PLOT))
NAN, INF = math.nan, math.inf
RECEIVED = 1_700_000_000_000
_COMPACTED_AT_ONCE = 16


@dataclass
class Case:
    """A store, and what brings it into the state that is tested."""

    store: EventStore
    settle: Callable[[], Awaitable[None]]
    settles_by_itself: bool = False
    """Whether it may also come into that state at any other time."""


async def _nothing() -> None:
    pass


def _plain(folder: Path) -> Case:
    return Case(PlainEventStore(), _nothing)


def _embedded(folder: Path) -> EmbeddedEventStore:
    return EmbeddedEventStore(folder / "events", merge_points=10**9, merge_seconds=10**6)


def _hot(folder: Path) -> Case:
    return Case(_embedded(folder), _nothing)


def _merged(folder: Path) -> Case:
    store = _embedded(folder)
    return Case(store, store.merge)


def _sealed(folder: Path) -> Case:
    store = _embedded(folder)

    async def settle() -> None:
        await store.merge()
        await store.seal()

    return Case(store, settle)


def _mixed(folder: Path) -> Case:
    """Merged at the first call, not any more later."""
    store = _embedded(folder)
    calls: list[None] = []

    async def settle() -> None:
        if not calls:
            await store.merge()
        calls.append(None)

    return Case(store, settle)


def _reopened(folder: Path) -> Case:
    store = _embedded(folder)

    async def settle() -> None:
        await store.close()
        await store.open()

    return Case(store, settle)


def _synced(folder: Path) -> Case:
    store = EmbeddedEventStore(folder / "events", fsync=True, merge_points=3, merge_seconds=0.01)
    return Case(store, _nothing, settles_by_itself=True)


CASES: dict[str, Callable[[Path], Case]] = {
    "plain": _plain,
    "embedded-hot": _hot,
    "embedded-merged": _merged,
    "embedded-mixed": _mixed,
    "embedded-reopened": _reopened,
    "embedded-sealed": _sealed,
    "embedded-synced": _synced,
}


def _on_elasticsearch(request: pytest.FixtureRequest) -> ElasticsearchEventStore:
    """A store on a real node, where a test finds nothing written."""
    from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore

    prefix = request.getfixturevalue("elasticsearch_shared_prefix")
    address = elasticsearch_address(engine.address(request.getfixturevalue("elasticsearch_url"), prefix))
    return ElasticsearchEventStore(address, migrate=True, abandoned=0)


def elasticsearch(request: pytest.FixtureRequest) -> Case:
    return Case(_on_elasticsearch(request), _nothing)


def _compacted(request: pytest.FixtureRequest) -> Case:
    store = _on_elasticsearch(request)

    async def settle() -> None:
        for some in in_parts([owner async for owner in store.owners()], lambda owner: 1, _COMPACTED_AT_ONCE):
            await together(*map(store.compact, some))

    return Case(store, settle)


ON_ELASTICSEARCH: dict[str, Callable[[pytest.FixtureRequest], Case]] = {
    "elasticsearch": elasticsearch,
    "elasticsearch-compacted": _compacted,
}


#: All but the plain store, which is the model of the others, and is never closed.
ENGINE_STATES = [
    *("embedded-hot", "embedded-mixed", "embedded-sealed"),
    pytest.param("elasticsearch", marks=pytest.mark.check),
    *beyond([], ["embedded-merged", "embedded-reopened", "embedded-synced", "elasticsearch-compacted"]),
]


@pytest.fixture(params=[*ENGINE_STATES, pytest.param("plain", marks=pytest.mark.check)])
async def case(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Case]:
    """An open store with nothing in it."""
    make = CASES.get(request.param)
    made = make(tmp_path) if make else ON_ELASTICSEARCH[request.param](request)
    await made.store.open()
    yield made
    await made.store.close()


# --- written ---------------------------------------------------------------------------------------


def scalars(
    values: Sequence[float],
    *,
    iters: Sequence[int] | None = None,
    timestamps: Sequence[int] | None = None,
    metric: str = "loss",
    variant: str = "train",
    worker: str = "worker",
    owner: Owner = OWNER,
) -> ScalarColumns:
    """Points of one series; iterations count from 0 and timestamps equal iterations unless given."""
    numbers = range(len(values)) if iters is None else iters
    return ScalarColumns(
        owner,
        metric,
        variant,
        worker,
        np.array(numbers, np.int64),
        np.array(numbers if timestamps is None else timestamps, np.int64),
        np.array(values, np.float64),
    )


def lines(
    messages: Sequence[str],
    *,
    timestamps: Sequence[int] | None = None,
    metric: str = "console",
    variant: str = "",
    digest: bytes | None = None,
    owner: Owner = OWNER,
) -> LogColumns:
    """Log lines of one series; timestamps count from 0 unless given."""
    length = len(messages)
    return LogColumns(
        owner=owner,
        timestamps=np.array(range(length) if timestamps is None else timestamps, np.int64),
        levels=["info"] * length,
        workers=["worker"] * length,
        messages=list(messages),
        iters=[None] * length,
        metrics=[metric] * length,
        variants=[variant] * length,
        digest=digest,
    )


def sample(
    iter: int,
    *,
    type: EventType = EventType.PLOT,
    metric: str = "plots",
    variant: str = "roc",
    key: str = "",
    timestamp: int | None = None,
    document: bytes | None = None,
    owner: Owner = OWNER,
) -> Sample:
    """A sample whose timestamp is its iteration and whose document names both, unless given."""
    return Sample(
        owner=owner,
        type=type,
        metric=metric,
        variant=variant,
        iter=iter,
        key=key,
        timestamp=iter if timestamp is None else timestamp,
        document=b'{"iter": %d}' % iter if document is None else document,
    )


def batch(*events: ScalarColumns | LogColumns | Sample, received: int = RECEIVED) -> EventBatch:
    """The events as one batch."""
    return EventBatch(
        received=received,
        scalars=Scalars.of(one for one in events if isinstance(one, ScalarColumns)),
        logs=[one for one in events if isinstance(one, LogColumns)],
        samples=[one for one in events if isinstance(one, Sample)],
    )


# --- read ------------------------------------------------------------------------------------------


def select(series: SeriesQuery, *selection: MetricSelection) -> SeriesQuery:
    """Some of the series."""
    return replace(series, selection=selection)


async def messages(
    store: EventStore, series: SeriesQuery = LOGS, workers: Collection[str] | None = None, **how: Any
) -> list[str]:
    """The messages of a page of log lines; `how` as in PageQuery."""
    page = PageQuery(**{"limit": 10**6, **how})
    return [line.message for line in await store.log_lines(series, page, workers)]


async def iters(
    store: EventStore, series: SeriesQuery = PLOTS, iterations: Range = EVERYWHERE, **how: Any
) -> list[int]:
    """The iterations of a page of samples; `how` as in PageQuery."""
    page = PageQuery(**{"limit": 10**6, **how})
    return [one.iter for one in await store.samples(series, page, iterations)]


def same(got: Iterable[float], expected: Iterable[float]) -> bool:
    """Whether two columns are equal, NaN to NaN."""
    return bool(np.array_equal(np.array(list(got)), np.array(list(expected)), equal_nan=True))


async def buckets_of(
    case: Case,
    interval: int,
    start: int | None = None,
    stop: int | None = None,
    *,
    axis: BucketAxis = BucketAxis.ITER,
    finer: bool = False,
) -> Buckets:
    """The buckets of the only series."""
    asked = BucketQuery(axis, lambda *_: interval, Range.of(start, stop), ALL, may_be_finer=finer)
    (found,) = await case.store.scalar_buckets(SCALARS, asked)
    return found
