"""Makes clients. They send requests with the aiohttp node of Elasticsearch's client, and bound what each of them takes.

Large bodies are sent in pieces. Large answers are read one at a time, so that memory has only one of them; the others
wait in sockets and at nodes. An answer of more than `largest_answer` bytes is not read to its end, and becomes an error
of the type TOO_LARGE. Requests are not logged, as the client would decode all bodies for that.

A node that did not answer in time may be stuck. Until it answers again, it is asked for a sign of life before each
request, so that callers wait for seconds, and not for as long as an answer may take.

A node that gave none was left out by the others meanwhile. When it goes on, it does not know that for a moment, and
would answer searches with what it had when it got stuck. So if there are others, it gets no request for some seconds
after its first sign. For example, of three nodes:

    0 s     a request to node 2   no answer in 30 s, and an error, as it may be done
    30 s    a request to node 2   no sign of life in 3 s; sent to node 3
    90 s    a request to node 2   a sign of life; sent to node 3
    120 s   a request to node 2   a sign of life; sent to node 2

A server asks the same node until that fails, and then another one. A node may be cut off from the others, and not know
it yet: what one node has acknowledged may be missing at another. The nodes of a list are shuffled, so that many servers
ask different ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from io import BytesIO
from typing import Any, ClassVar, cast

import orjson
from aiohttp import ClientResponse
from elastic_transport import (
    AiohttpHttpNode,
    BaseNode,
    ConnectionError,
    ConnectionTimeout,
    HttpHeaders,
    NodeConfig,
    NodeSelector,
    SerializationError,
    Serializer,
    TransportError,
)
from elastic_transport.client_utils import DEFAULT, DefaultType
from elasticsearch import AsyncElasticsearch, OrjsonSerializer

from apiserver.common.answers import will_read
from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.elasticsearch import cbor
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import BOUNDS, ElasticsearchBounds

TOO_LARGE = "answer_too_large"
#: What a request accepts whose answer has many bytes.
CBOR = "application/vnd.elasticsearch+cbor; compatible-with=8"
_CBOR = CBOR.partition(";")[0]

_CONNECTIONS = 32
_IN_PIECES = 2**18
_IN_TURNS = 2**18
#: "Bad Request". The client does not ask other nodes after this status, nor leave the node, as it would after 413.
_STATUS = 400


class Node(AiohttpHttpNode):
    """A node of the cluster, the only one with an address that this server knows."""

    has_others = False
    bounds = BOUNDS

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        self._answers = True
        self._asking: asyncio.Task[bool] | None = None
        self._gave_none = False
        self._signs_since: float | None = None
        if self._ssl_context is not None and config.verify_certs:
            # The library does not compare a certificate with the host if that is an IP address.
            self._ssl_context.check_hostname = True

    async def perform_request(  # type: ignore[override]
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: HttpHeaders | None = None,
        request_timeout: DefaultType | float | None = DEFAULT,
    ) -> Any:
        if not self._answers and not await self._gives_a_sign():
            raise ConnectionError("it did not answer in time, and gives no sign of life")  # another node is asked then
        if body is not None and len(body) > _IN_PIECES:
            body = cast(bytes, BytesIO(body))  # aiohttp takes either
        try:
            return await super().perform_request(method, target, body, headers, request_timeout)
        except ConnectionTimeout:
            self._answers = False
            raise

    async def _gives_a_sign(self) -> bool:
        """Whether the node answers anything. All that want to know wait for one question."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(self._asking)

    async def _ask(self) -> bool:
        loop = asyncio.get_running_loop()
        try:
            await super().perform_request("HEAD", "/", request_timeout=self.bounds.sign)
        except TransportError:
            self._gave_none, self._signs_since = True, None
            loop.call_later(self.bounds.no_sign, self._forget)
            return False
        self._forget()
        self._signs_since = self._signs_since or loop.time()
        if self.has_others and self._gave_none and loop.time() < self._signs_since + self.bounds.joining:
            return False
        self._answers, self._gave_none, self._signs_since = True, False, None
        return True

    def _forget(self) -> None:
        self._asking = None

    def _create_aiohttp_session(self) -> None:
        super()._create_aiohttp_session()
        assert self.session is not None
        self.session._response_class = type(
            "_Answer", (_Answer,), {"turns": asyncio.Lock(), "largest": self.bounds.largest_answer}
        )

    def _log_request(self, *_: Any, **__: Any) -> None:
        pass


class OneOfMany(Node):
    """A node of the cluster. This server knows others, too."""

    has_others = True


class OneUntilItFails(NodeSelector):
    """Selects the node that has not failed for longest."""

    def select(self, nodes: Sequence[BaseNode]) -> BaseNode:
        return nodes[0]  # one that has failed comes back as the last


class _Answer(ClientResponse):
    turns: ClassVar[asyncio.Lock]
    largest: ClassVar[int]

    async def read(self) -> bytes:
        if self._body is None:
            pieces, size = [], 0
            async with AsyncExitStack() as turn:
                async for piece in self.content.iter_any():
                    if size <= _IN_TURNS < size + len(piece):
                        await turn.enter_async_context(self.turns)
                    size += len(piece)
                    if size > self.largest:
                        self.close()
                        reason = f"an answer of a node has more than {self.largest:,} bytes"
                        self.status = _STATUS
                        return orjson.dumps({"error": {"type": TOO_LARGE, "reason": reason}})
                    pieces.append(piece)
                self._body = b"".join(pieces)
        return await super().read()


class _Serializer(OrjsonSerializer):
    """Counts the bytes of a node's answer before it is decoded."""

    def loads(self, data: bytes) -> Any:
        will_read(len(data))
        return super().loads(data)


class _Cbor(Serializer):
    """The same of answers in CBOR. An error may be JSON nevertheless: it begins as no answer in CBOR does."""

    mimetype = _CBOR

    def loads(self, data: bytes) -> Any:
        will_read(len(data))
        try:
            return orjson.loads(data) if data.startswith(b"{") else cbor.loads(data)
        except (ValueError, IndexError) as error:
            raise SerializationError(f"an answer of a node is no CBOR: {error}") from error

    def dumps(self, data: Any) -> bytes:
        raise NotImplementedError


def client_of(address: ElasticsearchAddress, bounds: ElasticsearchBounds = BOUNDS) -> AsyncElasticsearch:
    """A client of the nodes of an address, which is not connected yet. EventStoreError: its certificates are no use."""
    secure: JsonObject = {}
    node = OneOfMany if len(address.hosts) > 1 else Node
    if any(host.startswith("https") for host in address.hosts):
        secure = {"verify_certs": address.verify, "ssl_show_warn": False}
        if address.ca is not None:
            secure["ca_certs"] = str(address.ca)
    try:
        return AsyncElasticsearch(
            list(address.hosts),
            node_class=type(node.__name__, (node,), {"bounds": bounds}),
            node_selector_class=OneUntilItFails,
            basic_auth=(address.user, address.password) if address.user else None,
            api_key=address.api_key or None,
            connections_per_node=_CONNECTIONS,
            request_timeout=bounds.timeout,
            retry_on_timeout=False,
            retry_on_status=(502, 503, 504),  # not 429, as the client does not pause
            serializers={"application/json": _Serializer(), _CBOR: _Cbor()},
            **secure,
        )
    except (OSError, ValueError) as error:
        raise EventStoreError(f"the certificates to trust, '{address.ca}', cannot be used: {error}") from error


def leave(client: AsyncElasticsearch, config: NodeConfig) -> None:
    """Send the next requests to other nodes than this one, if there are any."""
    pool = client.transport.node_pool
    pool.mark_dead(next(node for node in pool.all() if node.config == config))
