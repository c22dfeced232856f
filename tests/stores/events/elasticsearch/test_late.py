"""A node does once more, late, what it was asked for: that brings back nothing that was overwritten or deleted since.

So it is if a node gets stuck with a request, or is cut off with it, and the server asks another one. Here, the same
requests are sent to the node again, after all that a server did. `tests/engines/test_cluster.py` stops real nodes.
`EVENTS_EXAMPLES=100` tries more of what a server may do.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import pytest

from apiserver.events.changes import ChangesQuery
from apiserver.events.model import EventType
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.contract.event_stores import OWNER, batch, lines, scalars
from tests.engines.load import Contents, contents
from tests.longer import beyond

pytestmark = pytest.mark.anyio

#: Does once more what a node was asked for.
Request = Callable[[], Coroutine[Any, Any, object]]
SEEDS = int(os.environ.get("EVENTS_EXAMPLES", "2"))
POINTS, LINES = SeriesQuery(OWNER, EventType.SCALAR), SeriesQuery(OWNER, EventType.LOG)


class Server:
    """A server that compacts only if it is told to, and remembers what it asked nodes to write into blocks."""

    def __init__(self, store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.asked: list[Request] = []
        transport = store._cluster.client.transport
        perform_request = transport.perform_request

        async def perform(method: str, target: str, *, body: Any = None, **how: Any) -> Any:
            if "-blocks-" in target and "/_bulk" in target:
                copy = [*body]
                self.asked.append(lambda: perform_request(method, target, body=copy, **how))
            return await perform_request(method, target, body=body, **how)

        monkeypatch.setattr(transport, "perform_request", perform)

    async def add(self, first: int, value: float) -> None:
        """Add a long series, two short ones, and a line. They may overwrite points of batches that came before."""
        iters = range(first, first + 300)
        await self.store.add(
            batch(
                scalars([value] * 300, iters=iters, metric="long"),
                *(scalars([value] * 3, iters=iters[:3], metric=metric) for metric in ("short", "shorter")),
                lines([f"{value} {first}"], timestamps=[first], digest=f"{value} {first}".encode()),
            )
        )

    async def compact(self) -> None:
        opened = self.store._opened
        assert await opened.scalars.compact(OWNER, fewest=1)
        assert await opened.logs.compact(OWNER, fewest=1)

    async def delete(self) -> None:
        await self.store.delete([OWNER])

    async def delete_known(self) -> None:
        known = (await self.store.changes(ChangesQuery([OWNER]))).cursor
        await self.store.delete_scalars(OWNER, known)
        await self.store.delete_logs(LINES, None, up_to=known)

    async def thin(self) -> None:
        await self.store.thin_scalars(POINTS, 20)


@pytest.fixture
async def server(
    elasticsearch_url: str, elasticsearch_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Server]:
    monkeypatch.setattr(ElasticsearchEventStore, "compacts", False)
    store = ElasticsearchEventStore(ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix), migrate=True)
    await store.open()
    yield Server(store, monkeypatch)
    await store.close()


async def shown(store: ElasticsearchEventStore) -> Contents:
    """What another server shows."""
    other = ElasticsearchEventStore(store._address)
    await other.open()
    try:
        return await contents(other, OWNER)
    finally:
        await other.close()


Does = Callable[[Server], Coroutine[Any, Any, None]]


def adds(first: int, value: float) -> Does:
    return lambda server: server.add(first, value)


A, OVER_A, B, ANEW = adds(0, 1.0), adds(0, 2.0), adds(200, 3.0), adds(100, 4.0)
COMPACT, DELETE, DELETE_KNOWN, THIN = Server.compact, Server.delete, Server.delete_known, Server.thin


@pytest.mark.parametrize("backwards", beyond([True], [True, False]))
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([A, B, OVER_A], id="overwritten"),
        pytest.param([A, B, OVER_A, COMPACT], id="overwritten and compacted"),
        pytest.param([A, COMPACT, OVER_A, B, COMPACT], id="compacted again and again"),
        pytest.param([A, B, A, OVER_A], id="sent again and overwritten"),
        pytest.param([A, B, A, OVER_A, COMPACT], id="sent again, overwritten and compacted"),
        pytest.param([A, B, DELETE], id="deleted"),
        pytest.param([A, B, COMPACT, DELETE, ANEW], id="deleted, and others came"),
        pytest.param([A, B, DELETE, ANEW, DELETE, B], id="deleted twice"),
        pytest.param([A, B, DELETE_KNOWN, ANEW], id="deleted up to a cursor, and others came"),
        pytest.param([A, B, COMPACT, ANEW, DELETE_KNOWN, OVER_A, COMPACT], id="deleted up to a cursor, and compacted"),
        pytest.param([A, B, THIN, ANEW, COMPACT], id="thinned"),
    ],
)
async def test_what_a_node_does_late_changes_nothing(server: Server, steps: list[Does], backwards: bool) -> None:
    """The last request comes first, so that the oldest one would win. `make longer` also does them in their order."""
    for step in steps:
        await step(server)
    assert len(server.asked) >= len(steps)
    await nothing_changes(server, server.asked[::-1] if backwards else [*server.asked])


async def nothing_changes(server: Server, late: Sequence[Request]) -> None:
    """Let the node do requests once more. Assert that nothing changes, also by compaction."""
    before = await shown(server.store)
    for request in late:
        await request()
    assert await shown(server.store) == before
    await server.compact()
    assert await shown(server.store) == before


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_what_a_node_does_late_after_anything_changes_nothing(server: Server, seed: int) -> None:
    chance = random.Random(seed)
    add = adds(0, 0.0)
    for number in range(1, chance.randint(5, 13)):
        what = chance.choice(["new", "new", "new", "again", "other"])
        if what == "other":
            await chance.choice([COMPACT, DELETE, DELETE_KNOWN, THIN])(server)
        if what != "again":
            add = adds(chance.randrange(0, 900, 50), float(number))
        if what != "other":
            await add(server)
    await nothing_changes(server, chance.sample(server.asked, len(server.asked)))
