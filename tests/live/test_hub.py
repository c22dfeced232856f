"""What watchers are told, on either pair of stores, and when streams begin and end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from apiserver.events.model import EventType, Owner
from apiserver.live import hub
from apiserver.live.bounds import LiveBounds
from apiserver.live.cursors import place_of, text_of
from apiserver.live.follower import NothingToFollow, TooManyTasks
from apiserver.live.hub import Hub, Reader, TooManyStreams
from apiserver.live.reach import Closed
from apiserver.live.telling import ALIVE
from apiserver.reading.scroll import InvalidScroll, Scrolls
from apiserver.server.bounds import Bounds
from tests.clock import still_clock
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.live.conftest import COMPANY, ON_EACH, PATIENCE, Stores, always

pytestmark = pytest.mark.anyio

A, B, C = (Owner(COMPANY, name) for name in "abc")


@ON_EACH
async def test_a_watcher_is_told_statuses_first_and_then_what_changes(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a") as reading:
        ((name, status),) = await reading.next()
        assert (name, status["task"], status["status"], status["name"]) == ("status", "a", "created", "a")
        await stores.events.add(
            batch(
                scalars([1.0, 2.0], iters=[7, 5], owner=A),
                sample(3, owner=A),
                lines(["x", "y"], owner=A),
                scalars([1.0], owner=B),
            )
        )
        expected: list[tuple[str, object]] = [
            ("scalars", {"task": "a", "series": [["loss", "train", 5, 7]], "count": 1}),
            ("samples", {"task": "a", "series": [["plots", "roc", 3, 3, EventType.PLOT]], "count": 1}),
            ("log", {"task": "a", "count": 2}),
        ]
        told: list[tuple[str, object]] = []
        while len({name for name, _ in told}) < 3:  # an engine may show one type before another, and say it again
            told += await reading.next()
        assert [one for one in expected if one in told] == expected
        assert [one for one in told if one not in expected] == []


async def test_a_status_that_changes_is_told(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a") as reading:
        await reading.next()
        await stores.change("a", status="in_progress", last_iteration=3)
        ((name, status),) = await reading.next()
        assert (name, status["status"], status["last_iteration"]) == ("status", "in_progress", 3)


@pytest.mark.parametrize("change", [{"comment": "look"}, {"tags": ["best"]}, {"system_tags": ["archived"]}], ids=str)
async def test_a_change_of_comment_and_tags_is_told(stores: Stores, change: dict[str, Any]) -> None:
    await stores.task("a")
    async with stores.watching("a") as reading:
        await reading.next()
        await stores.change("a", **change)
        ((name, status),) = await reading.next()
        assert (name, status["task"]) == ("status", "a")


@ON_EACH
async def test_what_a_reader_missed_is_told_when_it_comes_back(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a") as reading:
        await reading.next()
    await stores.events.add(batch(scalars([1.0], iters=[4], owner=A)))
    async with stores.watching("a", since=reading.cursor) as again:
        assert await again.next() == [("scalars", {"task": "a", "series": [["loss", "train", 4, 4]], "count": 1})]
    await stores.change("a", status="stopped")
    async with stores.watching("a", since=again.cursor) as third:
        ((name, status),) = await third.next()
        assert (name, status["status"]) == ("status", "stopped")
    async with stores.watching("a", since=third.cursor) as fourth:
        assert await fourth.next() == []


@pytest.mark.test
@ON_EACH
async def test_nothing_is_missed_while_watchers_come_and_go(stores: Stores) -> None:
    """Each reader joins tasks that others watch, and tasks that nobody does, while all of them report."""
    owners = [Owner(COMPANY, f"t{n}") for n in range(6)]
    for owner in owners:
        await stores.task(owner.id)
    async with stores.watching(*(owner.id for owner in owners)) as all_of_them:
        await all_of_them.next()
    count, came_back = 40, asyncio.Event()

    async def write() -> None:
        for n in range(count):
            came_back.clear()
            for owner in owners:
                await stores.events.add(batch(scalars([1.0], iters=[n], owner=owner)))
            await came_back.wait()

    async def read(number: int) -> None:
        """Follow two tasks, leaving and coming back all the time, until all of one is seen."""
        task, since, seen = owners[number].id, all_of_them.cursor, set[int]()
        while len(seen) < count:
            async with stores.watching(task, owners[number - 1].id, since=since) as reading:
                came_back.set()
                for name, told in await reading.next():
                    if name == "scalars" and told["task"] == task:
                        ((_, _, least, greatest),) = told["series"]
                        seen.update(range(least, greatest + 1))
                since = reading.cursor
        came_back.set()

    await asyncio.wait_for(asyncio.gather(write(), *map(read, range(len(owners)))), PATIENCE)


async def test_changes_come_together(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a") as reading:
        await reading.next()
        chunks, reached = 0, 0
        with still_clock():  # so the pause after the first chunk goes on until all have come
            for n in range(100):
                await stores.events.add(batch(scalars([1.0], iters=[n], owner=A)))
        while reached < 99:
            (((_, told),), chunks) = await reading.next(), chunks + 1
            reached = told["series"][0][3]
        assert chunks <= 2


@ON_EACH
async def test_deleted_events_are_a_reset(stores: Stores) -> None:
    await stores.task("a")
    await stores.events.add(batch(scalars([1.0], owner=A)))
    async with stores.watching("a") as reading:
        await reading.next()
        await stores.events.delete([A])
        assert ("reset", {"task": "a"}) in await reading.until("reset")


@ON_EACH
async def test_a_deleted_task_is_gone_and_the_stream_ends_with_the_last(stores: Stores) -> None:
    await stores.task("a")
    await stores.task("b")
    async with stores.watching("a", "b", "nobody") as reading:
        first = await reading.next()
        assert [(name, told["task"]) for name, told in first[-1:]] == [("gone", "nobody")]
        await stores.documents.delete("tasks", {"id": "a"})
        assert await reading.until("gone") == [("gone", {"task": "a"})]
        await stores.documents.delete("tasks", {"id": "b"})
        assert [name for name, _ in await reading.until("end")] == ["gone", "end"]
        with pytest.raises(StopAsyncIteration):
            await reading.next()
    with pytest.raises(NothingToFollow):
        async with stores.watching("a", "b"):
            pass


@ON_EACH
async def test_other_companies_see_only_what_is_public(stores: Stores) -> None:
    await stores.task("a", company="other")
    with pytest.raises(NothingToFollow):
        async with stores.watching("a"):
            pass
    await stores.change("a", public=True)
    async with stores.watching("a") as reading:
        assert await reading.names() == ["status"]
        await stores.events.add(batch(scalars([1.0], owner=Owner("other", "a"))))
        # Cursors of Elasticsearch name companies. The first one that is new in them is a reset.
        told = await reading.names()
        assert told in (["scalars"], ["reset"])
        await stores.change("a", public=False)
        assert [name for name, _ in await reading.until("end")] == ["gone", "end"]


async def test_a_project_is_all_tasks_that_lie_in_it_now(stores: Stores) -> None:
    await stores.documents.insert("projects", [{"id": "p", "company": COMPANY}])
    await stores.task("a", project="q")
    async with stores.watching(projects=("p",)) as reading:
        assert await reading.next() == []
        await stores.task("b")
        assert [(name, told["task"]) for name, told in await reading.next()] == [("status", "b")]
        await stores.events.add(batch(scalars([1.0], owner=B), scalars([1.0], owner=A)))
        assert [(name, told["task"]) for name, told in await reading.until("scalars")] == [("scalars", "b")]
        await stores.change("a", project="p")
        assert [(name, told["task"]) for name, told in await reading.next()] == [("status", "a")]
        await stores.change("b", project="q")
        assert await reading.until("gone") == [("gone", {"task": "b"})]
        await stores.events.add(batch(scalars([1.0], owner=B), scalars([1.0], owner=A)))
        assert [(name, told["task"]) for name, told in await reading.until("scalars")] == [("scalars", "a")]


async def test_a_project_that_is_not_there_cannot_be_watched(stores: Stores) -> None:
    with pytest.raises(NothingToFollow):
        async with stores.watching(projects=("p",)):
            pass


@pytest.mark.bounds(Bounds(live=LiveBounds(waiting_bytes=6000)))
async def test_who_reads_too_slowly_is_reset_and_then_told_as_before(stores: Stores) -> None:
    await stores.task("a")
    await stores.task("b")
    async with stores.watching("a") as slow, stores.watching("a") as quick:
        await slow.next()
        await quick.next()
        for n in range(6):
            columns = [scalars([1.0], iters=[n], metric="m" * 800, variant=str(v), owner=A) for v in range(4)]
            await stores.events.add(batch(*columns))
            assert ("scalars", n) in [(name, told["series"][0][3]) for name, told in await quick.until("scalars")]
        told = await slow.next()
        assert told == [("reset", {"task": None})]
        while slow.cursor != quick.cursor:
            told += await slow.next()
        assert len(told) < 6


@pytest.mark.bounds(Bounds(live=LiveBounds(waiting_bytes_in_all=6000)))
async def test_what_waits_for_all_readers_together_is_bounded(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a") as one, stores.watching("a") as other:
        await one.next()
        await other.next()
        await stores.events.add(batch(*[scalars([1.0], metric="m" * 800, variant=v, owner=A) for v in "abcd"]))
        names = [await reading.names() for reading in (one, other)]
        assert ["reset"] in names
    async with stores.watching("a") as reading:
        await reading.next()
        await stores.events.add(batch(lines(["y"], owner=A)))
        assert await reading.names() == ["log"]


@pytest.mark.bounds(Bounds(live=LiveBounds(turn_seconds=0.05)))
async def test_streams_end_with_the_credentials(stores: Stores) -> None:
    valid = True

    async def may_go_on() -> bool:
        return valid

    await stores.task("a")
    async with stores.watching("a", reader=Reader(COMPANY, "user", may_go_on)) as reading:
        await reading.next()
        assert (await reading.chunk()).stream() == ALIVE
        valid = False
        assert await reading.until("end") == [("end", {"reason": hub.CREDENTIALS})]
        with pytest.raises(StopAsyncIteration):
            await reading.chunk()


@pytest.mark.bounds(Bounds(live=LiveBounds(turn_seconds=0.05)))
async def test_a_check_of_credentials_that_fails_ends_nothing(stores: Stores) -> None:
    async def fails() -> bool:
        raise OSError("no answer")

    await stores.task("a")
    async with stores.watching("a", reader=Reader(COMPANY, "user", fails)) as reading:
        await reading.next()
        for _ in range(2):
            assert (await reading.chunk()).stream() == ALIVE


async def test_a_hub_that_closes_tells_where_to_go_on(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a") as reading:
        await reading.next()
        stores.hub.close()
        cursor, reading.cursor = reading.cursor, ""
        assert await reading.next() == [("end", {"reason": hub.STOPPING})]
        assert reading.cursor == cursor
        with pytest.raises(StopAsyncIteration):
            await reading.next()
    with pytest.raises(Closed):
        async with stores.watching("a"):
            pass


async def test_streams_are_bounded_for_a_user_and_for_all(stores: Stores) -> None:
    stores.hub = Hub(stores.events, stores.documents, Scrolls("secret"), LiveBounds(streams=4))
    await stores.task("a")
    async with AsyncExitStack() as streams:
        for _ in range(3):
            await streams.enter_async_context(stores.watching("a"))
        with pytest.raises(TooManyStreams) as refused:
            await streams.enter_async_context(stores.watching("a"))
        assert refused.value.of_user
        others = Reader(COMPANY, "other", always)
        await streams.enter_async_context(stores.watching("a", reader=others))
        with pytest.raises(TooManyStreams) as refused:
            await streams.enter_async_context(stores.watching("a", reader=others))
        assert not refused.value.of_user
    async with stores.watching("a"):
        pass
    stores.hub.close()


@pytest.mark.bounds(Bounds(live=LiveBounds(tasks=1)))
async def test_tasks_are_bounded(stores: Stores) -> None:
    await stores.task("a")
    await stores.task("b")
    with pytest.raises(TooManyTasks):
        async with stores.watching(projects=("p",)):
            pass
    async with stores.watching("a"):
        pass


async def test_cursors_are_signed_for_a_company(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a") as reading:
        await reading.next()
    for cursor in (f"{reading.cursor[:-1]}x", f"x{reading.cursor}", "?", "", ".", "é", reading.cursor[4:]):
        if cursor:
            with pytest.raises(InvalidScroll):
                async with stores.watching("a", since=cursor):
                    pass
    with pytest.raises(InvalidScroll):
        async with stores.watching("a", since=reading.cursor, reader=Reader("other", "user", always)):
            pass


@ON_EACH
async def test_a_cursor_of_another_engine_is_a_reset(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a", since=text_of(Scrolls("secret"), COMPANY, ["elsewhere", 5])) as reading:
        assert await reading.names() == ["status", "reset"]


def test_a_cursor_without_statuses_is_one_too() -> None:
    scrolls = Scrolls("secret")
    assert place_of(scrolls, COMPANY, text_of(scrolls, COMPANY, [1, 2])) == ([1, 2], None)


@pytest.mark.bounds(Bounds(live=LiveBounds(linger_seconds=0)))
async def test_a_follower_ends_when_nobody_watches(stores: Stores) -> None:
    await stores.task("a")
    async with stores.watching("a") as reading:
        await reading.next()
        (first,) = stores.hub._followers.values()
    while stores.hub._followers:  # noqa: ASYNC110  # there is no event for this
        await asyncio.sleep(0.01)
    async with stores.watching("a", since=reading.cursor) as again:
        assert await again.next() == []
        assert first not in stores.hub._followers.values()
