"""What is read of large events from a real Elasticsearch: no more than a page needs, and never much at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from random import Random
from typing import Any

import pytest

from apiserver.events.model import EventType, Sample, SamplePosition
from apiserver.events.queries import PageQuery
from apiserver.stores.events.base import PAGE_BYTES, EventStoreBusy
from apiserver.stores.events.elasticsearch import logs, node, writing
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from apiserver.stores.events.elasticsearch.writing import LARGE_LINE
from tests.contract.event_stores import LOGS, PLOTS, batch, lines, messages, sample

pytestmark = pytest.mark.anyio

PLOT = EventType.PLOT


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each answer."""
    sizes: list[int] = []
    perform = node.Node.perform_request

    async def counted(*arguments: Any, **options: Any) -> Any:
        answer = await perform(*arguments, **options)
        sizes.append(len(answer.body))
        return answer

    monkeypatch.setattr(node.Node, "perform_request", counted)
    return sizes


@pytest.fixture
async def store(elasticsearch_url: str, elasticsearch_prefix: str) -> AsyncIterator[ElasticsearchEventStore]:
    opened = ElasticsearchEventStore(ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix), migrate=True)
    await opened.open()
    yield opened
    await opened.close()


async def read_by(answers: list[int], page: Awaitable[list[Any]]) -> tuple[int, int, int]:
    """How many events the page has, and how many bytes were answered: at all, and at most at once."""
    before = len(answers)
    found = await page
    return len(found), sum(answers[before:]), max(answers[before:])


async def test_a_page_of_plots_reads_what_it_answers(
    store: ElasticsearchEventStore, answers: list[int], dice: Random
) -> None:
    large = PAGE_BYTES * 2 // 5
    for n in range(10):
        plots = [sample(n, variant=variant, document=b"{}") for variant in "bcd"]
        text = b'"%b"' % dice.randbytes(large // 2).hex().encode()
        await store.add(batch(sample(n, variant="a", document=text), *plots))
    for page, events in (
        (store.samples(PLOTS, PageQuery(1000)), 9),
        (store.samples(PLOTS, PageQuery(1000, descending=True)), 12),
        (store.latest_samples(PLOTS, 5), 3),
        (store.latest_samples(PLOTS, 1), 4),
    ):
        count, read, at_once = await read_by(answers, page)
        assert count == events
        assert (read, at_once) < (2 * PAGE_BYTES, PAGE_BYTES * 3 // 2)
    latest: list[Sample] = []
    after: SamplePosition | None = None
    while found := await store.latest_samples(PLOTS, 5, after):
        latest += found
        after = SamplePosition(found[-1].iter, "plots", found[-1].variant, "")
    assert [(one.variant, one.iter) for one in latest] == [(v, n) for v in "abcd" for n in range(9, 4, -1)]


async def test_a_page_of_lines_reads_what_it_answers(store: ElasticsearchEventStore, answers: list[int]) -> None:
    for n in range(8):
        await store.add(batch(lines([f"{n}", f"{n}" * (PAGE_BYTES * 2 // 5), f"{n}"], timestamps=[n // 3] * 3)))
    for whole in (False, True):
        page = store.log_lines(LOGS, PageQuery(2, whole=whole))
        count, read, at_once = await read_by(answers, page)
        assert count == (9 if whole else 2)
        assert (read, at_once) < (2 * PAGE_BYTES, PAGE_BYTES * 3 // 2)


async def test_small_events_are_one_request(store: ElasticsearchEventStore, answers: list[int]) -> None:
    await store.add(batch(*(sample(n) for n in range(100)), lines(["a line"] * 1000)))
    await messages(store, limit=1), await store.samples(PLOTS, PageQuery(1))  # refreshed by now
    for page in (store.log_lines(LOGS, PageQuery(500)), store.samples(PLOTS, PageQuery(50))):
        before = len(answers)
        await page
        assert len(answers) == before + 1


async def test_large_lines_that_do_not_say_so(store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of earlier releases."""
    with monkeypatch.context() as patch:
        patch.setattr(writing, "LARGE_LINE", 2**30)
        await store.add(batch(lines([f"{n:02}" * 10_000 for n in range(40)])))
    monkeypatch.setattr(node, "LARGEST_ANSWER", 200_000)
    assert [message[:2] for message in await messages(store)] == [f"{n:02}" for n in range(40)]
    monkeypatch.setattr(node, "LARGEST_ANSWER", 10_000)
    with pytest.raises(EventStoreBusy, match="an answer of a node has more than 10,000 bytes"):
        await messages(store)
    assert await store.log_count(LOGS) == 40


async def test_windows_of_large_and_small_lines(
    store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch, dice: Random
) -> None:
    monkeypatch.setattr(logs, "WINDOW", 5)
    sent = [f"{n:02}" + "x" * dice.choice([0, LARGE_LINE]) for n in range(40)]
    await store.add(batch(lines(sent)))
    assert await messages(store) == sent
    assert await messages(store, descending=True, limit=17) == sent[:-18:-1]
