"""Search in logs, against brute force."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.data.logs import filter_of
from apiserver.events.log_filter import LineFilter
from apiserver.events.model import EventBatch, EventType, LogColumns, LogPosition, MetricSelection, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.reading.log_search import SearchBounds, SearchPage, hits, search, text
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.reading import events
from tests.reading.any_events import looked_at
from tests.reading.events import LOGS, NOW, TASK

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


@pytest.mark.test
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
    bounds = SearchBounds(page, seconds)
    while True:
        found = await search(store, series, wanted, PageQuery(limit, after, descending), bounds)
        assert len(found.events) <= limit
        walked += [(event["timestamp"], event["msg"]) for event in found.events]
        if found.ended:
            break
        assert found.last != after
        assert seconds == 0 or len(found.events) == limit
        after = found.last
    assert walked == (expected[::-1] if descending else expected)


EXPRESSIONS = (
    *("needle", "^a", "here$", "e{2}|n .w", "(?i)NEEDLE", r"\bneedle\b", r"\Aneedle", r"here\z", "(?-m)^needle", "$^"),
    *("(?s)needle.in", "(?m)^in", "^$", "needle\nin", r"ß\z", "[^a]$"),
)
TEXTS = ("needle", "NEEDLE", "strasse", "ss", "ß", "e\nin", "here\na", "", "zebra")
MESSAGES = ("nothing", "a Needle here", "needle\nin two lines", "NEEDLEß", "", "eleven", "Straße", "\n", "here")


@pytest.mark.test
@given(
    parts=st.lists(
        st.lists(
            st.tuples(
                st.integers(0, 5),
                st.sampled_from(["info", "error", "debug"]),
                st.sampled_from(["w1", "w2", ""]),
                st.just(""),
                st.sampled_from(MESSAGES),
            ),
            min_size=1,
            max_size=25,
        ),
        min_size=1,
        max_size=4,
    ),
    merges=st.integers(0, 4),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
    seconds=st.sampled_from([0.0, 100.0]),
    most=st.sampled_from([1, 3, 1000]),
    levels=st.sampled_from([(), ("error",), ("error", "debug"), ("nothing",)]),
    workers=st.sampled_from([(), ("w1",), ("w1", ""), ("nobody",)]),
    message=st.one_of(
        st.just((None, None)),
        st.tuples(st.sampled_from(TEXTS), st.none()),
        st.tuples(st.none(), st.sampled_from(EXPRESSIONS)),
    ),
    without=st.one_of(st.none(), st.sampled_from(EXPRESSIONS)),
)
@examples(60)
async def test_hits_have_the_numbers_of_the_lines_that_match(
    tmp_path: Path,
    parts: list[list[Line]],
    merges: int,
    sizes: tuple[int, int, int],
    seconds: float,
    most: int,
    levels: tuple[str, ...],
    workers: tuple[str, ...],
    message: tuple[str | None, str | None],
    without: str | None,
) -> None:
    """Among merged lines and hot ones, wherever these belong, and however many lines are searched at once."""
    block_lines, searched_lines, together = sizes
    wanted = replace(await filter_of(*message, without, list(levels), list(workers)), together=together)
    lines = sorted((line for part in parts for line in part), key=lambda line: line[0])
    expected = [
        n
        for n, (_, level, worker, _, text) in enumerate(lines)
        if (not levels or level in levels) and (not workers or worker in workers)
        if (wanted.message is None or wanted.message(text)) and not (wanted.without and wanted.without(text))
    ]
    found: list[int] = []
    end, after = 0, None
    bounds = EmbeddedBounds(block_lines=block_lines, searched_lines=searched_lines)
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        store = EmbeddedEventStore(Path(folder), bounds=bounds)
        await store.open()
        for n, part in enumerate(parts):
            await store.add(batch(part))
            if n < merges:
                await store.merge()
        while True:
            some = await hits(store, LOGS, wanted, after, most, SearchBounds(hit_seconds=seconds))
            assert some.last != after
            assert all(end <= number < some.end for number in some.numbers)
            found, end, after = found + some.numbers, some.end, some.last
            if some.ended:
                break
        for start in range(0, len(lines), 4):
            window, total = await store.log_numbered(TASK, range(start, start + 7))
            assert [line.message for line in window] == [line[4] for line in lines[start : start + 7]]
            assert total == len(lines)
            position = window[-1].position
            assert await store.log_number(TASK, position) == start + len(window) - 1
        await store.close()
    assert (found, end) == (expected, len(lines))


async def test_a_search_answers_when_its_time_is_up(store: EmbeddedEventStore) -> None:
    await store.add(events.lines(range(10)))
    wanted = LineFilter(message=text("line 7", any_case=False))

    async def step(after: LogPosition | None) -> SearchPage:
        return await search(store, LOGS, wanted, PageQuery(5, after), SearchBounds(page=4, seconds=0))

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
