"""Sending items: what nodes answer to each of them, and to whole requests."""

from __future__ import annotations

from typing import Any, cast

import pytest

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch import bulk
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster

pytestmark = pytest.mark.anyio

INDEX = '{"index":{}}\n{"n":%d}\n'
CREATE = '{"create":{}}\n{"n":%d}\n'

DONE: dict[str, Any] = {"status": 201, "_seq_no": 7}
TOO_MANY = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue full"}}
MALFORMED = {"status": 400, "error": {"type": "document_parsing_exception", "reason": "too long"}}
CONFLICT = {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "exists"}}
BLOCKED = {"status": 403, "error": {"type": "cluster_block_exception", "reason": "index read-only"}}
FLOODED = {"status": 429, "error": {"type": "cluster_block_exception", "reason": "disk usage exceeded flood-stage"}}
CLOSED = {"status": 400, "error": {"type": "index_closed_exception", "reason": "closed"}}
NO_SHARD = {"status": 503, "error": {"type": "unavailable_shards_exception", "reason": "primary is not active"}}


class Nodes:
    """Answers requests one after another: a list of answers to items, or an error; then all is well."""

    bounds = ElasticsearchBounds(send_pauses=(0.0, 0.0))

    def __init__(self, *answers: list[dict[str, Any]] | EventStoreBusy) -> None:
        self._answers = list(answers)
        self.requests: list[list[str]] = []

    async def bulk(self, index: str, body: bytes) -> list[dict[str, Any]]:
        items = body.decode().splitlines()[1::2]
        self.requests.append(items)
        answer = self._answers.pop(0) if self._answers else [DONE] * len(items)
        if isinstance(answer, EventStoreBusy):
            raise answer
        return answer


async def send(nodes: Nodes, *items: str, in_order: bool = True) -> list[bulk.Refusal]:
    return await bulk.send(cast(Cluster, nodes), "events", items, in_order=in_order)


async def test_all_items_are_done() -> None:
    nodes = Nodes()
    assert await send(nodes, INDEX % 1, INDEX % 2) == []
    assert nodes.requests == [['{"n":1}', '{"n":2}']]


async def test_what_is_too_much_for_now_is_sent_again_alone() -> None:
    nodes = Nodes([DONE, TOO_MANY, DONE, NO_SHARD], [NO_SHARD, DONE])
    assert await send(nodes, *(INDEX % n for n in range(4))) == []
    assert nodes.requests[1:] == [['{"n":1}', '{"n":3}'], ['{"n":1}']]


async def test_a_refused_item_costs_itself_only() -> None:
    nodes = Nodes([DONE, MALFORMED, MALFORMED, DONE])
    refused = await send(nodes, *(INDEX % n for n in range(4)))
    reason = "Elasticsearch refused it: document_parsing_exception: too long"
    assert refused == [(INDEX % 1, reason), (INDEX % 2, reason)]
    assert len(nodes.requests) == 1


async def test_a_line_that_is_there_is_done() -> None:
    assert await send(Nodes([CONFLICT]), CREATE % 1) == []
    nodes = Nodes([CONFLICT])
    assert await send(nodes, INDEX % 1) == []
    assert len(nodes.requests) == 2


async def test_items_on_conditions_are_not_sent_again_once_something_else_is_there() -> None:
    nodes = Nodes([DONE, CONFLICT, TOO_MANY, MALFORMED, CONFLICT], [DONE])
    items = [INDEX % 0, INDEX % 1, INDEX % 2, INDEX % 3, CREATE % 4]
    done, unmet, refused = await bulk.send_on_conditions(cast(Cluster, nodes), "events", items)
    assert done == [(INDEX % 0, 7), (INDEX % 2, 7)]
    assert unmet == [INDEX % 1, CREATE % 4]
    assert [refusal.item for refusal in refused] == [INDEX % 3]
    assert nodes.requests[1:] == [['{"n":2}']]


@pytest.mark.parametrize(
    ("answer", "overloaded", "retry_after"),
    [(TOO_MANY, True, 1), (NO_SHARD, False, 5), (BLOCKED, False, 30), (FLOODED, False, 30), (CLOSED, False, 30)],
)
async def test_who_sends_is_told_when_to_try_again(answer: dict[str, Any], overloaded: bool, retry_after: int) -> None:
    with pytest.raises(EventStoreBusy) as told:
        await send(Nodes(*[[answer]] * 3), INDEX % 1)
    assert (told.value.overloaded, told.value.retry_after, told.value.may_be_kept) == (overloaded, retry_after, True)
    assert answer["error"]["reason"] in str(told.value)


async def test_a_request_that_is_too_much_for_now_is_sent_again() -> None:
    nodes = Nodes(EventStoreBusy("busy"), EventStoreBusy("busy"))
    assert await send(nodes, INDEX % 1) == []
    assert len(nodes.requests) == 3


async def test_a_node_that_is_away_is_not_waited_for() -> None:
    nodes = Nodes(EventStoreBusy("away", overloaded=False))
    with pytest.raises(EventStoreBusy, match="away"):
        await send(nodes, INDEX % 1)
    assert len(nodes.requests) == 1


@pytest.mark.parametrize("in_order", [True, False])
async def test_large_batches_go_in_parts(in_order: bool) -> None:
    nodes = Nodes()
    nodes.bounds = ElasticsearchBounds(request_characters=3 * len(INDEX % 1))
    assert await send(nodes, *(INDEX % (n % 10) for n in range(10)), in_order=in_order) == []
    assert [len(items) for items in nodes.requests] == [3, 3, 3, 1]
    assert [item for items in nodes.requests for item in items] == [(INDEX % n).splitlines()[1] for n in range(10)]
