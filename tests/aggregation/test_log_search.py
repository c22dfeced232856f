"""Search in logs, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.aggregation import log_search
from apiserver.aggregation.log_search import LineFilter, SearchPage, search, text
from apiserver.events.model import EventBatch, EventType, LogColumns, LogPosition, MetricSelection, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.aggregation import events
from tests.aggregation.any_events import looked_at
from tests.aggregation.events import LOGS, NOW, TASK

pytestmark = pytest.mark.anyio

Line = tuple[int, str, str, str, str]
"""(timestamp, level, worker, metric, message)"""
LINES = st.tuples(
    st.integers(0, 5),
    st.sampled_from(["info", "error"]),
    st.sampled_from(["w1", "w2"]),
    st.sampled_from(["", "stdout"]),
    st.sampled_from(["nothing", "a Needle here", "needle\nin two lines", "NEEDLEß"]),
)


def batch(lines: list[Line], owner: Owner = TASK) -> EventBatch:
    times, levels, workers, metrics, messages = (list(column) for column in zip(*lines, strict=True))
    none, blank = [None] * len(lines), [""] * len(lines)
    stamps = np.array(times, np.int64)
    return EventBatch(NOW, logs=[LogColumns(owner, stamps, levels, workers, messages, [*none], metrics, blank)])


@given(
    lines=st.lists(LINES, min_size=1, max_size=60),
    page=st.integers(1, 9),
    limit=st.integers(1, 9),
    descending=st.booleans(),
    seconds=st.sampled_from([0.0, 100.0]),
    levels=st.sampled_from([frozenset[str](), frozenset({"error"})]),
    workers=st.sampled_from([frozenset[str](), frozenset({"w1"}), frozenset({"w1", "w2"})]),
    metric=st.sampled_from([None, "stdout"]),
    needle=st.sampled_from([None, "needle"]),
)
@looked_at
async def test_a_search_finds_each_line_once_however_often_it_is_interrupted(
    store: EmbeddedEventStore,
    lines: list[Line],
    page: int,
    limit: int,
    descending: bool,
    seconds: float,
    levels: frozenset[str],
    workers: frozenset[str],
    metric: str | None,
    needle: str | None,
) -> None:
    await store.delete([TASK])
    await store.add(batch(lines))
    expected = [
        (time, message)
        for time, level, worker, of_metric, message in sorted(lines, key=lambda line: line[0])
        if (not levels or level in levels) and (not workers or worker in workers)
        if (metric is None or of_metric == metric) and (needle is None or needle in message.lower())
    ]
    wanted = LineFilter(levels, workers, text(needle, any_case=True) if needle else None)
    series = SeriesQuery(TASK, EventType.LOG, [] if metric is None else [MetricSelection(metric)])
    walked: list[tuple[int, str]] = []
    after: LogPosition | None = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_search, "PAGE", page)
        patch.setattr(log_search, "SECONDS", seconds)
        while True:
            found = await search(store, series, wanted, PageQuery(limit, after, descending))
            assert len(found.events) <= limit
            walked += [(event["timestamp"], event["msg"]) for event in found.events]
            if found.ended:
                break
            assert found.last != after
            assert seconds == 0 or len(found.events) == limit
            after = found.last
    assert walked == (expected[::-1] if descending else expected)


async def test_a_search_answers_when_its_time_is_up(store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.add(events.lines(range(10)))
    monkeypatch.setattr(log_search, "PAGE", 4)
    monkeypatch.setattr(log_search, "SECONDS", 0)
    wanted = LineFilter(message=text("line 7", any_case=False))

    async def step(after: LogPosition | None) -> SearchPage:
        return await search(store, LOGS, wanted, PageQuery(5, after))

    first = await step(None)
    assert (first.events, first.ended) == ([], False)
    second = await step(first.last)
    assert ([event["msg"] for event in second.events], second.ended) == (["line 7"], False)
    third = await step(second.last)
    assert (third.events, third.ended) == ([], True)
    await store.add(events.lines([20] * 8))
    later = await step(third.last)
    assert [event["msg"] for event in later.events] == []
    assert (await step(later.last)).events[0]["msg"] == "line 7"


def test_texts_match_as_they_are() -> None:
    assert text("a.b", any_case=True)("xA.By")
    assert not text("a.b", any_case=True)("aab")
    assert text("STRASSE", any_case=True)("Straße")
    assert not text("Needle", any_case=False)("needle")
