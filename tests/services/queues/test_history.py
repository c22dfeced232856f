"""Charts of queues, against what they held."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from apiserver.common.times import now_ms, utc_text
from apiserver.events.model import EventType
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.services.history.store import History, Subject
from apiserver.services.queues import entries as queue_entries
from apiserver.services.queues import history as queue_history
from apiserver.services.queues.history import ADDED, LENGTH, WAITING
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStoreError
from tests.harness import Api

pytestmark = pytest.mark.anyio

#: Epoch seconds, three hours ago, at which a step of a minute begins.
START = now_ms() // 60_000 * 60 - 3 * 3600

Chart = list[tuple[int, float, int]]


async def new_queue(api: Api, name: str, **fields: Any) -> str:
    made: str = (await api.call("queues.create", {"name": name, **fields}))["id"]
    return made


async def new_task(api: Api) -> str:
    made: str = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
    return made


async def held(api: Api, queue: str, at: int, waiting: float, length: int) -> None:
    """Have a queue held so much at START + `at` seconds."""
    subject = Subject(api.company, "queue", queue)
    added = {ADDED: START + at - waiting} if length else {}
    await api.backend.history.record(subject, (START + at) * 1000, {WAITING: waiting, LENGTH: length, **added})


async def charts(api: Api, *queues: str, **request: Any) -> dict[str, Chart]:
    """By queue: the minute after START, the waiting and the length of each step of ten minutes."""
    dates = {"from_date": START, "to_date": START + 600, "interval": 60}
    chosen = {"queue_ids": queues} if queues else {}
    answer = await api.call("queues.get_queue_metrics", {**dates, **chosen, **request})
    return {
        chart["queue"]: [
            ((date // 1000 - START) // 60, waiting, length)
            for date, waiting, length in zip(
                chart["dates"], chart["avg_waiting_times"], chart["queue_lengths"], strict=True
            )
        ]
        for chart in answer["queues"]
    }


async def test_a_step_has_the_most_that_a_queue_held(api: Api) -> None:
    first, second, third = [await new_queue(api, name) for name in ("a", "b", "c")]
    for at, waiting, length in ((5, 1.5, 4), (50, 0.5, 6), (119, 8, 2), (600, 3, 1), (601, 9, 9), (-1, 9, 9)):
        await held(api, first, at, waiting, length)
    await held(api, second, 60, 0, 0)
    assert await charts(api, first, second, third, "nothing") == {
        first: [(0, 0.5 + 10, 6), (1, 8 + 1, 2), (10, 3, 1)],
        second: [(1, 0, 0)],
    }


async def test_all_queues_together_hold_what_they_held_before(api: Api) -> None:
    first, second, hidden = [await new_queue(api, name) for name in ("a", "b", "c")]
    await api.call("queues.update", {"queue": hidden, "system_tags": ["k8s-glue"]})
    await held(api, first, -1800, 30, 3)  # half an hour before the chart
    await held(api, first, 130, 10, 1)
    await held(api, second, 65, 6, 5)
    await held(api, second, 310, 0, 0)
    await held(api, hidden, 400, 100, 100)
    expected = [(1, (1950 * 3 + 61 * 5) / 8, 8), (2, (60 + 121 * 5) / 6, 6), (5, 240, 1)]  # as each minute ends
    assert await charts(api) == {"total": expected}
    assert (await charts(api, search_hidden=True))["total"][-1] == (6, (300 + 120 * 100) / 101, 101)
    assert await charts(api, from_date=START - 90_000, to_date=START - 86_400) == {}


class Clock:
    """What queues take for the present."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = 0.0
        """Seconds after START."""
        monkeypatch.setattr(queue_history, "now_ms", lambda: int((START + self.at) * 1000))
        monkeypatch.setattr(queue_entries, "utc_now", lambda: utc_text(datetime.fromtimestamp(START + self.at, UTC)))


@pytest.mark.test
async def test_tasks_wait_on_while_nothing_changes(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, other = [await new_queue(api, name) for name in ("a", "b", "c")]
    clock = Clock(monkeypatch)
    for clock.at in (240, 241, 242):
        await api.call("tasks.enqueue", {"task": await new_task(api), "queue": first})
    for clock.at in range(300, 1740, 60):  # another queue is asked for something all the time
        await charts(api, other, refresh=True)
    clock.at = 1740
    whole = {"to_date": START + clock.at, "interval": 60}
    expected = [(minute, 60 * minute + 60 - 241, 3) for minute in range(5, 29)]
    (total,) = (await charts(api, **whole)).values()
    assert total == [(4, 59, 3), *expected, (29, 1740 - 241, 3)]
    assert await charts(api, first, **whole) == {first: [(4, 59, 3), (29, 1740 - 241, 3)]}
    # The one that waits longest is taken: the others have waited for a second less on average.
    clock.at = 1750
    await api.call("queues.get_next_task", {"queue": first})
    later = {"from_date": START + 1800, "to_date": START + 1920, "interval": 60}
    clock.at = 1920
    assert (await charts(api, first, **later)) == {first: [(32, 1920 - 241.5, 2)]}
    # Nothing changed for longer than charts look back: what a queue holds now, it held all the time.
    clock.at = 10_000
    await charts(api, second, refresh=True)
    clock.at = 10_100
    late = {"from_date": START + 9960, "to_date": START + 10_100, "interval": 60}
    (total,) = (await charts(api, **late)).values()
    assert total == [(166, 10_020 - 241.5, 2), (168, 10_100 - 241.5, 2)]


def now_until(seconds: float = 0) -> dict[str, Any]:
    """The dates of a chart that ends so many seconds from now."""
    now = datetime.now(UTC).timestamp() + seconds
    return {"from_date": now - 3600, "to_date": now, "interval": 100}


async def test_each_change_is_noted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, other = await new_queue(api, "a"), await new_queue(api, "b")
    subject = Subject(api.company, "queue", queue)
    clock = Clock(monkeypatch)
    tasks = [await new_task(api) for _ in range(4)]
    for clock.at, task in enumerate(tasks):
        await api.call("tasks.enqueue", {"task": task, "queue": queue})
    assert await _values(api, subject) == [1, 2, 3, 4]
    clock.at = 4
    await api.call("queues.get_next_task", {"queue": queue})
    clock.at = 5
    await api.call("queues.remove_task", {"queue": queue, "task": tasks[1]})
    clock.at = 6
    await api.call("tasks.enqueue", {"task": tasks[2], "queue": other})
    clock.at = 7
    await api.call("queues.clear_queue", {"queue": queue})
    clock.at = 8
    await api.call("queues.clear_queue", {"queue": queue})
    assert await _values(api, subject) == [1, 2, 3, 4, 3, 2, 1, 0]
    # Before the second was removed, both waited: since 2 s and 3 s. Afterwards the last one waited for 7 − 3 s.
    assert await charts(api, queue, other) == {queue: [(0, 3, 4)], other: [(0, 2, 1)]}


async def test_of_two_changes_in_one_millisecond_the_later_is_noted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = await new_queue(api, "a")
    subject = Subject(api.company, "queue", queue)
    Clock(monkeypatch)
    for _ in range(3):
        await api.call("tasks.enqueue", {"task": await new_task(api), "queue": queue})
    await api.call("queues.get_next_task", {"queue": queue})
    assert await _values(api, subject) == [2]


async def _values(api: Api, subject: Subject) -> list[float]:
    """The lengths that were noted, by their times."""
    owners = [owner async for owner in api.backend.events.owners()]
    found: list[float] = []
    weeks = await api.backend.history.weeks(subject.company, "queue", start=0, stop=now_ms())
    ids = {week["id"].partition("/")[2] for week in weeks if week["name"] == subject.name}
    for owner in (owner for owner in owners if owner.id.removeprefix("history/") in ids):
        points = await api.backend.events.scalar_points(SeriesQuery(owner, EventType.SCALAR), PageQuery(100))
        length = points.names.index(LENGTH)
        found += points.values[points.series == length].tolist()
    return found


async def test_a_chart_of_now_has_what_a_queue_holds_now(api: Api) -> None:
    queue, task = await new_queue(api, "a"), await new_task(api)
    assert [length for *_, length in (await charts(api, queue, **now_until()))[queue]] == [0]
    await api.call("tasks.enqueue", {"task": task, "queue": queue})
    earlier = datetime.fromtimestamp(now_ms() / 1000 - 50, UTC).isoformat(timespec="microseconds")
    entry = [{"task": task, "added": earlier}]
    await api.backend.documents.update("queues", {"id": queue}, Update(set={"entries": entry}))
    for dates in (now_until(), now_until(-20), now_until(20)):
        *_, (_, waiting, length) = (await charts(api, queue, **dates))[queue]
        assert (length, 49 < waiting < 80) == (1, True)
    *_, (_, waiting, length) = (await charts(api, **now_until()))["total"]
    assert (length, 49 < waiting < 80) == (1, True)
    assert len((await charts(api, queue, **now_until(-2000))).get(queue, [])) == 0


async def test_refreshing_notes_what_queues_hold(api: Api) -> None:
    queue = await new_queue(api, "a")
    subject = Subject(api.company, "queue", queue)
    await charts(api, queue)
    assert await _values(api, subject) == []
    await charts(api, queue, refresh=True)
    assert await _values(api, subject) == [0]


async def test_only_the_next_task_is_taken_when_it_is_named(api: Api) -> None:
    queue = await new_queue(api, "a")
    first, second = await new_task(api), await new_task(api)
    for task in (first, second):
        await api.call("tasks.enqueue", {"task": task, "queue": queue})
    assert await api.call("queues.get_next_task", {"queue": queue, "task": second}) == {}
    taken = await api.call("queues.get_next_task", {"queue": queue, "task": first})
    assert taken["entry"]["task"] == first


async def test_a_task_may_be_added_without_leaving_its_queue(api: Api) -> None:
    first, second, task = await new_queue(api, "a"), await new_queue(api, "b"), await new_task(api)
    await api.call("tasks.enqueue", {"task": task, "queue": first})
    await api.call("queues.add_task", {"queue": second, "task": task, "update_execution_queue": False})
    assert (await api.call("tasks.get_by_id", {"task": task}))["task"]["execution"]["queue"] == first
    assert [(await api.call("queues.get_num_entries", {"queue": queue}))["num"] for queue in (first, second)] == [1, 1]


@pytest.mark.test
@pytest.mark.parametrize("error", [EventStoreError, DocumentStoreError])
@pytest.mark.own_api
async def test_what_was_taken_is_answered_also_when_it_cannot_be_noted(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    queue, task = await new_queue(api, "a"), await new_task(api)
    await api.call("tasks.enqueue", {"task": task, "queue": queue})

    async def refuse(*arguments: object) -> None:
        raise error("no room")

    monkeypatch.setattr(History, "record", refuse)
    assert (await api.call("queues.get_next_task", {"queue": queue}))["entry"]["task"] == task
