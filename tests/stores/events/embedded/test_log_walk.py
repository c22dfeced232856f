"""Hot lines that a page wants are chosen before they become columns, and few segments have many lines."""

from __future__ import annotations

import random
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

import pytest

from apiserver.events.model import EventType, LogPosition, MetricSelection
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.codec.lines import Lines, LogPart, Which
from apiserver.stores.events.codec.log_pages import WantedLines
from apiserver.stores.events.embedded import logs
from apiserver.stores.events.embedded.bounds import BOUNDS
from apiserver.stores.events.embedded.hot_lines import HotLines
from apiserver.stores.events.embedded.log_walk import Log
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import OWNER, batch, lines

pytestmark = pytest.mark.anyio

SERIES = SeriesQuery(OWNER, EventType.LOG)


def parts(lengths: list[int], chance: random.Random) -> list[LogPart]:
    """Lines of odd times, of three series and four workers."""
    made, sequence = [], 0
    for length in lengths:
        columns = lines([f"{sequence + n}" for n in range(length)], timestamps=chance.choices(range(50), k=length))
        columns.metrics = chance.choices(["a", "b", "c"], k=length)
        columns.workers = chance.choices(["v", "w", "x", "y"], k=length)
        made.append(LogPart(sequence, 1, columns))
        sequence += length
    return made


def hot_log(some: list[LogPart]) -> Log:
    """A log of hot lines, which asks its database for nothing."""
    database = sqlite3.connect(":memory:")
    log = Log(database, OWNER, [some])
    weakref.finalize(log, database.close)
    log.ids = {}
    return log


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many hot lines become columns, each time."""
    made: list[int] = []
    to_columns = HotLines.lines

    def note(self: HotLines, some: Which) -> Lines:
        found = to_columns(self, some)
        made.append(len(found))
        return found

    monkeypatch.setattr(HotLines, "lines", note)
    return made


@pytest.mark.test
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("selection", [(), ("b",), ("a", "c"), ("none",)])
@pytest.mark.parametrize("workers", [None, {"v"}, {"w", "y"}, {"nobody"}])
@pytest.mark.parametrize("lengths", [[], [1, 30, 200, 7]])
def test_pages_have_the_lines_that_are_wanted_and_no_others_become_columns(
    noted: list[int],
    lengths: list[int],
    descending: bool,
    selection: tuple[str, ...],
    workers: set[str] | None,
) -> None:
    some = parts(lengths, random.Random(5))
    series = SeriesQuery(OWNER, EventType.LOG, [MetricSelection(name, ()) for name in selection])
    expected = sorted(
        LogPosition(int(time), part.sequence + n)
        for part in some
        for n, (time, metric, worker) in enumerate(
            zip(part.columns.timestamps, part.columns.metrics, part.columns.workers, strict=True)
        )
        if (not selection or metric in selection) and (workers is None or worker in workers)
    )
    if descending:
        expected.reverse()
    for limit in (1, 3, 1000):
        for start in (0, len(expected) // 2):
            after = expected[start] if start else None
            noted.clear()
            with closing((log := hot_log(some)).conn):
                wanted = WantedLines.of(series, PageQuery(limit, after, descending=descending), workers)
                found = logs.page(log, wanted)
            left = expected[start + 1 :] if start else expected
            assert [line.position for line in found] == left[:limit]
            assert sum(noted) <= min(limit + 1, len(left))


@pytest.mark.parametrize("descending", [False, True])
def test_many_hot_lines_are_in_few_segments(descending: bool) -> None:
    count = 5 * BOUNDS.hot_lines
    with closing((log := hot_log(parts([count], random.Random(6)))).conn):
        segments = list(log.walk(None, (), descending=descending, few=2))
    walked = [segment.hot for segment in segments]
    assert all(segment.block is None for segment in segments)
    assert len(walked) <= 20
    assert (walked[0].stop - walked[0].start, max(one.stop - one.start for one in walked)) == (2, BOUNDS.hot_lines)
    ascending = walked[::-1] if descending else walked
    assert [0, *(one.stop for one in ascending)] == [*(one.start for one in ascending), count]


async def test_of_hot_lines_among_those_of_a_block_only_what_is_asked_for_becomes_columns(
    tmp_path: Path, noted: list[int]
) -> None:
    store = EmbeddedEventStore(tmp_path, merge_seconds=3600)
    await store.open()
    try:
        await store.add(batch(lines(["merged"] * 100, timestamps=range(0, 10_000, 100))))
        await store.merge()
        await store.add(batch(lines(["hot"] * 5000, timestamps=range(1, 10_001, 2))))
        found = await store.log_lines(SERIES, PageQuery(10))
        back = await store.log_lines(SERIES, PageQuery(10, descending=True))
        numbered, count = await store.log_numbered(OWNER, [0, 1, 50, 51, 5099])
    finally:
        await store.close()
    assert [line.position.timestamp for line in found] == [0, *range(1, 19, 2)]
    assert [line.position.timestamp for line in back] == [*range(9999, 9979, -2)]
    assert [(line.position.timestamp, line.message) for line in numbered] == [
        *((0, "merged"), (1, "hot"), (99, "hot"), (100, "merged"), (9999, "hot"))
    ]
    assert count == 5100
    assert sum(noted) <= 11 + 11 + 3
