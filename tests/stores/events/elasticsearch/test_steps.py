"""A server stops at each step of writing, compacting and deleting, on a real node: nothing is lost or doubled.

A step is a request to the node. The server sends so many, and no more; or half of the actions of its last one, if that
is a bulk. Then others find all that was acknowledged, once, and whatever was begun can be begun again.

`EVENTS_KILLS=100 pytest tests/stores/events/elasticsearch/test_steps.py` stops it at every step, and not only at some.
`tests/engines/test_kill.py` kills real servers, at moments of chance.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pytest

from apiserver.events.changes import ChangesQuery
from apiserver.events.model import EventBatch, EventType, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.compactor import Compactor
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.contract.event_stores import batch, lines, sample, scalars

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("EVENTS_KILLS", "1"))
#: Seconds for which a server that stopped keeps others from the same work. It is half a minute otherwise.
LEASE = 0.2
#: A time of log lines, and how many points a series is thinned to.
TIME, FEW = 8, 20


class Stopped(Exception):
    """The server is no more."""


@dataclass
class Life:
    """How many requests a server sends; None: it does not stop. If `halves`, it also sends half of a bulk that is next.

    Requests that are sent at once may come in another order than they did before, so the next one may be no bulk.
    """

    requests: int | None = None
    halves: bool = False
    sent: list[bool] = field(default_factory=list)
    """Whether each of its requests is a bulk of several actions."""
    writes: list[bool] = field(default_factory=list)
    """Whether each of them may change what is kept. To stop after one that only reads is to stop before it."""

    def bound(self, store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stop the store's server after these requests."""
        transport = store._cluster.client.transport
        perform_request = transport.perform_request

        async def perform(method: str, target: str, *, body: Any = None, **how: Any) -> Any:
            actions = [*_actions(b"".join(body))] if "/_bulk" in target else []
            self.sent.append(len(actions) > 1)
            self.writes.append(method not in ("GET", "HEAD") and "_search" not in target and "_mget" not in target)
            if self.requests is None or len(self.sent) <= self.requests:
                return await perform_request(method, target, body=body, **how)
            if self.halves and len(self.sent) == self.requests + 1 and len(actions) > 1:
                await perform_request(method, target, body=actions[: len(actions) // 2], **how)
            raise Stopped

        monkeypatch.setattr(transport, "perform_request", perform)


def _actions(body: bytes) -> Iterator[bytes]:
    """The actions of a bulk, each with its document."""
    left = iter(body.splitlines(keepends=True))
    for line in left:
        yield line if "delete" in json.loads(line) else line + next(left)


@dataclass(frozen=True)
class Kept:
    """All events of an owner."""

    points: dict[tuple[str, int], float]
    lines: list[str]
    samples: set[int]


async def kept(store: ElasticsearchEventStore, owner: Owner) -> Kept:
    """What a server shows. Nothing may be there twice."""
    found = await store.scalar_points(SeriesQuery(owner, EventType.SCALAR), PageQuery(10**5))
    metrics = [found.names[number][0] for number in found.series.tolist()]
    places = [*zip(metrics, found.iters.tolist(), strict=True)]
    assert len({*places}) == len(places)
    log = SeriesQuery(owner, EventType.LOG)
    texts = [line.message for line in await store.log_lines(log, PageQuery(10**5))]
    assert len({*texts}) == len(texts) == await store.log_count(log)
    samples = [one.iter for one in await store.samples(SeriesQuery(owner, EventType.PLOT), PageQuery(100))]
    assert len({*samples}) == len(samples)
    return Kept(dict(zip(places, found.values.tolist(), strict=True)), texts, {*samples})


def assert_between(found: Kept, before: Kept, after: Kept) -> None:
    """Each event is as before or as after."""
    for at in {**before.points, **after.points, **found.points}:
        assert found.points.get(at) in (before.points.get(at), after.points.get(at))
    assert {*found.lines} >= {*before.lines} & {*after.lines}
    longer = max(before.lines, after.lines, key=len)
    assert found.lines == [line for line in longer if line in {*found.lines}]
    assert before.samples & after.samples <= found.samples <= before.samples | after.samples


# --- what is kept first, and what is done to it ----------------------------------------------------


def batches(owner: Owner) -> Iterator[EventBatch]:
    """Long and short series, which overlap; lines of one time; samples."""
    for n in range(5):
        loss = scalars([n + i / 8 for i in range(300)], iters=range(n * 250, n * 250 + 300), metric="loss", owner=owner)
        rate = scalars([n / 2, n / 4], iters=[n, n + 1], metric="rate", owner=owner)
        texts = lines([f"{n}.{i}" for i in range(4)], timestamps=[3 * n] * 4, digest=f"body {n}".encode(), owner=owner)
        yield batch(loss, rate, texts, sample(n, owner=owner))


def later(owner: Owner) -> EventBatch:
    """One that overwrites some points."""
    loss = scalars([-1.0] * 300, iters=range(1200, 1500), metric="loss", owner=owner)
    rate = scalars([-2.0, -3.0], iters=[3, 99], metric="rate", owner=owner)
    return batch(
        loss, rate, lines(["later", "latest"], timestamps=[7, 99], digest=b"l", owner=owner), sample(9, owner=owner)
    )


Does = Callable[[ElasticsearchEventStore, Owner], Awaitable[object]]
Changes = Callable[[Kept], Kept]


async def _add(store: ElasticsearchEventStore, owner: Owner) -> None:
    assert not await store.add(later(owner))


def _with_later(before: Kept) -> Kept:
    points = {("loss", at): -1.0 for at in range(1200, 1500)} | {("rate", 3): -2.0, ("rate", 99): -3.0}
    at = before.lines.index("2.3") + 1
    texts = [*before.lines[:at], "later", *before.lines[at:], "latest"]
    return Kept(before.points | points, texts, before.samples | {9})


async def _compact(store: ElasticsearchEventStore, owner: Owner) -> None:
    parts = store._opened
    for compact in (parts.scalars.compact, parts.logs.compact):
        if not await compact(owner, fewest=1):
            raise EventStoreBusy("another server does it", overloaded=False)


def _the_same(before: Kept) -> Kept:
    return before


async def _delete(store: ElasticsearchEventStore, owner: Owner) -> None:
    await store.delete([owner])


def _nothing(before: Kept) -> Kept:
    return Kept({}, [], set())


async def _delete_known_points(store: ElasticsearchEventStore, owner: Owner) -> None:
    await store.delete_scalars(owner, (await store.changes(ChangesQuery([owner]))).cursor)


def _without_points(before: Kept) -> Kept:
    return Kept({}, before.lines, before.samples)


async def _delete_old_lines(store: ElasticsearchEventStore, owner: Owner) -> None:
    await store.delete_logs(SeriesQuery(owner, EventType.LOG), TIME)


def _without_old_lines(before: Kept) -> Kept:
    return Kept(
        before.points, [text for text in before.lines if 3 * int(text.partition(".")[0]) >= TIME], before.samples
    )


async def _thin(store: ElasticsearchEventStore, owner: Owner) -> None:
    await store.thin_scalars(SeriesQuery(owner, EventType.SCALAR), FEW)


OPERATIONS: dict[str, tuple[Does, Changes | None]] = {
    "write": (_add, _with_later),
    "compact": (_compact, _the_same),
    "delete": (_delete, _nothing),
    "delete known points": (_delete_known_points, _without_points),
    "delete old lines": (_delete_old_lines, _without_old_lines),
    "thin": (_thin, None),
}


# --- servers ---------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _nothing_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a server's steps are the same each time."""
    monkeypatch.setattr(Compactor, "start", lambda compactor: None)


NewServer = Callable[..., Awaitable[ElasticsearchEventStore]]


@pytest.fixture
async def new_server(elasticsearch_url: str, elasticsearch_prefix: str) -> AsyncIterator[NewServer]:
    opened = []

    async def new(**how: Any) -> ElasticsearchEventStore:
        address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)
        store = ElasticsearchEventStore(address, bounds=ElasticsearchBounds(ColumnarBounds(lease=LEASE)), **how)
        await store.open()
        opened.append(store)
        return store

    yield new
    for store in opened:
        await store.close()


async def again(store: ElasticsearchEventStore, does: Does, owner: Owner) -> None:
    """Do it, when the lease of the server that stopped is over."""
    while True:
        try:
            await does(store, owner)
        except EventStoreBusy:
            await asyncio.sleep(LEASE / 4)
        else:
            return


async def filled(other: ElasticsearchEventStore, owner: Owner) -> None:
    """Keep some events of an owner, as chunks and as fragments."""
    for number, one in enumerate(batches(owner)):
        await other.add(one)
        if number == 2:
            await other.compact(owner)


def assert_thinned(found: Kept, before: Kept) -> None:
    """Some points of long series may be gone, and no others."""
    assert found.points.items() <= before.points.items()
    assert {at for at in before.points if at[0] == "rate"} | {("loss", 0), ("loss", 1299)} <= found.points.keys()
    assert (found.lines, found.samples) == (before.lines, before.samples)


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_server_may_stop_at_each_step(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch, dice: random.Random, name: str
) -> None:
    does, changes = OPERATIONS[name]
    other = await new_server(strict=True, migrate=True)
    owners = [Owner("company", f"{number}") for number in range(2 * KILLS + 1)]
    whole, stops = Life(), list[Life]()
    for owner, life in zip(owners, chain([whole], stops), strict=False):
        await filled(other, owner)
        before = await kept(other, owner)
        server = await new_server()
        with monkeypatch.context() as patch, nullcontext() if life is whole else pytest.raises(Stopped):
            life.bound(server, patch)
            await does(server, owner)
        found = await kept(other, owner)
        if changes is None:
            assert_thinned(found, before)
        else:
            assert_between(found, before, changes(before))
        await again(other, does, owner)
        for reader in (other, await new_server()):
            found = await kept(reader, owner)
            if changes is None:
                assert_thinned(found, before)
                assert len([metric for metric, _ in found.points if metric == "loss"]) <= FEW
            else:
                assert found == changes(before)
        if life is whole:
            every = [
                Life(n, halves)
                for n, bulk in enumerate(whole.sent)
                for halves in (False, True)[: 1 + bulk]
                if halves or n == 0 or whole.writes[n - 1]
            ]
            stops += dice.sample(every, min(len(every), 2 * KILLS))
    assert len(stops) == min(len(every), 2 * KILLS)
