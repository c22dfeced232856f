"""The schema in a real Elasticsearch: set up once, held against what is there, and named where it differs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch

from apiserver import __version__
from apiserver.cli import main
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.migrations import ENGINE, ElasticsearchSchema, check_schema, schema_at
from apiserver.stores.migrations import Step, migrate, require, steps_of
from tests.engines.fixtures import own_prefix

pytestmark = pytest.mark.anyio


@pytest.fixture
async def schema(elasticsearch_url: str, elasticsearch_bare_prefix: str) -> AsyncIterator[ElasticsearchSchema]:
    async with schema_at(ElasticsearchAddress((elasticsearch_url,), elasticsearch_bare_prefix)) as (opened, _):
        yield opened


@pytest.fixture
async def client(elasticsearch_url: str) -> AsyncIterator[AsyncElasticsearch]:
    async with AsyncElasticsearch(elasticsearch_url) as opened:
        yield opened


def template(**properties: Any) -> dict[str, Any]:
    """A step's request, which defines these fields."""
    mappings = {"dynamic": "strict", "properties": properties}
    body = {"index_patterns": ["{prefix}-scalars-*"], "template": {"mappings": mappings}}
    return {"method": "PUT", "path": "/_index_template/{prefix}-scalars", "body": body}


class Stopped(Exception):
    """The server is no more."""


@contextmanager
def bounded(client: AsyncElasticsearch, writes: float = math.inf) -> Iterator[list[str]]:
    """Stop the client before it has sent more requests that write; gives the path of each request."""
    sent: list[str] = []
    perform_request = client.transport.perform_request

    async def perform(method: str, target: str, **how: Any) -> Any:
        nonlocal writes
        writes -= method == "PUT" or "_bulk" in target
        if writes < 0:
            raise Stopped
        sent.append(target)
        return await perform_request(method, target, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client.transport, "perform_request", perform)
        yield sent


FIRST = Step(1, "0001_first", [template(value={"type": "float"})])
SECOND = Step(2, "0002_second", [template(value={"type": "double", "index": False})])
_EXTRA = {"type": "integer"}
_IN_INDICES = {"method": "PUT", "path": "/{prefix}-scalars-*/_mapping?allow_no_indices=true"}
#: As `FIRST`, and with a field more, also in indices that are there.
GROWN = Step(
    2,
    "0002_grown",
    [template(value={"type": "float"}, extra=_EXTRA), {**_IN_INDICES, "body": {"properties": {"extra": _EXTRA}}}],
)


async def test_the_schema_is_set_up_once(client: AsyncElasticsearch, elasticsearch_bare_prefix: str) -> None:
    with pytest.raises(EventStoreError, match="has no schema yet: run `apiserver migrate`"):
        await check_schema(client, elasticsearch_bare_prefix, migrate=False)
    await check_schema(client, elasticsearch_bare_prefix, migrate=True)
    await check_schema(client, elasticsearch_bare_prefix, migrate=False)
    records = await client.search(index=f"{elasticsearch_bare_prefix}-schema")
    assert [hit["_source"]["name"] for hit in records["hits"]["hits"]] == [step.name for step in steps_of(ENGINE)]


async def test_many_may_migrate_at_once(client: AsyncElasticsearch, elasticsearch_bare_prefix: str) -> None:
    await asyncio.gather(*(check_schema(client, elasticsearch_bare_prefix, migrate=True) for _ in range(4)))
    await check_schema(client, elasticsearch_bare_prefix, migrate=False)


async def test_a_new_schema_takes_few_requests(client: AsyncElasticsearch, elasticsearch_bare_prefix: str) -> None:
    """Each test on this engine that has a schema of its own makes one."""
    with bounded(client) as sent:
        await check_schema(client, elasticsearch_bare_prefix, migrate=True)
    assert len(sent) <= 15


async def test_an_upgrade_that_stopped_is_done_again_by_the_next_start(
    client: AsyncElasticsearch, elasticsearch_url: str
) -> None:
    """A server stops before each request that writes, on a schema of one step with an index; the next one goes on."""
    steps = [FIRST, GROWN]
    for writes in count():
        with own_prefix(elasticsearch_url) as prefix:
            schema = ElasticsearchSchema(client, prefix)
            assert await migrate(schema, [FIRST]) == [FIRST]
            await client.indices.create(index=f"{prefix}-scalars-company")
            stopped = True
            with bounded(client, writes), suppress(Stopped):
                await require(schema, steps, migrating=True)
                stopped = False
            await require(schema, steps, migrating=True)
            assert list(await schema.applied()) == [1, 2]
            assert await schema.problems(steps) == []
        if not stopped:
            assert writes > 2
            return


async def test_a_record_that_the_node_refuses_is_an_error(
    schema: ElasticsearchSchema, client: AsyncElasticsearch, elasticsearch_bare_prefix: str
) -> None:
    index = f"{elasticsearch_bare_prefix}-schema"
    await schema.record([FIRST])
    await client.indices.put_settings(index=index, settings={"index.blocks.write": True})
    with pytest.raises(EventStoreBusy, match="Elasticsearch does not write: cluster_block_exception"):
        await schema.record([SECOND])
    await client.indices.put_settings(index=index, settings={"index.blocks.write": False})
    assert [*await schema.applied()] == [1]


async def test_a_newer_schema_is_refused(client: AsyncElasticsearch, elasticsearch_bare_prefix: str) -> None:
    await check_schema(client, elasticsearch_bare_prefix, migrate=True)
    await ElasticsearchSchema(client, elasticsearch_bare_prefix).record([Step(99, "0099_later", [])])
    for migrating in (False, True):
        with pytest.raises(EventStoreError, match="has schema 99, made by a newer version"):
            await check_schema(client, elasticsearch_bare_prefix, migrate=migrating)


async def test_a_later_step_changes_what_is_there(schema: ElasticsearchSchema, elasticsearch_bare_prefix: str) -> None:
    assert await migrate(schema, [FIRST]) == [FIRST]
    assert await migrate(schema, [FIRST, SECOND]) == [SECOND]
    assert await schema.applied() == {1: __version__, 2: __version__}
    assert await schema.problems([FIRST, SECOND]) == []
    assert await schema.problems([FIRST]) == [
        f"the template for '{elasticsearch_bare_prefix}-scalars-*' has the field 'value' as "
        '{"index":false,"type":"double"}, it should be {"type":"float"}'
    ]


async def test_templates_that_were_taken_away_are_named_and_made_again(
    schema: ElasticsearchSchema, client: AsyncElasticsearch, elasticsearch_bare_prefix: str
) -> None:
    await migrate(schema, [FIRST])
    await client.indices.delete_index_template(name=f"{elasticsearch_bare_prefix}-scalars")
    assert await schema.problems([FIRST]) == [f"there is no template for '{elasticsearch_bare_prefix}-scalars-*'"]
    assert await migrate(schema, [FIRST]) == [FIRST]
    assert await schema.problems([FIRST]) == []


async def test_a_template_that_goes_before_ours_is_noticed(
    schema: ElasticsearchSchema, client: AsyncElasticsearch, elasticsearch_bare_prefix: str
) -> None:
    await migrate(schema, [FIRST])
    other = {"mappings": {"properties": {"value": {"type": "long"}}}}
    await client.indices.put_index_template(
        name=f"{elasticsearch_bare_prefix}-other",
        index_patterns=[f"{elasticsearch_bare_prefix}-*"],
        template=other,
        priority=9,
    )
    value, dynamic = await schema.problems([FIRST])
    assert value.endswith("""has the field 'value' as {"type":"long"}, it should be {"type":"float"}""")
    assert dynamic.endswith("""has 'dynamic' as nothing, it should be "strict\"""")


async def test_an_index_with_a_wrong_mapping_is_named(
    schema: ElasticsearchSchema, client: AsyncElasticsearch, elasticsearch_bare_prefix: str
) -> None:
    index = f"{elasticsearch_bare_prefix}-scalars-company"
    await client.indices.create(index=index, mappings={"dynamic": "strict", "properties": {"value": {"type": "text"}}})
    await client.indices.create(index=f"{elasticsearch_bare_prefix}-other", mappings={})
    await migrate(schema, [FIRST])
    assert await schema.problems([FIRST]) == [
        f"""the index '{index}' has the field 'value' as {{"type":"text"}}, it should be {{"type":"float"}}"""
    ]
    assert await schema.problems([SECOND]) != []


def test_the_command_says_what_it_would_do_and_does_it(
    elasticsearch_url: str, elasticsearch_bare_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"elasticsearch://{elasticsearch_url.removeprefix('http://')}/{elasticsearch_bare_prefix}"
    names = [step.name for step in steps_of(ENGINE)]
    events = f"events: Elasticsearch (prefix '{elasticsearch_bare_prefix}')"
    embedded = "documents: embedded, so a server brings the schema up to date by itself"
    places = ["--events", address, "--data", str(tmp_path)]
    assert main(["migrate", "--check", *places]) == 1
    expected = [*(f"{events}: {name} is to be applied" for name in names), embedded]
    assert capsys.readouterr().out.splitlines() == expected
    assert main(["migrate", *places]) == 0
    expected = [*(f"{events}: {name} is applied" for name in names), f"{events}: up to date", embedded]
    assert capsys.readouterr().out.splitlines() == expected
    for arguments in (["migrate"], ["migrate", "--check"]):
        assert main([*arguments, *places]) == 0
        assert capsys.readouterr().out.splitlines() == [f"{events}: up to date", embedded]


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_of_certificates_that_cannot_be_used_is_named(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ca = tmp_path / "ca.pem"
    if content:
        ca.write_text(content)
    assert main(["migrate", "--events", f"elasticsearch://127.0.0.1:1?ca={ca}"]) == 1
    assert capsys.readouterr().err.startswith(f"apiserver: the certificates to trust, '{ca}', cannot be used: ")


def test_an_engine_that_is_away_is_an_error_and_no_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "--events", "elasticsearch://127.0.0.1:1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("apiserver: Elasticsearch cannot be reached: ")
    assert "127.0.0.1:1 " in line
