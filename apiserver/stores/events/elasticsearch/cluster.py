"""Sends requests to a cluster. Its errors become those of the store (`errors.py`)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from typing import Any, cast

import orjson
from elasticsearch import ApiError

from apiserver.common.off_loop import together
from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import BOUNDS, ElasticsearchBounds
from apiserver.stores.events.elasticsearch.errors import AWAY_AGAIN, BY_HAND_AGAIN, MISSING, busy, errors, no_index
from apiserver.stores.events.elasticsearch.node import CBOR, client_of
from apiserver.stores.events.elasticsearch.visibility import Visibility

log = logging.getLogger(__name__)

#: Seconds for the answer of a deletion.
_LONG_TIMEOUT = 600.0
_LEAST_VERSION = 8
#: Nodes remember for so long that a block was removed. One that gets stuck for longer may bring it back (`blocks.py`).
REMEMBERED = "20m"
_REMEMBERED = "gc_deletes"
#: Elasticsearch does not have the setting, as where it is run for others, or does not let this server change it.
_NOT_ALLOWED = (400, 403)
#: The answer of an index that is not there.
NOTHING: JsonObject = {"hits": {"total": {"value": 0}, "hits": []}}
#: What `visible` answers: decoding what nobody reads would take as long.
VISIBLE = "hits.hits._seq_no,hits.hits.fields"


class Cluster(Visibility):
    """Requests to the nodes of one address."""

    def __init__(self, address: ElasticsearchAddress, *, strict: bool, bounds: ElasticsearchBounds = BOUNDS) -> None:
        super().__init__(client_of(address, bounds), strict=strict, bounds=bounds)
        self.prefix = address.prefix
        self._has_one_shard: dict[str, bool] = {}

    async def close(self) -> None:
        """Close the connections."""
        await super().close()
        await self.client.close()

    async def check(self) -> None:
        """Raise EventStoreBusy unless a node answers within a few seconds."""
        with errors():
            await self.client.options(request_timeout=3).info()

    async def check_version(self) -> None:
        """Raise EventStoreError unless this is Elasticsearch, of a version that this server can use."""
        with errors():
            answer = (await self.client.info()).body
        version = answer.get("version") if isinstance(answer, dict) else None
        number = str(version.get("number", "")) if isinstance(version, dict) else ""
        if not number.partition(".")[0].isdigit() or int(number.partition(".")[0]) < _LEAST_VERSION:
            what = f"Elasticsearch {number}" if number else "something else"
            raise EventStoreError(f"Elasticsearch {_LEAST_VERSION} or newer is needed, but {what} answers")

    # --- writing -----------------------------------------------------------------------------------

    async def ensure(self, indices: Collection[str]) -> None:
        """Make missing indices from their templates; raise EventStoreBusy if one has no template.

        Nodes remember for REMEMBERED which blocks were removed from an index, unless somebody has set this time, or the
        server may not set it.
        """
        await together(*(self._make(index) for index in indices if index not in self._known))

    async def _make(self, index: str) -> None:
        with errors():
            try:
                await self.client.indices.create(index=index)
            except ApiError as error:
                if error.error != "resource_already_exists_exception":
                    raise
                # Another may have made it just now.
                await self.client.cluster.health(index=index, wait_for_status="yellow", timeout="20s")
            made = (await self.client.indices.get(index=index, features=["mappings", "settings"]))[index]
            if names.is_of_blocks(self.prefix, index) and _REMEMBERED not in made["settings"]["index"]:
                await self._remember(index)
        mappings = made["mappings"]
        if mappings.get("dynamic") != "strict":
            raise EventStoreBusy(
                f"the index '{index}' was not made by this server's templates, which must have been removed: "
                "run `apiserver migrate`, and remove the index",
                retry_after=BY_HAND_AGAIN,
                overloaded=False,
            )
        self._known.add(index)

    async def _remember(self, index: str) -> None:
        """Let nodes remember what was removed. If that is not allowed, the index is of use nevertheless."""
        setting = f"index.{_REMEMBERED}"
        try:
            await self.client.indices.put_settings(index=index, settings={setting: REMEMBERED})
        except ApiError as error:
            if error.status_code not in _NOT_ALLOWED:
                raise
            log.warning(
                "Elasticsearch does not let this server set %s of '%s' (%s): a node that gets stuck for more than a"
                " minute may bring back what was deleted meanwhile. Set it to %s",
                setting,
                index,
                error,
                REMEMBERED,
            )

    async def bulk(self, index: str, body: bytes) -> list[JsonObject]:
        """The outcome of each action of the body: `status`, `_seq_no`, and `error` if there was one."""
        with errors(writing=True):
            answer = await self.client.bulk(
                index=index,
                operations=cast(Any, [body]),  # the body is already encoded
                filter_path="items.*.status,items.*._seq_no,items.*.error.type,items.*.error.reason",
                require_alias=False,
            )
        outcomes: list[JsonObject] = [next(iter(item.values())) for item in answer.get("items", ())]
        if any(outcome["status"] == 404 for outcome in outcomes):
            self._known.clear()  # an index was removed
            self._has_one_shard.clear()
        return outcomes

    async def delete(self, indices: Sequence[str], query: JsonObject, *, routing: str | None = None) -> int:
        """Delete all documents that match, also those of other servers; return how many there were."""
        self.wrote(indices)  # as another server may have: what it wrote just now would not be seen, and stay
        await self.make_visible(indices)
        return sum([await self._delete(index, query, routing) for index in indices])

    async def _delete(self, index: str, query: JsonObject, routing: str | None) -> int:
        deleted = 0
        while True:
            with errors(writing=True), no_index() as missing:
                answer = await self.client.options(request_timeout=_LONG_TIMEOUT).delete_by_query(
                    index=index,
                    query=query,
                    routing=routing,
                    conflicts="proceed",
                    refresh=True,
                    scroll_size=10_000,
                )
            if missing:
                return deleted
            deleted += int(answer["deleted"])
            if not answer["version_conflicts"]:  # documents that were written again meanwhile
                return deleted

    # --- reading -----------------------------------------------------------------------------------

    async def indices(self, patterns: Sequence[str]) -> list[str]:
        """The indices whose names match."""
        with errors():
            return sorted(
                await self.client.indices.get(index=list(patterns), filter_path="*.aliases", features="aliases")
            )

    async def search(
        self, index: str, body: JsonObject, *, routing: str | None = None, preference: str | None = None
    ) -> JsonObject:
        """The answer to one search of one index, after making it visible. A missing index is empty.

        Searches with the same `preference`, or else `routing`, are answered by the same copies of shards, as copies are
        not refreshed at the same moment.
        """
        answer = await self._ask(
            index,
            lambda: self.client.search(
                index=index,
                routing=routing,
                preference=preference or routing,
                allow_partial_search_results=False,
                body=body,
            ),
        )
        return NOTHING if answer is None else dict(answer.body)

    async def visible(
        self, index: str, body: JsonObject, *, routing: str | None, preference: str, binary: bool
    ) -> JsonObject:
        """The hits of a search of what is visible already: their `fields` and `_seq_no`.

        `binary`: stored bytes come as bytes, not as base64.
        """
        params = {"preference": preference, "allow_partial_search_results": "false", "filter_path": VISIBLE}
        params |= {"routing": routing} if routing is not None else {}
        headers = {"accept": CBOR if binary else "application/json", "content-type": "application/json"}
        with errors(), no_index() as missing:
            answer = await self.client.perform_request(
                "POST", f"/{index}/_search", params=params, headers=headers, body=body
            )
        return NOTHING if missing else NOTHING | answer.body

    async def search_shard(self, index: str, shard: int, body: JsonObject, writes: int) -> JsonObject:
        """The answer of one shard, which sees so many writes of the index (`written`). A missing index is empty."""
        answer = await self._ask(
            index,
            lambda: self.client.search(
                index=index, preference=f"_shards:{shard}", allow_partial_search_results=False, body=body
            ),
            writes,
        )
        return NOTHING if answer is None else dict(answer.body)

    async def shard_stats(self, indices: Sequence[str]) -> dict[str, JsonObject]:
        """By index, its `uuid` and, in `shards`, the numbers `seq_no` of each copy of each shard."""
        options = "level=shards&ignore_unavailable=true&filter_path=_shards.failed,indices.*.uuid,"
        parts = ",".join(f"indices.*.shards.*.{part}" for part in ("routing.primary", "seq_no"))
        with errors():
            answer = await self.client.perform_request(
                "GET", f"/{','.join(indices)}/_stats/docs?{options}{parts}", headers={"accept": "application/json"}
            )
        if answer.body["_shards"]["failed"]:
            raise EventStoreBusy("a copy of the events does not answer", retry_after=AWAY_AGAIN, overloaded=False)
        return dict(answer.body.get("indices", {}))

    async def lost_shards(self, pattern: str) -> list[tuple[str, str]]:
        """The indices that lack primary shards, and how many of them."""
        with errors():
            answer = await self.client.cluster.health(index=pattern, level="indices")
        return [
            (name, f"{one['active_primary_shards']} of {one['number_of_shards']} answer")
            for name, one in sorted(answer.body.get("indices", {}).items())
            if one["status"] == "red"
        ]

    async def shard_of(self, index: str, routing: str) -> int:
        """The number of the shard in which an index that is there has the documents of a routing."""
        if await self.has_one_shard(index):
            return 0
        with errors():
            found = await self.client.search_shards(index=index, routing=routing)
        return int(found["shards"][0][0]["shard"])

    async def has_one_shard(self, index: str) -> bool:
        """Whether an index that is there has a single shard. It keeps its shards for as long as it is there."""
        if index not in self._has_one_shard:
            name = "index.number_of_shards"
            with errors():
                found = await self.client.indices.get_settings(index=index, name=name, flat_settings=True)
            self._has_one_shard[index] = found[index]["settings"][name] == "1"
        return self._has_one_shard[index]

    async def get_each(self, docs: Sequence[JsonObject]) -> list[JsonObject]:
        """The answers to gets of several documents, for a write."""
        with errors(writing=True):
            found: list[JsonObject] = (await self.client.mget(docs=docs)).get("docs", [])
        for error in (doc["error"] for doc in found if "error" in doc):
            raise busy(503, error["type"], error.get("reason"), writing=True)
        return found

    async def searches(self, index: str, bodies: Sequence[JsonObject], *, routing: str) -> list[JsonObject]:
        """The answers to many searches of one index, in as few requests as possible."""
        answers: list[JsonObject] = []
        header = orjson.dumps({"routing": routing, "preference": routing, "allow_partial_search_results": False})
        at_once = self.bounds.searches_at_once
        for start in range(0, len(bodies), at_once):
            part = bodies[start : start + at_once]
            lines = [line for body in part for line in (header, orjson.dumps(body))]
            answer = await self._ask(index, partial(self.client.msearch, index=index, searches=cast(Any, lines)))
            for response in answer["responses"] if answer is not None else ():
                error = response.get("error")
                if error is not None and error.get("type") != MISSING:
                    raise busy(response["status"], str(error.get("type")), error.get("reason"))
                answers.append(NOTHING if error is not None else response)
        return answers

    async def composite(
        self,
        index: str,
        query: JsonObject,
        fields: Sequence[str],
        *,
        routing: str | None,
        after: JsonObject | None = None,
        descending: bool = False,
        size: int = 5000,
        aggs: JsonObject | None = None,
    ) -> AsyncIterator[JsonObject]:
        """A bucket for each combination of the fields' values beyond `after`, in their order, with these `aggs`."""
        order = "desc" if descending else "asc"
        group: JsonObject = {
            "size": size,
            "sources": [{name: {"terms": {"field": name, "order": order}}} for name in fields],
        }
        while True:
            if after is not None:
                group["after"] = after
            by_group = {"group": {"composite": group, "aggs": aggs or {}}}
            body = {"size": 0, "track_total_hits": False, "query": query, "aggs": by_group}
            aggregations = (await self.search(index, body, routing=routing)).get("aggregations")
            if aggregations is None:
                return
            for bucket in aggregations["group"]["buckets"]:
                yield bucket
            if "after_key" not in aggregations["group"] or len(aggregations["group"]["buckets"]) < size:
                return
            after = aggregations["group"]["after_key"]
