"""What requests take of this process, with nodes that are none."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal

import elastic_transport
import pytest
from elastic_transport import ConnectionTimeout, ObjectApiResponse, RoundRobinSelector

from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.elasticsearch import node
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import BOUNDS, ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from tests.certificates import new_pair
from tests.clock import still_clock

pytestmark = pytest.mark.anyio

#: More than the sockets of a connection hold.
HALF = 16 * 2**20
SMALL_ANSWERS = ElasticsearchBounds(largest_answer=HALF)
HEAD = b"HTTP/1.1 200 OK\r\nX-Elastic-Product: Elasticsearch\r\nContent-Type: application/json\r\n"


class Nodes:
    """Answers everything with a text of twice HALF bytes, the second half of which comes when it is let."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.one = asyncio.Event()
        self.read = 0
        """Of how many answers the first half was read, and not the second."""
        self.most = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # who asks reads no more of it
            await self._answer(reader, writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % (2 * HALF + 2) + b'"' + b"x" * HALF)
        await writer.drain()
        self.read += 1
        self.most = max(self.most, self.read)
        self.one.set()
        await self.let.wait()
        self.read -= 1
        writer.write(b"x" * HALF + b'"')
        await writer.drain()


@pytest.fixture
async def nodes() -> Nodes:
    return Nodes()


@pytest.fixture
def bounds() -> ElasticsearchBounds:
    return BOUNDS


@pytest.fixture
async def cluster(nodes: Nodes, bounds: ElasticsearchBounds) -> AsyncIterator[Cluster]:
    async with await asyncio.start_server(nodes.answer, "127.0.0.1", 0) as server:
        address = ElasticsearchAddress((f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",))
        opened = Cluster(address, strict=False, bounds=bounds)
        yield opened
        await opened.close()


class Turns(asyncio.Lock):
    """Says when all five answers have reached their turn, of which one has it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.all_ask = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        self.asked += 1
        if self.asked == 5:
            self.all_ask.set()
        return await super().acquire()


@pytest.mark.test
async def test_large_answers_are_read_in_turns(nodes: Nodes, cluster: Cluster) -> None:
    asking, turns = cluster.client.transport.node_pool.get(), Turns()
    assert isinstance(asking, node.Node)
    asking._create_aiohttp_session()
    asking.session._response_class.turns = turns  # type: ignore[union-attr]
    asked = [asyncio.create_task(cluster.client.info()) for _ in range(5)]
    async with asyncio.timeout(60):
        await nodes.one.wait()
        await turns.all_ask.wait()
        assert nodes.most == 1
        nodes.let.set()
        await asyncio.gather(*asked)
    assert nodes.most == 1


@pytest.mark.parametrize("bounds", [SMALL_ANSWERS])
async def test_an_answer_is_not_read_beyond_a_bound(nodes: Nodes, cluster: Cluster) -> None:
    with pytest.raises(EventStoreBusy, match="an answer of a node has more than 16,777,216 bytes"):
        await cluster.check()
    nodes.let.set()


async def test_a_node_whose_answer_is_too_large_is_asked_again(nodes: Nodes) -> None:
    """Else each such answer would send all requests to another node, which has to refresh what it is asked for."""
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(await asyncio.start_server(nodes.answer, "127.0.0.1", 0)) for _ in range(2)
        ]
        hosts = tuple(f"http://127.0.0.1:{one.sockets[0].getsockname()[1]}" for one in servers)
        cluster = Cluster(ElasticsearchAddress(hosts), strict=False, bounds=SMALL_ANSWERS)
        stack.push_async_callback(cluster.close)
        nodes.let.set()
        asked = cluster.client.transport.node_pool.get()
        with pytest.raises(EventStoreBusy, match="an answer of a node has more than"):
            await cluster.check()
        assert cluster.client.transport.node_pool.get() is asked


class Stuck:
    """Takes requests, and answers them as long as it is well."""

    def __init__(self) -> None:
        self.is_well = True
        self.asked: list[bytes] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.asked.append(head.split(b" ", 1)[0])
                if self.is_well:
                    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % (0 if self.asked[-1] == b"HEAD" else 2))
                    writer.write(b"" if self.asked[-1] == b"HEAD" else b"{}")
        writer.close()


@asynccontextmanager
async def serving(*nodes: Stuck) -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(await asyncio.start_server(one.answer, "127.0.0.1", 0)) for one in nodes
        ]
        hosts = tuple(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers)
        cluster = Cluster(ElasticsearchAddress(hosts), strict=False)
        stack.push_async_callback(cluster.close)
        yield cluster


async def until_asked(node: Stuck, *methods: bytes) -> None:
    """Wait until a node was asked for just that."""
    while len(node.asked) < len(methods):  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert node.asked == [*methods]


def of_both(cluster: Cluster) -> asyncio.Future[list[object]]:
    """Ask each of two nodes, also one that failed, which is left out for seconds else."""
    cluster.client.transport.node_pool.resurrect(force=True)
    return asyncio.gather(*(cluster.client.info() for _ in range(2)), return_exceptions=True)


async def test_a_node_that_is_stuck_is_asked_for_a_sign_of_life_until_it_gives_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node, "OneUntilItFails", RoundRobinSelector)  # so that both are asked, again and again
    stuck, well = Stuck(), Stuck()
    stuck.is_well = False
    async with serving(stuck, well) as known:
        both = partial(of_both, known)
        with still_clock() as clock:
            asking = both()
            await until_asked(stuck, b"GET")
            await clock.passes(31)
            assert {type(outcome) for outcome in await asking} == {ObjectApiResponse, ConnectionTimeout}
            asking = both()
            await until_asked(stuck, b"GET", b"HEAD")
            await clock.passes(3)
            assert [type(outcome) for outcome in await asking] == [ObjectApiResponse] * 2
            await both()
            await until_asked(stuck, b"GET", b"HEAD")  # nobody asks for another sign for a second
            await clock.passes(1)
            stuck.is_well = True
            await both()
            await until_asked(stuck, b"GET", b"HEAD", b"HEAD")
            # One sign is not enough: it does not know yet that it was left out.
            await clock.passes(9)
            await both()
            await until_asked(stuck, b"GET", b"HEAD", b"HEAD", b"HEAD")
            await clock.passes(1)
            await both()
            await until_asked(stuck, b"GET", b"HEAD", b"HEAD", b"HEAD", b"HEAD", b"GET")


async def test_a_single_node_that_is_stuck_is_refused_soon() -> None:
    stuck = Stuck()
    stuck.is_well = False
    async with serving(stuck) as cluster:
        with still_clock() as clock:
            asking = asyncio.ensure_future(cluster.client.info())
            await until_asked(stuck, b"GET")
            await clock.passes(31)
            with pytest.raises(ConnectionTimeout):
                await asking
            all_ask = asyncio.gather(*(cluster.client.info() for _ in range(10)), return_exceptions=True)
            await until_asked(stuck, b"GET", b"HEAD")
            await clock.passes(3)
            assert [type(one) for one in await all_ask] == [elastic_transport.ConnectionError] * 10
            assert stuck.asked == [b"GET", b"HEAD"]


@pytest.mark.test
@pytest.mark.parametrize(
    ("of", "verify", "is_trusted"),
    [
        ("IP:127.0.0.1", True, True),
        ("IP:127.0.0.2,DNS:localhost", True, False),
        ("IP:127.0.0.2,DNS:localhost", False, True),
    ],
)
async def test_a_certificate_has_to_be_of_the_node_s_address(
    tmp_path: Path, of: str, verify: bool, is_trusted: bool
) -> None:
    """By an IP address, too: whoever has a certificate of the same authority could answer in place of the node."""
    pair = new_pair(tmp_path, of=of)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        host = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        cluster = Cluster(ElasticsearchAddress((host,), ca=pair.certificate, verify=verify), strict=False)
        try:
            if is_trusted:
                await cluster.check()
            else:
                with pytest.raises(EventStoreError, match=r"certificate is not valid for '127\.0\.0\.1'"):
                    await cluster.check()
        finally:
            await cluster.close()
