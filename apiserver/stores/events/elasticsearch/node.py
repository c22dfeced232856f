"""Makes clients. Elasticsearch's library chooses nodes and encodes requests; `connections.py` sends them.

An answer of more than LARGEST_ANSWER bytes is not read to its end, and becomes an error of the type TOO_LARGE. Requests
are not logged, as the client would decode all bodies for that.
"""

from __future__ import annotations

import asyncio
import ssl
import string
from functools import cached_property
from typing import Any
from urllib.parse import quote

import orjson
from elastic_transport import (
    AiohttpHttpNode,
    ApiResponseMeta,
    ConnectionError,
    ConnectionTimeout,
    HttpHeaders,
    SerializationError,
    Serializer,
    TlsError,
)
from elastic_transport._node import NodeApiResponse
from elastic_transport.client_utils import DEFAULT, DefaultType
from elasticsearch import AsyncElasticsearch, OrjsonSerializer

from apiserver.answers import will_read
from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.elasticsearch import cbor
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.connections import Connections

TOO_LARGE = "answer_too_large"
#: What a request accepts whose answer has many bytes.
CBOR = "application/vnd.elasticsearch+cbor; compatible-with=8"
_CBOR = CBOR.partition(";")[0]
#: Bytes of the largest answer that is read. An event of 16 MB takes up to 32 MB.
LARGEST_ANSWER = 64 * 2**20

#: Seconds for an answer.
_TIMEOUT = 30.0
#: "Content Too Large". The client does not ask other nodes after this status.
_STATUS = 413


class Node(AiohttpHttpNode):
    """A node of the cluster. Of the library's node it has the settings of TLS."""

    @cached_property
    def _connections(self) -> Connections:
        tls: ssl.SSLContext | None = self._ssl_context
        return Connections(self.host, self.port, tls)

    async def perform_request(  # type: ignore[override]
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: HttpHeaders | None = None,
        request_timeout: DefaultType | float | None = DEFAULT,
    ) -> NodeApiResponse:
        timeout = self.config.request_timeout if isinstance(request_timeout, DefaultType) else request_timeout
        head = self._head(method, target, {**self.headers, **(headers or {})}, len(body or b""))
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(timeout) as limit:
                answer = await self._connections.ask(
                    head, body or b"", largest=LARGEST_ANSWER, is_head=method == "HEAD"
                )
        except ssl.SSLError as error:
            raise TlsError(f"no TLS with {self.base_url}: {error}", errors=(error,)) from None
        except OSError as error:
            if limit.expired():
                raise ConnectionTimeout("Connection timed out during request", errors=(error,)) from None
            raise ConnectionError(f"{self.base_url} does not answer: {error}", errors=(error,)) from None
        meta = ApiResponseMeta(
            node=self.config,
            duration=asyncio.get_running_loop().time() - began,
            http_version="1.1",
            status=answer.status if answer.body is not None else _STATUS,
            headers=HttpHeaders(answer.headers),
        )
        return NodeApiResponse(meta, answer.body if answer.body is not None else _too_large())

    def _head(self, method: str, target: str, headers: JsonObject, length: int) -> bytes:
        """What a request begins with. `target` is encoded already, but for what may never be in it as it is."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        lines = [
            f"{method} {self.path_prefix}{quote(target, safe=string.punctuation)} HTTP/1.1",
            f"host: {host}:{self.port}",
            *(f"{name}: {value}" for name, value in headers.items()),
            f"content-length: {length}",
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    async def close(self) -> None:  # type: ignore[override]
        self._connections.close()


def _too_large() -> bytes:
    reason = f"an answer of a node has more than {LARGEST_ANSWER:,} bytes"
    return orjson.dumps({"error": {"type": TOO_LARGE, "reason": reason}})


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


def client_of(address: ElasticsearchAddress) -> AsyncElasticsearch:
    """A client of the nodes of an address, which is not connected yet. EventStoreError: its certificates are no use."""
    secure: JsonObject = {}
    if any(host.startswith("https") for host in address.hosts):
        secure = {"verify_certs": address.verify, "ssl_show_warn": False}
        if address.ca is not None:
            secure["ca_certs"] = str(address.ca)
    try:
        return AsyncElasticsearch(
            list(address.hosts),
            node_class=Node,
            basic_auth=(address.user, address.password) if address.user else None,
            api_key=address.api_key or None,
            request_timeout=_TIMEOUT,
            retry_on_timeout=False,
            retry_on_status=(502, 503, 504),  # not 429, as the client does not pause
            serializers={"application/json": _Serializer(), _CBOR: _Cbor()},
            **secure,
        )
    except (OSError, ValueError) as error:
        raise EventStoreError(f"the certificates to trust, '{address.ca}', cannot be used: {error}") from error
