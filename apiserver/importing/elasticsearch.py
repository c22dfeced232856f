"""The events of a ClearML server in its Elasticsearch, over plain HTTP: any version from 7 on answers these requests.

Elasticsearch's own client talks to its own major version only, so this has but the transport below it. Answers stay
bytes: an event is read once, by what reads the lines of a request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import msgspec
import orjson
from elastic_transport import (
    AsyncTransport,
    HttpHeaders,
    JsonSerializer,
    NodeConfig,
    TransportError,
    client_utils,
)

from apiserver.events.model import EventType
from apiserver.importing.report import ImportFailed
from apiserver.stores.addresses import ElasticsearchAddress

#: Owners told of at a time, and events: the most that Elasticsearch answers at once.
_OWNERS = 1000
EVENTS = 10_000
#: Plots and vectors are large.
_SAMPLES = {EventType.PLOT: 100, EventType.VECTOR: 1000, EventType.IMAGE: 2000}
_KEEP = "10m"
_TIMEOUT = 120.0
_LEAST_VERSION = 7


class Tally(NamedTuple):
    """How many events of one type a task or model has there, and when the newest was written (epoch ms)."""

    id: str
    events: int
    newest: int


class Event(msgspec.Struct, gc=False):
    """One event as it is stored."""

    id: str = msgspec.field(name="_id")
    source: msgspec.Raw = msgspec.field(name="_source")

    @property
    def line(self) -> bytes:
        """The JSON object, in one line: line feeds stand between its fields only, as texts have them escaped."""
        return bytes(self.source).replace(b"\n", b" ")


class _Hits(msgspec.Struct):
    hits: list[Event]


class _Shards(msgspec.Struct):
    failed: int = 0


class _Page(msgspec.Struct):
    hits: _Hits
    shards: _Shards = msgspec.field(name="_shards")
    scroll_id: str | None = msgspec.field(name="_scroll_id", default=None)


_pages = msgspec.json.Decoder(_Page)


class _Bytes(JsonSerializer):
    def loads(self, data: bytes) -> bytes:
        return data


class ElasticsearchEvents:
    """The indices `events-<type>-<company>` at one address."""

    def __init__(self, address: ElasticsearchAddress) -> None:
        self._transport = AsyncTransport(
            [_node(address, host) for host in address.hosts],
            serializers={"application/json": _Bytes()},
            retry_on_timeout=True,
            meta_header=False,
        )
        self._headers = HttpHeaders({"accept": "application/json", "content-type": "application/json"})
        if address.api_key:
            self._headers["authorization"] = f"ApiKey {address.api_key}"
        elif address.user:
            self._headers["authorization"] = client_utils.basic_auth_to_header((address.user, address.password))

    async def open(self) -> None:
        """ImportFailed unless an Elasticsearch answers that this can read."""
        version = (await self._ask("GET", "/")).get("version", {})
        number = str(version.get("number", ""))
        if version.get("distribution") != "opensearch" and int(number.partition(".")[0] or 0) < _LEAST_VERSION:
            raise ImportFailed(f"Elasticsearch {_LEAST_VERSION} or later is needed; what answers is {number or 'none'}")

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def indices(self, type: EventType) -> list[str]:
        """The indices that have events of a type."""
        return sorted(await self._ask("GET", f"/events-{type}-*/_alias"))

    async def total(self, index: str) -> int:
        """How many events an index has."""
        return int((await self._ask("GET", f"/{index}/_count"))["count"])

    async def tallies(self, index: str) -> AsyncIterator[list[Tally]]:
        """What there is in an index of each task or model, in the order of their ids."""
        after: dict[str, Any] = {}
        group = {"size": _OWNERS, "sources": [{"task": {"terms": {"field": await self._task_field(index)}}}]}
        aggs = {"newest": {"max": {"field": "@timestamp"}}}
        while True:
            body = {"size": 0, "aggs": {"tasks": {"composite": {**group, **after}, "aggs": aggs}}}
            found = (await self._ask("POST", f"/{index}/_search", body))["aggregations"]["tasks"]
            if found["buckets"]:
                yield [
                    Tally(one["key"]["task"], one["doc_count"], int(one["newest"]["value"] or 0))
                    for one in found["buckets"]
                ]
            if "after_key" not in found:
                return
            after = {"after": found["after_key"]}

    async def pages(
        self, index: str, type: EventType, ids: Collection[str], count: int
    ) -> AsyncIterator[Sequence[Event]]:
        """All events of tasks or models, about `count`; log lines by their time, others in any order."""
        size = _SAMPLES.get(type, EVENTS)
        body = {
            "size": size,
            "query": {"terms": {await self._task_field(index): list(ids)}},
            "sort": [{"timestamp": "asc"}] if type is EventType.LOG else ["_doc"],
        }
        if count <= size // 2:  # also if some were added since they were counted
            page = await self._page(f"/{index}/_search", body)
            if len(page.hits.hits) < size:
                yield page.hits.hits
                return
        async for page in self._scrolled(index, body):
            yield page.hits.hits

    async def _scrolled(self, index: str, body: dict[str, Any]) -> AsyncIterator[_Page]:
        page = await self._page(f"/{index}/_search?scroll={_KEEP}", body)
        try:
            while page.hits.hits:
                yield page
                page = await self._page("/_search/scroll", {"scroll": _KEEP, "scroll_id": page.scroll_id})
        finally:
            with suppress(ImportFailed):  # it ends by itself
                await self._ask("DELETE", "/_search/scroll", {"scroll_id": [page.scroll_id]})

    async def _task_field(self, index: str) -> str:
        """An index that no template of the server was for has ids as text, and what is exact beside it."""
        found = await self._ask("GET", f"/{index}/_mapping")
        mapped = [one["mappings"].get("properties", {}).get("task", {}) for one in found.values()]
        return "task.keyword" if any(one.get("type") == "text" for one in mapped) else "task"

    async def _page(self, target: str, body: dict[str, Any]) -> _Page:
        page = _pages.decode(await self._send("POST", target, body))
        if page.shards.failed:
            raise ImportFailed("Elasticsearch: part of the events cannot be read now")
        return page

    async def _ask(self, method: str, target: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = orjson.loads(await self._send(method, target, body))
        return answer

    async def _send(self, method: str, target: str, body: dict[str, Any] | None) -> bytes:
        with _errors():
            answer = await self._transport.perform_request(
                method,
                target,
                headers=self._headers,
                body=None if body is None else orjson.dumps(body),
                request_timeout=_TIMEOUT,
            )
        found: bytes = answer.body
        if not 200 <= answer.meta.status < 300:
            raise ImportFailed(
                f"Elasticsearch: {answer.meta.status} {bytes(found or b'')[:300].decode(errors='replace')}"
            )
        return found


def _node(address: ElasticsearchAddress, host: str) -> NodeConfig:
    options: dict[str, Any] = {}
    if host.startswith("https:"):
        options = {"verify_certs": address.verify, "ssl_show_warn": False}
        if address.ca is not None:
            options["ca_certs"] = str(address.ca)
    node: NodeConfig = client_utils.url_to_node_config(host)
    return node.replace(**options) if options else node


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (TransportError, msgspec.DecodeError, OSError) as error:
        raise ImportFailed(f"Elasticsearch: {error}") from error
