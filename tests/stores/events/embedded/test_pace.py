"""Merging rests now and then, the less the faster events come, and not if somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from apiserver.stores.events.embedded import pace
from apiserver.stores.events.embedded.pace import Pace
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import OWNER, batch, lines, scalars
from tests.stores.events.embedded.waiting import eventually

pytestmark = pytest.mark.anyio


class Rests(threading.Event):
    """Notes how long each rest is, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return self.is_set()


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A function that works for so many seconds."""
    worked = [0.0]
    monkeypatch.setattr("apiserver.stores.events.embedded.pace.time.thread_time", lambda: worked[0])

    def work(seconds: float) -> None:
        worked[0] += seconds

    return work


def test_a_rest_is_longer_than_the_work(work: Callable[[float], None]) -> None:
    rests = Rests()
    paced = Pace(rests, lambda: 0)
    for _ in range(5):
        work(pace.WORK_SECONDS / 2)
        paced.rest()
    assert rests.seconds == pytest.approx([pace.REST * pace.WORK_SECONDS] * 2)


@pytest.mark.parametrize(("due", "rest"), [(0.0, 3.0), (0.5, 1.5), (0.9, 0.3)])
def test_rests_are_shorter_the_more_of_the_next_work_has_come(
    work: Callable[[float], None], due: float, rest: float
) -> None:
    rests = Rests()
    paced = Pace(rests, lambda: due)
    work(1)
    paced.rest()
    assert rests.seconds == pytest.approx([rest])


def test_there_is_no_rest_once_the_next_work_is_due(work: Callable[[float], None]) -> None:
    rests, due = Rests(), 1.0
    paced = Pace(rests, lambda: due)
    work(1)
    paced.rest()
    due = 0
    paced.rest()
    assert rests.seconds == []
    work(1)
    paced.rest()
    assert rests.seconds == [pace.REST]


@pytest.fixture
async def resting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedEventStore:
    """A store whose merging thread rests for ever, in a merge of a point and a line."""
    monkeypatch.setattr(pace, "WORK_SECONDS", 0)
    monkeypatch.setattr(pace, "REST", 1e9)
    rests = threading.Event()
    rest = Pace.rest

    def noted(self: Pace) -> None:
        rests.set()
        rest(self)

    monkeypatch.setattr(Pace, "rest", noted)
    store = EmbeddedEventStore(tmp_path, merge_seconds=0)
    await store.open()
    await store.add(batch(scalars([1.0]), lines(["a line"])))
    await eventually(rests.is_set)
    return store


async def test_a_merge_that_rests_hurries_for_a_deletion(resting: EmbeddedEventStore) -> None:
    assert await resting.delete([OWNER]) == 2
    assert await resting.events_count(OWNER) == 0
    await resting.close()


async def test_a_merge_that_rests_hurries_for_the_end(resting: EmbeddedEventStore) -> None:
    await resting.close()
    await resting.open()
    assert resting.gauges()["unmerged_events"] == 0
    assert await resting.events_count(OWNER) == 2
    await resting.close()


async def test_a_merge_rests_the_less_the_more_of_the_next_has_come(tmp_path: Path) -> None:
    store = EmbeddedEventStore(tmp_path, merge_points=10, merge_seconds=10**6)
    await store.open()
    await store.add(batch(scalars([1.0] * 4)))
    assert store._parts.merger._due() == 0.4
    await store.add(batch(scalars([1.0])))
    assert store._parts.merger._due() == 0.5
    await store.close()
