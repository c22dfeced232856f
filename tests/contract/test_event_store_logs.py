"""What every event store does with log lines, by its protocol alone."""

from __future__ import annotations

from itertools import product

import pytest

from apiserver.events.model import EventType, LogLine, LogPosition, LogSize, MetricSelection, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.sizes import PAGE_BYTES
from tests.contract.event_stores import LOGS, OWNER, RECEIVED, Case, batch, case, lines, messages, select

__all__ = ["case"]

pytestmark = pytest.mark.anyio


async def test_a_line_has_everything(case: Case) -> None:
    sent = lines(["hello", "world"], timestamps=[5, 6])
    sent.levels, sent.workers, sent.iters = ["debug", None], ["w1", "w2"], [None, 3]
    sent.extras = {1: '{"rank":3,"who":"é"}'.encode()}
    sent.metrics, sent.variants = ["console", "other"], ["", "stderr"]
    await case.store.add(batch(sent))
    await case.settle()
    first, second = await case.store.log_lines(LOGS, PageQuery(10))
    assert first == LogLine(first.position, "debug", "w1", "hello", None, "console", "", RECEIVED)
    extra = sent.extras[1]
    assert second == LogLine(second.position, None, "w2", "world", 3, "other", "stderr", RECEIVED, extra)
    assert (first.position.timestamp, second.position.timestamp) == (5, 6)


async def test_lines_with_one_timestamp_keep_their_order(case: Case) -> None:
    sent = [f"line {n}" for n in range(50)]
    for start in range(0, 50, 10):
        await case.store.add(batch(lines(sent[start : start + 10], timestamps=[7] * 10)))
        await case.settle()
    assert await messages(case.store) == sent
    assert await messages(case.store, descending=True) == sent[::-1]
    sequences = [line.position.sequence for line in await case.store.log_lines(LOGS, PageQuery(100))]
    assert sequences == sorted(set(sequences))


async def test_late_lines_find_their_place(case: Case) -> None:
    for timestamps in ([10, 30, 50], [20, 40], [5, 35, 60], [30, 30]):
        await case.store.add(batch(lines([str(time) for time in timestamps], timestamps=timestamps)))
        await case.settle()
    assert await messages(case.store) == ["5", "10", "20", "30", "30", "30", "35", "40", "50", "60"]


async def test_pages_neither_skip_nor_repeat(case: Case) -> None:
    for first in (0, 40, 20):
        times = [first + n // 3 for n in range(60)]
        await case.store.add(batch(lines([f"{time}" for time in times], timestamps=times)))
        await case.settle()
    for descending, limit in product((False, True), (1, 7, 1000)):
        walked: list[int] = []
        after: LogPosition | None = None
        while page := await case.store.log_lines(LOGS, PageQuery(limit, after, descending=descending)):
            assert len(page) <= limit
            walked += [int(line.message) for line in page]
            after = page[-1].position
        assert walked == sorted(walked, reverse=descending)
        assert len(walked) == 180


async def test_lines_have_numbers(case: Case) -> None:
    """They do in whatever order the lines came, also where many share a timestamp."""
    for first in (0, 40, 20):
        times = [first + n // 30 for n in range(600)]
        await case.store.add(batch(lines([f"{time} {first}" for time in times], timestamps=times)))
        await case.settle()
    everything = await case.store.log_lines(LOGS, PageQuery(10_000))
    assert await case.store.log_numbered(OWNER, range(10_000)) == (everything, 1800)
    for start in (0, 1, 599, 900, 1795):
        assert await case.store.log_numbered(OWNER, range(start, start + 50)) == (everything[start : start + 50], 1800)
    apart = [*range(0, 1800, 97), 1799, 1800, 10**12]
    assert (await case.store.log_numbered(OWNER, apart))[0] == [everything[n] for n in apart[:-2]]
    for n in range(0, 1800, 41):
        assert await case.store.log_number(OWNER, everything[n].position) == n
    assert await case.store.log_number(OWNER, LogPosition(25, -1)) == sum(
        line.position.timestamp < 25 for line in everything
    )
    assert await case.store.log_number(OWNER, LogPosition(10**15, 0)) == 1800
    unknown = Owner("company", "unknown")
    assert await case.store.log_numbered(unknown, [0, 5]) == ([], 0)
    assert await case.store.log_number(unknown, LogPosition(0, 0)) == 0


async def test_a_page_of_numbered_lines_ends_when_it_is_large(case: Case) -> None:
    long = "x" * (PAGE_BYTES * 2 // 5)
    for n in range(5):
        await case.store.add(batch(lines([f"{n}{long}"], timestamps=[n])))
        await case.settle()
    lines_of = [line.message[0] for line in (await case.store.log_numbered(OWNER, range(5)))[0]]
    assert lines_of == ["0", "1", "2"]
    assert [line.message[0] for line in (await case.store.log_numbered(OWNER, [1, 4]))[0]] == ["1", "4"]


async def test_a_page_of_whole_timestamps_does_not_end_inside_one(case: Case) -> None:
    for _ in range(3):
        await case.store.add(batch(lines([f"{n}" for n in range(4)])))
        await case.settle()
    assert await messages(case.store, limit=4, whole=True) == ["0"] * 3 + ["1"] * 3
    assert await messages(case.store, limit=4, whole=True, descending=True) == ["3"] * 3 + ["2"] * 3


async def test_a_page_ends_when_it_is_large(case: Case) -> None:
    long = "x" * (PAGE_BYTES * 2 // 5)
    for n in range(7):
        await case.store.add(batch(lines([f"{n}{long}"], timestamps=[(0, 0, 1, 1, 1, 1, 2)[n]])))
        await case.settle()
    cut = [["0", "1", "2"], ["3", "4", "5"], ["6"], []]
    uncut = [["0", "1"], ["2", "3", "4", "5"], ["6"], []]
    for whole, expected in ((False, cut), (True, uncut)):
        found: list[list[LogLine]] = [await case.store.log_lines(LOGS, PageQuery(100, whole=whole))]
        while found[-1]:
            after = found[-1][-1].position
            found.append(await case.store.log_lines(LOGS, PageQuery(100, after, whole=whole)))
        assert [[line.message[0] for line in page] for page in found] == expected
    newest = await case.store.log_lines(LOGS, PageQuery(2, descending=True))
    assert [line.message[0] for line in newest] == ["6", "5"]


async def test_the_newest_of_many_lines(case: Case) -> None:
    for start in range(0, 6000, 1500):
        sent = range(start, start + 1500)
        await case.store.add(batch(lines([f"line {n}" for n in sent], timestamps=list(sent))))
        await case.settle()
    assert await messages(case.store, descending=True, limit=100) == [f"line {n}" for n in range(5999, 5899, -1)]
    middle = LogPosition(3000, 2**62)
    assert await messages(case.store, after=middle, limit=500) == [f"line {n}" for n in range(3001, 3501)]
    assert await messages(case.store, after=middle, descending=True, limit=2) == ["line 3000", "line 2999"]
    assert await case.store.log_count(LOGS) == 6000


async def test_lines_are_selected_by_series(case: Case) -> None:
    for n in range(3):
        await case.store.add(
            batch(
                lines([f"a{n}"], metric="a"),
                lines([f"b{n}"], metric="b", variant="x"),
                lines([f"c{n}"], metric="b", variant="y"),
            )
        )
        await case.settle()
    only_x = [MetricSelection("b", ("x",))]
    assert await messages(case.store, select(LOGS, *only_x)) == ["b0", "b1", "b2"]
    assert await case.store.log_count(select(LOGS, *only_x)) == 3
    assert await case.store.log_count(select(LOGS, MetricSelection("b"))) == 6
    assert await case.store.log_count(select(LOGS, MetricSelection("unknown"))) == 0
    assert await case.store.log_count(LOGS) == 9


async def test_a_body_sent_again_adds_no_line(case: Case) -> None:
    sent = lines(["one", "one", "two"], digest=b"body")
    await case.store.add(batch(sent))
    await case.settle()
    await case.store.add(batch(sent))
    await case.settle()
    await case.store.add(batch(sent))
    assert await messages(case.store) == ["one", "one", "two"]
    assert await case.store.log_count(LOGS) == 3


async def test_a_body_is_known_by_owner(case: Case) -> None:
    other = OWNER._replace(id="other")
    await case.store.add(batch(lines(["mine"], digest=b"body")))
    await case.settle()
    await case.store.add(batch(lines(["mine"], digest=b"body"), lines(["theirs"], digest=b"body", owner=other)))
    await case.settle()
    assert await messages(case.store) == ["mine"]
    assert await messages(case.store, SeriesQuery(other, EventType.LOG)) == ["theirs"]


async def test_lines_without_a_digest_always_append(case: Case) -> None:
    for _ in range(3):
        await case.store.add(batch(lines(["same"])))
        await case.settle()
    assert await messages(case.store) == ["same"] * 3


async def test_the_rest_of_a_batch_is_kept_when_its_lines_are_known(case: Case) -> None:
    await case.store.add(batch(lines(["line"], digest=b"one")))
    await case.settle()
    await case.store.add(batch(lines(["line"], digest=b"one"), lines(["new"], digest=b"two", timestamps=[9])))
    assert await messages(case.store) == ["line", "new"]


async def test_a_message_may_be_any_text(case: Case) -> None:
    texts = ["", "\0", "a\0b", "\n\r\t", "ÿ\U0001f600\uffff", "x" * 100_000]
    await case.store.add(batch(lines(texts)))
    await case.settle()
    assert await messages(case.store) == texts


async def test_lines_may_be_of_any_time(case: Case) -> None:
    times = [-(2**63), -1, 0, 2**63 - 1]
    await case.store.add(batch(lines([str(time) for time in times], timestamps=times)))
    await case.settle()
    for descending in (False, True):
        found = await messages(case.store, descending=descending)
        assert found == [str(time) for time in (times[::-1] if descending else times)]


async def delete_setup(case: Case) -> None:
    for start in (0, 1000):
        times = range(start, start + 700)
        await case.store.add(
            batch(*(lines([f"{metric}{n}" for n in times], metric=metric, timestamps=times) for metric in "ab"))
        )
        await case.settle()


async def test_lines_are_deleted_by_age(case: Case) -> None:
    await delete_setup(case)
    assert await case.store.log_number(OWNER, LogPosition(1100, -1)) == 1600
    assert await case.store.delete_logs(LOGS, 1100) == 1600
    assert await case.store.log_number(OWNER, LogPosition(1101, -1)) == 2
    assert [line.message for line in (await case.store.log_numbered(OWNER, [0, 1, 2, 1199, 1200]))[0]] == [
        *("a1100", "b1100", "a1101", "b1699")
    ]
    assert await case.store.log_count(LOGS) == 1200
    assert (await messages(case.store))[:2] == ["a1100", "b1100"]
    assert await case.store.delete_logs(LOGS, 1100) == 0


async def test_lines_are_deleted_by_series(case: Case) -> None:
    await delete_setup(case)
    assert await case.store.delete_logs(LOGS, None, [MetricSelection("b")]) == 1400
    assert await case.store.log_count(LOGS) == 1400
    assert {name.metric for name in await case.store.series(OWNER)} == {"b"}
    assert await case.store.delete_logs(select(LOGS, MetricSelection("b")), 500) == 500
    assert (await messages(case.store))[0] == "b500"
    assert await case.store.delete_logs(LOGS, None) == 900
    assert await case.store.series(OWNER) == []
    assert await messages(case.store) == []


async def test_lines_added_after_a_deletion_are_kept(case: Case) -> None:
    await case.store.add(batch(lines(["old"], digest=b"body")))
    await case.settle()
    await case.store.delete_logs(LOGS, None)
    await case.store.add(batch(lines(["new"])))
    await case.settle()
    assert await messages(case.store) == ["new"]


async def test_sizes_are_by_worker(case: Case) -> None:
    sent = lines(["one", "zwei é\n", "", "a\nb", "of b"], timestamps=[9, 5, 7, 8, 3])
    sent.workers[-1] = "b"
    await case.store.add(batch(sent))
    await case.settle()
    await case.store.add(batch(lines(["late"], timestamps=[4], metric="other")))
    await case.settle()
    assert await case.store.log_sizes(OWNER) == {"worker": LogSize(4, 4 + 8 + 1 + 4 + 5), "b": LogSize(3, 5)}
    assert await case.store.log_sizes(OWNER._replace(id="other")) == {}

    await case.store.delete_logs(select(LOGS, MetricSelection("console")), 8)
    await case.settle()
    assert await case.store.log_sizes(OWNER) == {"worker": LogSize(4, 4 + 4 + 5)}


async def test_any_number_of_workers_may_log(case: Case) -> None:
    count = 2500
    for first in (0, count):
        sent = lines([f"line {n}" for n in range(first, first + count)], timestamps=range(first, first + count))
        sent.workers[:] = [f"worker {n}" for n in range(count)]
        await case.store.add(batch(sent))
        await case.settle()
    expected = {f"worker {n}": LogSize(n, len(f"line {n}") + len(f"line {n + count}") + 2) for n in range(count)}
    assert await case.store.log_sizes(OWNER) == expected


async def test_lines_of_some_workers(case: Case) -> None:
    for first in (0, 60):
        sent = lines([str(n) for n in range(first, first + 60)], timestamps=[n // 2 for n in range(first, first + 60)])
        sent.workers[:] = [f"worker {n % 6}" for n in range(60)]
        await case.store.add(batch(sent))
        await case.settle()
    wanted = [str(n) for n in range(120) if n % 6 in (1, 4)]
    assert await messages(case.store, workers=["worker 1", "worker 4", "nobody"]) == wanted
    assert await messages(case.store, workers=["worker 1", "worker 4"], descending=True) == wanted[::-1]
    assert await messages(case.store, workers=["worker 4"], limit=3) == ["4", "10", "16"]
    assert await messages(case.store, workers=["nobody"]) == await messages(case.store, workers=[]) == []
    assert await messages(case.store, select(LOGS, MetricSelection("other")), workers=["worker 4"]) == []
