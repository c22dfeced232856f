"""When an index is refreshed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch import cluster as cluster_module
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import AWAY_AGAIN

pytestmark = pytest.mark.anyio


class _Refreshes(Cluster):
    """A cluster without nodes: it only notes which index is refreshed."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__(ElasticsearchAddress(("http://127.0.0.1:1",)), strict=strict)
        self.refreshed: list[str] = []
        self.behind: list[int] = []
        """How many copies each of the next refreshes fails to refresh."""
        self.hold = asyncio.Event()
        self.hold.set()
        self.client.indices.refresh = self._answer  # type: ignore[method-assign,assignment]

    async def _answer(self, *, index: str, **_: Any) -> JsonObject:
        await self.hold.wait()
        self.refreshed.append(index)
        return {"_shards": {"failed": self.behind.pop() if self.behind else 0}}


@pytest.fixture
async def cluster() -> AsyncIterator[_Refreshes]:
    made = _Refreshes(strict=False)
    yield made
    await made.close()


async def test_only_what_was_written_is_refreshed(cluster: _Refreshes) -> None:
    await cluster.make_visible(["a", "b"])
    assert cluster.refreshed == ["a", "b"]  # a process before this one may have written
    cluster.wrote(["a"])
    await cluster.make_visible(["a", "b"])
    await cluster.make_visible(["a", "b"])
    assert cluster.refreshed == ["a", "b", "a"]


async def test_readers_share_a_refresh(cluster: _Refreshes) -> None:
    cluster.wrote(["a"])
    await asyncio.gather(*(cluster.make_visible(["a"]) for _ in range(10)))
    assert cluster.refreshed == ["a"]


async def test_what_is_written_during_a_refresh_waits_for_the_next(cluster: _Refreshes) -> None:
    cluster.wrote(["a"])
    cluster.hold.clear()
    first = asyncio.create_task(cluster.make_visible(["a"]))
    await asyncio.sleep(0)
    cluster.wrote(["a"])
    second = asyncio.create_task(cluster.make_visible(["a"]))
    await asyncio.sleep(0)
    cluster.hold.set()
    await asyncio.gather(first, second)
    assert cluster.refreshed == ["a", "a"]


async def test_readers_share_a_refresh_that_fails(cluster: _Refreshes) -> None:
    """Else each would wait for nodes that do not answer, one reader after the other."""
    cluster.hold.clear()
    cluster.behind = [1] * (len(cluster_module._REFRESH_PAUSES) + 1)
    readers = [asyncio.create_task(cluster.make_visible(["a"])) for _ in range(10)]
    await asyncio.sleep(0)
    cluster.hold.set()
    for outcome in await asyncio.gather(*readers, return_exceptions=True):
        assert isinstance(outcome, EventStoreBusy)
        assert str(outcome) == "a copy of the events is behind"
        assert outcome.retry_after == AWAY_AGAIN
    assert len(cluster.refreshed) == len(cluster_module._REFRESH_PAUSES) + 1
    await cluster.make_visible(["a"])  # who comes later tries again
    assert len(cluster.refreshed) == len(cluster_module._REFRESH_PAUSES) + 2


async def test_a_strict_reader_sees_what_others_wrote() -> None:
    cluster = _Refreshes(strict=True)
    await cluster.make_visible(["a"])
    await cluster.make_visible(["a"])
    assert cluster.refreshed == ["a", "a"]
    await cluster.close()


async def test_a_refresh_is_tried_again_until_all_copies_are_refreshed(cluster: _Refreshes) -> None:
    cluster.behind = [1, 1]
    await cluster.make_visible(["a"])
    assert cluster.refreshed == ["a", "a", "a"]


async def test_nothing_is_read_while_a_copy_is_behind(cluster: _Refreshes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_REFRESH_PAUSES", (0.0, 0.0))
    cluster.behind = [1] * 3
    with pytest.raises(EventStoreBusy, match="behind"):
        await cluster.make_visible(["a"])
    await cluster.make_visible(["a"])
    assert cluster.refreshed == ["a"] * 4


async def test_a_document_that_cannot_be_read_is_not_taken_for_a_missing_one(cluster: _Refreshes) -> None:
    answer: JsonObject = {"docs": [{"_id": "a", "found": False}]}

    async def mget(**_: Any) -> JsonObject:
        return answer

    cluster.client.mget = mget  # type: ignore[method-assign,assignment]
    assert await cluster.get_each([{"_id": "a"}]) == [{"_id": "a", "found": False}]
    answer["docs"].append({"_id": "b", "error": {"type": "no_shard_available_action_exception", "reason": "away"}})
    with pytest.raises(EventStoreBusy, match="away"):
        await cluster.get_each([{"_id": "a"}, {"_id": "b"}])


async def test_a_node_that_is_too_busy_is_not_asked_again_at_once() -> None:
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        cluster = Cluster(ElasticsearchAddress((f"http://127.0.0.1:{port}",)), strict=False)
        with pytest.raises(EventStoreBusy):
            await cluster.check()
        await cluster.close()
    assert len(requests) == 1
