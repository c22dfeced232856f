"""The logs of block stores, by the contract of event stores and beside the plain one, in fragments and in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventBatch, EventType, LogPosition, selection_of
from apiserver.events.queries import PageQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.blocks.blocks import BlockStore
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.logs import ColumnarLogs
from tests.chance import examples
from tests.contract import test_event_store_logs as contract
from tests.contract.event_stores import LOGS, OWNER, Case, batch, lines, messages
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events import random_events
from tests.stores.events.blocks import block_stores
from tests.stores.events.blocks.plain_blocks import PlainBlocks
from tests.stores.events.comparison import assert_same_logs
from tests.stores.events.random_events import OWNERS

pytestmark = pytest.mark.anyio
blocks = block_stores.blocks

globals().update({name: test for name, test in vars(contract).items() if name.startswith("test_")})


@pytest.fixture(params=["fragments", "chunks", "both"])
async def case(request: pytest.FixtureRequest) -> Case:
    """The engine as an event store, which compacts whenever it may, once, or never."""
    logs = ColumnarLogs(PlainBlocks())
    times = {"fragments": 0, "chunks": 10**6, "both": 1}[request.param]

    async def settle() -> None:
        nonlocal times
        if times:
            times -= 1
            await logs.compact(OWNER, fewest=1)

    return Case(cast(EventStore, logs), settle)


async def positions(logs: ColumnarLogs) -> list[tuple[str, LogPosition]]:
    return [(line.message, line.position) for line in await logs.log_lines(LOGS, PageQuery(10**6))]


async def test_a_body_sent_again_after_compaction_adds_nothing(blocks: BlockStore) -> None:
    logs, other = ColumnarLogs(blocks), ColumnarLogs(blocks)
    sent = batch(lines(["one", "two"], timestamps=[5, 5], digest=b"body"))
    await logs.add(sent)
    await logs.add(batch(lines(["three"], timestamps=[5], digest=b"other body")))
    before = await positions(logs)
    await logs.compact(OWNER, fewest=1)
    for _ in range(2):
        await other.add(sent)
        await blocks.ended(OWNER)  # so that this server looks for what the other one did
        assert await positions(logs) == await positions(other) == before
        assert await other.log_count(LOGS) == 3
        await logs.compact(OWNER, fewest=1)
        await blocks.ended(OWNER)
        assert await positions(other) == before
        assert len((await blocks.find(LOGS)).blocks) == 1


async def test_a_body_sent_again_after_a_deletion_is_new(blocks: BlockStore) -> None:
    logs = ColumnarLogs(blocks)
    for compacted in (False, True):
        await logs.add(batch(lines(["one", "two"], digest=b"body")))
        if compacted:
            await logs.compact(OWNER, fewest=1)
        await logs.delete([OWNER])
        assert await positions(logs) == []
        for _ in range(2):
            await logs.add(batch(lines(["one", "two"], digest=b"body")))
            assert [message for message, _ in await positions(logs)] == ["one", "two"]
        await logs.compact(OWNER, fewest=1)
        assert [message for message, _ in await positions(logs)] == ["one", "two"]


async def test_many_lines_of_one_time_are_in_many_blocks(blocks: BlockStore) -> None:
    logs = ColumnarLogs(blocks, bounds=ColumnarBounds(chunk_bytes=1000, fragment_bytes=1000))
    sent = [str(number) for number in range(100)]
    first, second = lines(sent[:40], timestamps=[7] * 40), lines(sent[40:], timestamps=[7] * 60, metric="other")
    await logs.add(batch(first, second))
    before = await positions(logs)
    assert [message for message, _ in before] == sent
    await logs.compact(OWNER, fewest=1)
    assert len((await blocks.find(LOGS)).blocks) > 20
    assert await positions(logs) == before
    after = before[50][1]
    assert await messages(cast(EventStore, logs), limit=3, after=after) == sent[51:54]
    assert await messages(cast(EventStore, logs), limit=3, after=after, descending=True) == sent[47:50][::-1]


async def test_a_line_of_an_odd_time_is_in_a_block_of_its_own(blocks: BlockStore) -> None:
    logs = ColumnarLogs(blocks)
    times = [0, 10**12, 10**12 + 5, 2**63 - 1]
    await logs.add(batch(lines([str(time) for time in times], timestamps=times)))
    found = {(block.first, block.last) for block in (await blocks.find(LOGS)).blocks}
    assert found == {(0, 0), (10**12, 10**12 + 5), (2**63 - 1, 2**63 - 1)}


@pytest.mark.parametrize("descending", [False, True])
async def test_no_line_of_a_series_or_worker_is_passed_over_in_many_blocks(descending: bool) -> None:
    """Blocks are asked some at a time whether they may have any: 20, 100, 500."""
    logs = ColumnarLogs(PlainBlocks())
    numbers = range(150)
    for n in numbers:
        columns = lines([str(n)], timestamps=[n], variant="ab"[n % 2])
        await logs.add(batch(replace(columns, workers=["one" if n % 3 else "other"])))
    numbers = numbers[::-1] if descending else numbers
    store = cast(EventStore, logs)
    of_series = replace(LOGS, selection=selection_of([("console", "b")]))
    assert await messages(store, of_series, descending=descending) == [str(n) for n in numbers if n % 2]
    assert await messages(store, LOGS, ["other"], descending=descending) == [str(n) for n in numbers if not n % 3]


async def test_few_blocks_are_left(blocks: BlockStore) -> None:
    logs = ColumnarLogs(blocks)
    for number in range(40):
        await logs.add(batch(lines([f"line {number}"], timestamps=[number])))
        await logs.compact(OWNER)
    await logs.compact(OWNER, fewest=1)
    await blocks.ended(OWNER)
    assert len((await blocks.find(LOGS)).blocks) <= 2
    assert await logs.log_count(LOGS) == 40


async def test_a_deletion_is_of_chunks_and_fragments(blocks: BlockStore) -> None:
    logs = ColumnarLogs(blocks)
    await logs.add(batch(lines(["one", "two"])))
    await logs.compact(OWNER, fewest=1)
    await logs.add(batch(lines(["three"])))
    assert await logs.log_count(LOGS) == 3
    await logs.delete([OWNER, OWNER])
    assert await logs.log_count(LOGS) == 0


DELETION = st.tuples(
    st.just("delete_logs"), random_events.log_series, st.none() | random_events.times, random_events.selections
)
STEP = st.one_of(st.sampled_from([1, 3, "delete", "again"]), random_events.batches, DELETION)


@pytest.mark.test
@examples(20)
@given(st.lists(STEP, max_size=8), st.sampled_from([300, 10**6]))
async def test_random_logs_are_read_as_from_the_plain_store(steps: Sequence[Any], largest: int) -> None:
    bounds = ColumnarBounds(chunk_bytes=largest, fragment_bytes=largest, bytes_at_a_time=4 * largest)
    logs, plain = ColumnarLogs(PlainBlocks(), bounds=bounds), PlainEventStore()
    sent: list[EventBatch] = []
    for step in steps:
        if step == "delete":
            await logs.delete(OWNERS)
            await plain.delete(OWNERS, [EventType.LOG])
        elif isinstance(step, int):
            for owner in OWNERS:
                await logs.compact(owner, fewest=step)
        elif isinstance(step, tuple):
            assert await logs.delete_logs(*step[1:]) == await plain.delete_logs(*step[1:])
        elif step != "again":
            sent.append(step)
        if sent and not isinstance(step, int):
            await logs.add(sent[-1])
            await plain.add(sent[-1])
    for owner in OWNERS:
        await assert_same_logs(cast(EventStore, logs), plain, owner)
        assert await logs.series(owner) == await plain.series(owner, [EventType.LOG])
