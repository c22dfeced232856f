"""What is read of large events from a real Elasticsearch: no more than a page needs, and never much at once."""

from __future__ import annotations

from collections.abc import Awaitable
from random import Random
from typing import Any

import pytest

from apiserver.events.model import EventType, Sample, SamplePosition
from apiserver.events.queries import PageQuery
from apiserver.stores.events.elasticsearch import node
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from apiserver.stores.events.sizes import PAGE_BYTES
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


@pytest.mark.parametrize("bounds", [ElasticsearchBounds(shared=0)])  # who asks again is answered by a request
async def test_small_events_are_few_requests(store: ElasticsearchEventStore, answers: list[int]) -> None:
    await store.add(batch(*(sample(n) for n in range(100)), lines(["a line"] * 1000)))
    await messages(store, limit=1), await store.samples(PLOTS, PageQuery(1))  # refreshed and cached by now
    for read in (lambda: store.log_lines(LOGS, PageQuery(500)), lambda: store.samples(PLOTS, PageQuery(50))):
        before = len(answers)
        await read()
        assert len(answers) == before + 1
