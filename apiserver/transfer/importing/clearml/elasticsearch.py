"""Reads the events of a ClearML server from its Elasticsearch, version 7 or later, over plain HTTP.

Elasticsearch's own client supports only its own major version. Events stay bytes here: they are parsed once, like the
lines of a request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from apiserver.events.model import EventType
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.transfer.importing.clearml.http import Http, basic
from apiserver.transfer.importing.report import ImportFailed

#: Tasks and models in a page of tallies.
OWNERS = 1000
#: Events in a page: the most that Elasticsearch answers at once. Samples are larger, so their pages are smaller.
EVENTS = 10_000
SAMPLES = {EventType.PLOT: 100, EventType.VECTOR: 1000, EventType.IMAGE: 2000}
#: How long Elasticsearch keeps a scroll open between two pages.
_KEEP = "10m"
_LEAST_VERSION = 7


class Tally(NamedTuple):
    """How many events of one type a task or model has in the source, and when the newest was written (epoch ms)."""

    id: str
    events: int
    newest: int


class StoredEvent(msgspec.Struct, gc=False):
    """One stored event."""

    id: str = msgspec.field(name="_id")
    source: msgspec.Raw = msgspec.field(name="_source")

    @property
    def line(self) -> bytes:
        """The JSON object in one line. Any line feeds are between its fields: in texts they are escaped."""
        return bytes(self.source).replace(b"\n", b" ")


class _Hits(msgspec.Struct):
    hits: list[StoredEvent]


class _Shards(msgspec.Struct):
    failed: int = 0


class _SearchPage(msgspec.Struct):
    hits: _Hits
    shards: _Shards = msgspec.field(name="_shards")
    scroll_id: str | None = msgspec.field(name="_scroll_id", default=None)


_pages = msgspec.json.Decoder(_SearchPage)


class ElasticsearchEvents:
    """The indices `events-<type>-<company>` at one address."""

    def __init__(self, address: ElasticsearchAddress, *, owners: int = OWNERS, events: int = EVENTS) -> None:
        """`owners`, `events`: the most of a page."""
        self._owners, self._events = owners, events
        self._http = Http("Elasticsearch", address.hosts, ca=address.ca, verify=address.verify)
        if address.api_key:
            self._http.authorize(f"ApiKey {address.api_key}")
        elif address.user:
            self._http.authorize(basic(address.user, address.password))

    async def open(self) -> None:
        """Raise ImportFailed unless an Elasticsearch of a supported version answers."""
        version = (await self._http.ask("GET", "/")).get("version", {})
        number = str(version.get("number", ""))
        if version.get("distribution") != "opensearch" and int(number.partition(".")[0] or 0) < _LEAST_VERSION:
            raise ImportFailed(f"Elasticsearch {_LEAST_VERSION} or later is needed, but this is {number or 'no such'}")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def indices(self, type: EventType) -> list[str]:
        """The indices with events of a type."""
        return sorted(await self._http.ask("GET", f"/events-{type}-*/_alias"))

    async def total(self, index: str) -> int:
        """How many events an index has."""
        return int((await self._http.ask("GET", f"/{index}/_count"))["count"])

    async def tallies(self, index: str) -> AsyncIterator[list[Tally]]:
        """The tallies of all tasks and models in an index, in pages, by id."""
        after: dict[str, Any] = {}
        group = {"size": self._owners, "sources": [{"task": {"terms": {"field": await self._task_field(index)}}}]}
        aggs = {"newest": {"max": {"field": "@timestamp"}}}
        while True:
            body = {"size": 0, "aggs": {"tasks": {"composite": {**group, **after}, "aggs": aggs}}}
            answer = (await self._http.ask("POST", f"/{index}/_search", body))["aggregations"]["tasks"]
            if answer["buckets"]:
                yield [
                    Tally(bucket["key"]["task"], bucket["doc_count"], int(bucket["newest"]["value"] or 0))
                    for bucket in answer["buckets"]
                ]
            if "after_key" not in answer:
                return
            after = {"after": answer["after_key"]}

    async def pages(
        self, index: str, type: EventType, ids: Collection[str], count: int
    ) -> AsyncIterator[Sequence[StoredEvent]]:
        """Pages of all events of some tasks or models, about `count`; log lines by time, others in any order."""
        size = SAMPLES.get(type, self._events)
        body = {
            "size": size,
            "query": {"terms": {await self._task_field(index): list(ids)}},
            "sort": [{"timestamp": "asc"}] if type is EventType.LOG else ["_doc"],
        }
        if count <= size // 2:  # then one page holds all, even if some were added since they were counted
            page = await self._page(f"/{index}/_search", body)
            if len(page.hits.hits) < size:
                yield page.hits.hits
                return
        async for page in self._scrolled(index, body):
            yield page.hits.hits

    async def _scrolled(self, index: str, body: dict[str, Any]) -> AsyncIterator[_SearchPage]:
        page = await self._page(f"/{index}/_search?scroll={_KEEP}", body)
        try:
            while page.hits.hits:
                yield page
                page = await self._page("/_search/scroll", {"scroll": _KEEP, "scroll_id": page.scroll_id})
        finally:
            with suppress(ImportFailed):  # if this fails, the scroll expires by itself
                await self._http.ask("DELETE", "/_search/scroll", {"scroll_id": [page.scroll_id]})

    async def _task_field(self, index: str) -> str:
        """The field with the exact task id: `task`, or `task.keyword` in an index that was made without a template."""
        found = await self._http.ask("GET", f"/{index}/_mapping")
        mapped = [one["mappings"].get("properties", {}).get("task", {}) for one in found.values()]
        return "task.keyword" if any(one.get("type") == "text" for one in mapped) else "task"

    async def _page(self, target: str, body: dict[str, Any]) -> _SearchPage:
        try:
            page = _pages.decode(await self._http.send("POST", target, body))
        except msgspec.DecodeError as error:
            raise ImportFailed(f"the answer of Elasticsearch holds no events: {error}") from error
        if page.shards.failed:
            raise ImportFailed("Elasticsearch: part of the events cannot be read now")
        return page
