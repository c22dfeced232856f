"""Pages and walks: each event once, in order, whatever the page size and whatever arrives meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson
import pytest

from apiserver.events.model import SINGLE_VALUE_ITERATION, EventType, LogPosition, MetricSelection, Sample
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.reading import logs, samples, task_events
from apiserver.reading.single_values import single_values
from apiserver.reading.task_events import Position
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from apiserver.stores.events.sizes import PAGE_BYTES
from tests.contract.plain_event_store import PlainEventStore
from tests.reading import events
from tests.reading.events import LOGS, NOW, PLOTS, SCALARS, TASK, sample, scalars

pytestmark = pytest.mark.anyio


def plain(page: Sequence[object]) -> list[dict[str, object]]:
    decoded: list[dict[str, object]] = orjson.loads(orjson.dumps(page))
    return decoded


async def walk_events(
    store: EventStore, type: EventType | None, limit: int, *, descending: bool = False
) -> list[dict[str, object]]:
    position: Position | None = None
    found: list[dict[str, object]] = []
    while True:
        page = await task_events.page(store, TASK, type, PageQuery(limit, position, descending))
        if not page.events:
            return found
        found += plain(page.events)
        position = page.position


@pytest.mark.test
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("descending", [False, True])
async def test_a_walk_over_all_types_gives_each_event_once(
    store: EmbeddedEventStore, limit: int, descending: bool
) -> None:
    await store.add(scalars([(n, float(n)) for n in range(10)], metric="a"))
    await store.add(scalars([(n, float(n)) for n in range(-3, 4)], metric="b"))
    await store.add(events.samples(*(sample(n) for n in (0, 2, 4)), sample(4, variant="w")))
    await store.add(events.samples(sample(1, type=EventType.IMAGE), sample(9, type=EventType.VECTOR)))
    await store.add(events.lines([NOW, NOW, NOW + 1]))
    found = await walk_events(store, None, limit, descending=descending)
    identities = [
        (event["type"], event.get("iter"), event["metric"], event["variant"], event.get("msg")) for event in found
    ]
    assert len(identities) == len(set(identities)) == 10 + 7 + 4 + 2 + 3
    iterations = [event["iter"] for event in found if "iter" in event]
    assert iterations == sorted(iterations, reverse=descending)  # type: ignore[type-var]
    assert [event["type"] for event in found][-3:] == ["log"] * 3


@pytest.mark.test
@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("type", [None, EventType.PLOT])
async def test_pages_of_large_samples_end_early_and_lose_none(
    type: EventType | None, limit: int, descending: bool
) -> None:
    store = PlainEventStore()
    await store.add(scalars([(n, float(n)) for n in range(10)]))
    plots = [large(sample(n, variant=variant)) for n in (0, 2, 4) for variant in "abcde"]
    images = [large(sample(n, type=EventType.IMAGE)) for n in range(3, 7)]
    await store.add(events.samples(*plots, *images))
    page = await task_events.page(store, TASK, EventType.PLOT, PageQuery(100, descending=descending))
    assert len(page.events) == 2
    found = await walk_events(store, type, limit, descending=descending)
    identities = [(event["type"], event["iter"], event["variant"]) for event in found]
    assert len(identities) == len(set(identities)) == len(plots) + (14 if type is None else 0)
    iterations = [event["iter"] for event in found]
    assert iterations == sorted(iterations, reverse=descending)  # type: ignore[type-var]


def large(one: Sample) -> Sample:
    """The sample with white space behind its JSON: two such samples fill a page."""
    return replace(one, document=one.document + b" " * (PAGE_BYTES // 2))


async def test_a_page_never_ends_inside_an_iteration(store: EmbeddedEventStore) -> None:
    for variant in "abcde":
        await store.add(scalars([(1, 1.0), (2, 2.0)], variant=variant))
        await store.add(events.samples(sample(1, variant=variant), sample(2, variant=variant)))
    for type in (EventType.SCALAR, EventType.PLOT):
        page = await task_events.page(store, TASK, type, PageQuery(2))
        assert [event["iter"] for event in plain(page.events)] == [1] * 5


async def test_a_scalar_event_comes_back_whole(store: EmbeddedEventStore) -> None:
    await store.add(scalars([(4, 0.5)]))
    (event,) = await walk_events(store, EventType.SCALAR, 10)
    assert event == {
        "type": "training_stats_scalar", "task": "t1", "iter": 4, "timestamp": NOW + 4, "worker": "w", "metric": "m",
        "variant": "v", "value": 0.5, "model_event": False, "@timestamp": "2023-11-14T22:13:20.000Z",
    }  # fmt: skip


async def test_log_pages_by_time_never_skip_lines_of_one_millisecond(store: EmbeddedEventStore) -> None:
    await store.add(events.lines([NOW] * 40 + [NOW + 1] * 3 + [NOW + 2]))
    page = await logs.page(store, LOGS, PageQuery(5, whole=True))
    assert len(page.events) == 40
    assert page.total == 44
    later = await logs.page(store, LOGS, PageQuery(5, logs.beyond(NOW, earlier=False), whole=True))
    assert [event["timestamp"] for event in later.events] == [NOW + 1] * 3 + [NOW + 2]
    before = logs.beyond(NOW + 2, earlier=True)
    earlier = await logs.page(store, LOGS, PageQuery(2, before, descending=True, whole=True))
    assert [event["timestamp"] for event in earlier.events] == [NOW + 1] * 3


@pytest.mark.parametrize("descending", [False, True])
async def test_log_walks_by_position_give_each_line_once_while_others_arrive(
    store: EmbeddedEventStore, descending: bool
) -> None:
    await store.add(events.lines([NOW + n // 3 for n in range(20)]))
    seen: list[str] = []
    after: LogPosition | None = None
    while (page := await logs.page(store, LOGS, PageQuery(3, after, descending))).events:
        seen += [event["msg"] for event in page.events]
        after = page.last
        if len(seen) < 6:
            await store.add(events.lines([NOW - 1 if not descending else NOW + 1000]))
    assert [text for text in seen if text != "line 0"] == [
        f"line {n}" for n in (range(19, 0, -1) if descending else range(1, 20))
    ]


async def test_a_sample_walk_goes_back_and_forth(store: EmbeddedEventStore) -> None:
    await store.add(events.samples(*(sample(n, variant=variant) for n in range(6) for variant in "ab")))

    async def step(seen: samples.Seen | None, *, earlier: bool = True) -> tuple[list[int], samples.Seen | None]:
        page = await samples.walk(store, PLOTS, iterations=2, seen=seen, earlier=earlier)
        assert all(len(found) == 2 for _, found in page.iterations)
        return [iter for iter, _ in page.iterations], page.seen

    first, seen = await step(None)
    second, seen = await step(seen)
    third, seen = await step(seen)
    assert (first, second, third) == ([5, 4], [3, 2], [1, 0])
    assert await step(seen) == ([], seen)
    back, seen = await step(seen, earlier=False)
    assert back == [3, 2]
    await store.add(events.samples(sample(9, variant="a"), sample(9, variant="b")))
    await_new, seen = await step((4, 5), earlier=False)
    assert await_new == [9]


async def test_a_walk_looks_only_at_iterations_that_hold_what_is_selected(store: EmbeddedEventStore) -> None:
    await store.add(events.samples(sample(1, variant="a"), *(sample(n, variant="b") for n in range(2, 9))))
    only_a = SeriesQuery(TASK, EventType.PLOT, [MetricSelection("p", ("a",))])
    page = await samples.walk(store, only_a, iterations=3, seen=None, earlier=True)
    assert [iter for iter, _ in page.iterations] == [1]


async def test_the_latest_samples_of_each_series(store: EmbeddedEventStore) -> None:
    await store.add(events.samples(sample(1), sample(2), sample(3), sample(1, metric="q")))
    found = await store.latest_samples(PLOTS, 2)
    assert [(sample.metric, sample.iter) for sample in found] == [("p", 3), ("p", 2), ("q", 1)]


async def test_single_values(store: EmbeddedEventStore) -> None:
    assert await single_values(store, SCALARS) == []
    await store.add(scalars([(SINGLE_VALUE_ITERATION - 5, 1.0), (0, 1.0)]))
    assert await single_values(store, SCALARS) == []
    await store.add(scalars([(SINGLE_VALUE_ITERATION, 0.5)], metric="Summary", variant="best"))
    await store.add(scalars([(SINGLE_VALUE_ITERATION, 0.9)], metric="Summary", variant="best"))
    await store.add(scalars([(SINGLE_VALUE_ITERATION, 3.0)], metric="Summary", variant="epochs"))
    await store.add(scalars([(SINGLE_VALUE_ITERATION - 1, 1.0)]))
    assert [(value["variant"], value["value"]) for value in await single_values(store, SCALARS)] == [
        ("best", 0.9),
        ("epochs", 3.0),
    ]
