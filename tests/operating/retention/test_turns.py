"""Only one deletes by retention at a time."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from apiserver.common.times import from_now
from apiserver.events.model import EventType
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.retention import turns
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.deleting import delete
from apiserver.operating.retention.run import RetentionError
from apiserver.operating.retention.turns import Taken, Turn, turn
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore, DocumentStoreBusy
from apiserver.stores.documents.query import Update
from tests.contract.document_stores import store
from tests.contract.event_stores import batch, lines
from tests.contract.plain_event_store import PlainEventStore
from tests.operating.retention.stores import LOGS, Stores

__all__ = ["store"]

pytestmark = pytest.mark.anyio


@pytest.fixture
def shared(store: DocumentStore, monkeypatch: pytest.MonkeyPatch) -> DocumentStore:
    """A store that others may use, too."""
    monkeypatch.setattr(type(store), "shared", True)
    return store


async def test_of_many_one_has_the_turn_and_then_another_one(shared: DocumentStore) -> None:
    inside, most, refused, one_is_refused = 0, 0, list[str](), asyncio.Event()

    async def work() -> None:
        nonlocal inside, most
        try:
            async with turn(shared) as held:
                inside += 1
                most = max(inside, most)
                assert held.is_held()
                await one_is_refused.wait()
                inside -= 1
        except Taken as taken:
            refused.append(str(taken))
            one_is_refused.set()

    await asyncio.gather(*(work() for _ in range(8)))
    assert most == 1
    assert 0 < len(refused) < 8
    assert all(one.startswith("retention is under way since 2") for one in refused)
    async with turn(shared):
        pass


async def test_the_turn_of_somebody_who_died_is_over_at_last(shared: DocumentStore) -> None:
    async with turn(shared) as lost:
        with pytest.raises(Taken):
            async with turn(shared):
                pass
        await shared.update("retention", {"id": "retention"}, Update(set={"until": from_now(-1)}))
        async with turn(shared):
            with pytest.raises(Taken):
                async with turn(shared):
                    pass
        assert lost.is_held()  # it has not looked


async def test_a_turn_that_ends_too_late_is_of_a_wrong_clock(shared: DocumentStore) -> None:
    """A turn is noted for ten minutes, and the clocks of servers may differ by five."""
    for minutes, is_free in ((14, False), (16, True), (365 * 24 * 60, True)):
        until = from_now(minutes * 60)
        noted = {"id": "retention", "by": "another", "begun": "", "until": until}
        await shared.update("retention", {"id": "retention"}, Update(set=noted), upsert=noted)
        if is_free:
            async with turn(shared) as held:
                assert held.is_held()
        else:
            with pytest.raises(Taken):
                async with turn(shared):
                    pass


async def test_who_lost_the_turn_notices(shared: DocumentStore) -> None:
    async with turn(shared, RetentionBounds(again_seconds=0.01)) as lost:
        await shared.update("retention", {"id": "retention"}, Update(set={"by": "another"}))
        async with asyncio.timeout(60):
            while lost.is_held():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_who_lost_the_turn_deletes_nothing_any_more(
    shared: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = PlainEventStore()
    stores = Stores(events, shared)
    await stores.task()
    await events.add(batch(lines(["old"], timestamps=[0])))
    monkeypatch.setattr(Turn, "is_held", lambda turn: False)
    files = cast(FileDeletions, stores.files)
    with pytest.raises(RetentionError, match="somebody else deletes now"):
        await delete(Settings(retention=(LOGS,)), events, shared, files, lambda gone: None, gently=True)
    assert await stores.count(EventType.LOG) == 1
    monkeypatch.undo()
    assert await delete(Settings(retention=(LOGS,)), events, shared, files, lambda gone: None, gently=True) == []
    assert await stores.count(EventType.LOG) == 0


async def test_a_turn_that_cannot_be_put_off_for_long_is_not_held(
    shared: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with turn(shared, RetentionBounds(turn_seconds=0.2, again_seconds=0.01)) as held:

        async def away(*how: Any, **more: Any) -> int:
            raise DocumentStoreBusy("it is away")

        with monkeypatch.context() as patch:
            patch.setattr(shared, "update", away)
            async with asyncio.timeout(60):
                while held.is_held():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)


async def test_the_last_run_is_known_also_while_another_one_goes_on(shared: DocumentStore) -> None:
    assert await turns.last(shared) == {}
    async with turn(shared):
        assert await turns.last(shared) == {}
        await turns.note(shared, events=7, tasks=2, failures=0)
    known = await turns.last(shared)
    assert (known["events"], known["tasks"], known["failures"]) == (7, 2, 0)
    async with turn(shared):
        assert await turns.last(shared) == known


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_store_of_one_process_waits_for_nobody_who_died(store: DocumentStore) -> None:
    assert not store.shared
    await store.insert("retention", [{"id": "retention", "by": "who died", "begun": "", "until": from_now(1000)}])
    async with turn(store) as held:
        assert held.is_held()
