"""What requests take of this process, with nodes that are none."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.elasticsearch import node
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import NodeAnswerTooLarge
from tests.certificates import new_pair

pytestmark = pytest.mark.anyio

#: More than the sockets of a connection hold.
HALF = 16 * 2**20
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
async def cluster(nodes: Nodes) -> AsyncIterator[Cluster]:
    async with await asyncio.start_server(nodes.answer, "127.0.0.1", 0) as server:
        opened = Cluster(
            ElasticsearchAddress((f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",)), strict=False
        )
        yield opened
        await opened.close()


async def test_large_answers_are_read_in_turns(nodes: Nodes, cluster: Cluster) -> None:
    asked = [asyncio.create_task(cluster.check()) for _ in range(5)]
    async with asyncio.timeout(60):
        await nodes.one.wait()
        await asyncio.sleep(0.2)  # others would be read as well by now
        assert nodes.most == 1
        nodes.let.set()
        await asyncio.gather(*asked)
    assert nodes.most == 1


async def test_an_answer_is_not_read_beyond_a_bound(
    nodes: Nodes, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "LARGEST_ANSWER", HALF)
    with pytest.raises(NodeAnswerTooLarge, match="an answer of a node has more than 16,777,216 bytes"):
        await cluster.check()
    nodes.let.set()


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
