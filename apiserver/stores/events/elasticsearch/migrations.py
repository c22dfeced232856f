"""The schema in Elasticsearch: numbered steps set up index templates, and each start compares them with what is there.

A step is a list of requests, `{"method", "path", "body"}`. In them, "{prefix}" stands for the beginning of all names.
The index `{prefix}-schema` has a document for each applied step. A step that changes a template must also change the
indices that were made from it. Each request must be harmless if it is made twice. Several steps put each template once,
as the last of them has it, before their other requests. So a step must not need a template that a later one replaces.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import Any

import orjson
from elasticsearch import ApiError, AsyncElasticsearch

from apiserver import __version__
from apiserver.common.off_loop import together
from apiserver.common.times import utc_now
from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import busy, errors
from apiserver.stores.migrations import SchemaError, Step, require, steps_of

ENGINE = "elasticsearch"

_JSON = {"accept": "application/json", "content-type": "application/json"}
_TEMPLATES = "/_index_template/"
_RECORDS: JsonObject = {
    "settings": {"index": {"number_of_shards": 1, "auto_expand_replicas": "0-1"}},
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "number": {"type": "integer"},
            "name": {"type": "keyword"},
            "applied": {"type": "date"},
            "release": {"type": "keyword"},
        },
    },
}


async def check_schema(client: AsyncElasticsearch, prefix: str, *, migrate: bool) -> None:
    """Return if the schema is that of this version; with `migrate`, apply missing steps first.

    EventStoreError says what differs and what to do; nothing may be written then. EventStoreBusy: try again.
    """
    try:
        await require(ElasticsearchSchema(client, prefix), steps_of(ENGINE), migrating=migrate)
    except SchemaError as error:
        raise EventStoreError(str(error)) from error


@asynccontextmanager
async def schema_at(address: ElasticsearchAddress) -> AsyncIterator[tuple[ElasticsearchSchema, list[Step]]]:
    """The schema of the events at an address, and its steps, without opening the store."""
    cluster = Cluster(address, strict=False)
    try:
        await cluster.check_version()
        yield ElasticsearchSchema(cluster.client, address.prefix), steps_of(ENGINE)
    finally:
        await cluster.close()


class ElasticsearchSchema:
    """The `migrations.Target` of the indices of one prefix. Its methods also raise EventStoreBusy."""

    def __init__(self, client: AsyncElasticsearch, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._index = f"{prefix}-schema"

    @property
    def name(self) -> str:
        return f"Elasticsearch (prefix '{self._prefix}')"

    async def applied(self) -> dict[int, str]:
        with errors():
            if not await self._client.indices.exists(index=self._index):
                return {}
            # Another may have made it just now, or the node may just have started.
            await self._client.cluster.health(index=self._index, wait_for_status="yellow", timeout="20s")
            await self._client.indices.refresh(index=self._index)
            answer = await self._client.search(index=self._index, size=10_000, allow_partial_search_results=False)
        steps = [hit["_source"] for hit in answer["hits"]["hits"]]
        return {step["number"]: step["release"] for step in steps}

    async def apply(self, steps: Sequence[Step]) -> None:
        """Send requests for templates first, from which indices may be made meanwhile, then the others of each step."""
        await self._send(_template_puts(steps, self._prefix))
        for step in steps:
            await self._send([one for one in _requests(step, self._prefix) if not _is_of_template(one)])

    async def record(self, steps: Sequence[Step]) -> None:
        with errors():
            try:
                await self._client.indices.create(index=self._index, **_RECORDS)
            except ApiError as error:
                if error.error != "resource_already_exists_exception":
                    raise
            told = {"applied": utc_now(), "release": __version__}
            operations: list[JsonObject] = []
            for step in steps:
                document = {"number": step.number, "name": step.name, **told}
                operations += [{"index": {"_id": str(step.number)}}, document]
            answer = await self._client.bulk(index=self._index, operations=operations, refresh=True)
        for outcome in (item["index"] for item in answer["items"]):
            if "error" in outcome:
                raise busy(outcome["status"], outcome["error"]["type"], outcome["error"].get("reason"), writing=True)

    async def problems(self, steps: Sequence[Step]) -> list[str]:
        """The templates, and mappings of indices, that are not as the steps say."""
        with errors():
            answer = await self._client.indices.get_mapping(index=f"{self._prefix}-*", expand_wildcards="all")
        mappings: dict[str, JsonObject] = {index: answered["mappings"] for index, answered in answer.body.items()}
        problems: list[str] = []
        patterns = [
            (pattern, request["body"]["template"]["mappings"])
            for request in _template_puts(steps, self._prefix)
            for pattern in request["body"]["index_patterns"]
        ]
        actual_mappings = await together(*(self._new_mapping(pattern) for pattern, _ in patterns))
        for (pattern, mapping), actual in zip(patterns, actual_mappings, strict=True):
            if actual is None:
                problems.append(f"there is no template for '{pattern}'")
            else:
                problems += _differences(f"the template for '{pattern}'", actual, mapping)
            for index in sorted(name for name in mappings if fnmatchcase(name, pattern)):
                problems += _differences(f"the index '{index}'", mappings[index], mapping)
        return problems

    async def _new_mapping(self, pattern: str) -> JsonObject | None:
        """What a new index of the pattern would get now: people may have added templates that come first."""
        made = await self._ask("POST", f"{_TEMPLATES}_simulate_index/{pattern.replace('*', 'any')}", None)
        return made["template"].get("mappings", {}) if made else None

    async def _send(self, requests: Sequence[JsonObject]) -> None:
        await together(*(self._ask(one["method"], one["path"], one["body"]) for one in requests))

    async def _ask(self, method: str, path: str, body: Any) -> JsonObject:
        with errors():
            answer = await self._client.perform_request(method, path, headers=_JSON, body=body)
        return dict(answer.body)


def _requests(step: Step, prefix: str) -> list[JsonObject]:
    """The step's requests for the indices of the prefix."""
    requests: list[JsonObject] = orjson.loads(orjson.dumps(step.content).replace(b"{prefix}", prefix.encode()))
    return requests


def _is_of_template(request: JsonObject) -> bool:
    return str(request["path"]).startswith(_TEMPLATES)


def _template_puts(steps: Sequence[Step], prefix: str) -> list[JsonObject]:
    """The requests that put each index template as it is after all steps."""
    requests = [request for step in steps for request in _requests(step, prefix)]
    return [*{request["path"]: request for request in requests if _is_of_template(request)}.values()]


def _differences(where: str, actual: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """The differences of a mapping from the wanted one. A field that is not in the wanted one does no harm."""
    is_of, should_be = (mapping.get("properties", {}) for mapping in (actual, right))
    differences = [
        f"{where} has the field '{field}' as {_text(is_of.get(field))}, it should be {_text(definition)}"
        for field, definition in should_be.items()
        if is_of.get(field) != definition
    ]
    for name, rule in right.items():
        if name != "properties" and actual.get(name) != rule:
            differences.append(f"{where} has '{name}' as {_text(actual.get(name))}, it should be {_text(rule)}")
    return differences


def _text(definition: object) -> str:
    return "nothing" if definition is None else orjson.dumps(definition, option=orjson.OPT_SORT_KEYS).decode()
