"""Merging rests now and then, the less the faster events come, and not if somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
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


class Paced:
    """A thread that works at a pace."""

    def __init__(self, due: Callable[[], float]) -> None:
        self._worked = 0.0
        self._rests = Rests()
        self._pace = Pace(self._rests, due, clock=lambda: self._worked)

    def work(self, seconds: float) -> None:
        """Work for so long, and rest if it is time."""
        self._worked += seconds
        self._pace.rest()

    @property
    def rests(self) -> list[float]:
        """How long each rest was."""
        return self._rests.seconds


def test_a_rest_is_longer_than_the_work() -> None:
    paced = Paced(lambda: 0)
    for _ in range(5):
        paced.work(BOUNDS.work_seconds / 2)
    assert paced.rests == pytest.approx([BOUNDS.rest * BOUNDS.work_seconds] * 2)


@pytest.mark.parametrize(("due", "rest"), [(0.0, 3.0), (0.5, 1.5), (0.9, 0.3)])
def test_rests_are_shorter_the_more_of_the_next_work_has_come(due: float, rest: float) -> None:
    paced = Paced(lambda: due)
    paced.work(1)
    assert paced.rests == pytest.approx([rest])


def test_there_is_no_rest_once_the_next_work_is_due() -> None:
    due = 1.0
    paced = Paced(lambda: due)
    paced.work(1)
    due = 0
    paced.work(0)
    assert paced.rests == []
    paced.work(1)
    assert paced.rests == [BOUNDS.rest]


@pytest.fixture
async def resting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedEventStore:
    """A store whose merging thread rests for ever, in a merge of a point and a line."""
    rests = threading.Event()
    rest = Pace.rest

    def noted(self: Pace) -> None:
        rests.set()
        rest(self)

    monkeypatch.setattr(Pace, "rest", noted)
    store = EmbeddedEventStore(tmp_path, merge_seconds=0, bounds=EmbeddedBounds(work_seconds=0, rest=1e9))
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
