"""What every event store tells of changes since a cursor: nothing is left out, whatever happened in between."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from apiserver.events.changes import Changes, ChangesQuery, Cursor, OwnerChanges
from apiserver.events.model import SAMPLE_TYPES, EventType, MetricSelection, Owner, SeriesName
from apiserver.events.queries import Range, SeriesQuery
from apiserver.stores.events.base import EventStore, EventStoreError
from tests.contract.event_stores import ENGINE_STATES, LOGS, OWNER, Case, batch, case, lines, sample, scalars

__all__ = ["case"]

pytestmark = pytest.mark.anyio

OTHER = Owner("company", "other task")
ELSEWHERE = Owner("other company", "task")
OWNERS = (OWNER, OTHER, ELSEWHERE)
LOSS = SeriesName(EventType.SCALAR, "loss", "train")
PLOT = SeriesName(EventType.PLOT, "plots", "roc")

#: Seconds that a test waits for what must come.
PATIENCE = 120


async def changes(store: EventStore, since: Cursor, *owners: Owner, most: int = 100) -> Changes:
    """The changes since a cursor that was given to a reader as text."""
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(since))
    return await store.changes(ChangesQuery(owners or OWNERS, sent, most))


async def now(store: EventStore) -> Cursor:
    found = await changes(store, None)
    assert found.owners == {}
    return found.cursor


def covers(found: Changes, expected: dict[Owner, OwnerChanges]) -> bool:
    """Whether these owners were told, and no others, with these changes or more."""
    return found.owners.keys() == expected.keys() and all(
        told.everything
        or (
            told.log_lines >= expected[owner].log_lines
            and all(
                told.series[name].least <= ends.least and ends.greatest <= told.series[name].greatest
                for name, ends in expected[owner].series.items()
            )
        )
        for owner, told in found.owners.items()
    )


def tells(case: Case, found: Changes, expected: dict[Owner, OwnerChanges]) -> bool:
    """Whether just these changes were told. Who settles by itself may tell more of these owners."""
    return found.owners == expected or (case.settles_by_itself and covers(found, expected))


async def test_nothing_has_changed_since_now(case: Case) -> None:
    cursor = await now(case.store)
    assert (await changes(case.store, cursor)).owners == {}
    await case.store.add(batch(scalars([1.0]), lines(["a"]), sample(0)))
    cursor = await now(case.store)
    await case.settle()
    found = await changes(case.store, cursor, OWNER)
    assert found.owners == {}
    await case.settle()
    assert (await changes(case.store, found.cursor, OWNER)).owners == {}


async def test_series_have_the_range_of_what_came(case: Case) -> None:
    await case.store.add(batch(scalars([1.0] * 5), sample(3)))
    await case.settle()
    cursor = await now(case.store)
    await case.store.add(
        batch(
            scalars([1.0, 2.0], iters=[7, 5]),
            scalars([3.0], iters=[-(2**63)], variant="valid"),
            scalars([4.0], iters=[2**63 - 1], variant="valid", worker="other"),
            scalars([5.0], owner=OTHER),
            *(sample(iter, type=type) for type in SAMPLE_TYPES for iter in (4, 9)),
            lines(["a", "b"]),
        )
    )
    await case.store.add(batch(scalars([1.0], iters=[6]), lines(["c"])))
    expected = {
        OWNER: OwnerChanges(
            {
                LOSS: Range(5, 7),
                LOSS._replace(variant="valid"): Range(),
                **{PLOT._replace(type=type): Range(4, 9) for type in SAMPLE_TYPES},
            },
            3,
        ),
        OTHER: OwnerChanges({LOSS: Range(0, 0)}),
    }
    assert tells(case, await changes(case.store, cursor), expected)


async def test_what_is_overwritten_has_changed(case: Case) -> None:
    await case.store.add(batch(scalars([1.0] * 50), sample(3), sample(4)))
    await case.settle()
    cursor = await now(case.store)
    await case.store.add(batch(scalars([2.0], iters=[17]), sample(3, document=b"{}")))
    expected = {OWNER: OwnerChanges({LOSS: Range(17, 17), PLOT: Range(3, 3)})}
    assert tells(case, await changes(case.store, cursor), expected)


async def test_thinned_scalars_have_changed(case: Case) -> None:
    await case.store.add(batch(scalars([1.0] * 50), scalars([1.0] * 50, owner=OTHER)))
    await case.settle()
    cursor = await now(case.store)
    assert await case.store.thin_scalars(SeriesQuery(OWNER, EventType.SCALAR), 12) == 46
    found = await changes(case.store, cursor)
    assert found.owners == {OWNER: OwnerChanges(everything=True)}


async def test_changes_are_told_after_what_settles_the_store_too(case: Case) -> None:
    """Some stores tell more then, but of no other owner."""
    await case.store.add(batch(scalars([1.0] * 5), scalars([1.0], owner=OTHER)))
    cursor = await now(case.store)
    await case.store.add(batch(scalars([1.0], iters=[9]), sample(2), lines(["a"])))
    await case.settle()
    found = await changes(case.store, cursor, OWNER, OTHER)
    assert covers(found, {OWNER: OwnerChanges({LOSS: Range(9, 9), PLOT: Range(2, 2)}, 1)})
    await case.store.add(batch(scalars([1.0], iters=[10])))
    await case.settle()
    found = await changes(case.store, cursor, OWNER, OTHER)
    assert covers(found, {OWNER: OwnerChanges({LOSS: Range(9, 10), PLOT: Range(2, 2)}, 1)})


async def test_each_owner_is_told_to_who_asks_for_it(case: Case) -> None:
    cursor = await now(case.store)
    await case.store.add(batch(*(scalars([1.0], owner=owner) for owner in OWNERS)))
    assert (await changes(case.store, cursor, OTHER)).owners.keys() == {OTHER}
    assert (await changes(case.store, cursor)).owners.keys() == set(OWNERS)
    assert (await changes(case.store, cursor, OWNER._replace(is_model=True))).owners == {}


async def test_further_changes_are_told_since_the_next_cursor(case: Case) -> None:
    cursor = await now(case.store)
    for n in range(3):
        await case.store.add(batch(scalars([1.0], iters=[n])))
        found = await changes(case.store, cursor)
        assert tells(case, found, {OWNER: OwnerChanges({LOSS: Range(n, n)})})
        cursor = found.cursor


async def test_deletions_change_everything_of_the_owner(case: Case) -> None:
    await case.store.add(batch(*(scalars([1.0], owner=owner) for owner in OWNERS), sample(1), lines(["a"])))
    await case.settle()
    cursor = await now(case.store)
    await case.store.delete([OTHER])
    found = await changes(case.store, cursor)
    assert found.owners == {OTHER: OwnerChanges(everything=True)}
    await case.store.add(batch(scalars([1.0])))
    await case.store.delete([OWNER], [EventType.PLOT])
    assert (await changes(case.store, found.cursor)).owners == {OWNER: OwnerChanges(everything=True)}
    cursor = await now(case.store)
    assert (await changes(case.store, cursor)).owners == {}
    await case.store.delete_logs(LOGS, None, [MetricSelection("console")])
    await case.store.delete_logs(LOGS, None)
    await case.settle()
    assert (await changes(case.store, cursor, OWNER)).owners == {OWNER: OwnerChanges(everything=True)}
    assert (await changes(case.store, await now(case.store))).owners == {}
    await case.store.add(batch(sample(1), sample(2)))
    await case.settle()
    cursor = await now(case.store)
    await case.store.delete_samples(SeriesQuery(OWNER, EventType.PLOT), Range.of(2, None))
    assert (await changes(case.store, cursor, OWNER)).owners == {OWNER: OwnerChanges(everything=True)}


async def test_a_deleted_owner_that_comes_back_has_changed(case: Case) -> None:
    await case.store.add(batch(scalars([1.0] * 9)))
    await case.settle()
    cursor = await now(case.store)
    await case.settle()
    await case.store.delete([OWNER])
    await case.store.add(batch(scalars([1.0])))
    await case.settle()
    assert (await changes(case.store, cursor, OWNER)).owners == {OWNER: OwnerChanges(everything=True)}


async def test_a_batch_that_is_sent_again_is_told_perhaps_but_its_lines_are_not_lost(case: Case) -> None:
    sent = batch(scalars([1.0]), lines(["a"], digest=b"1"))
    cursor = await now(case.store)
    await case.store.add(sent)
    await case.store.add(sent)
    found = (await changes(case.store, cursor)).owners
    assert found[OWNER].series == {LOSS: Range(0, 0)}
    assert found[OWNER].log_lines >= 1


async def test_owners_beyond_the_greatest_number_of_series_have_changed_wholly(case: Case) -> None:
    cursor = await now(case.store)
    await case.store.add(
        batch(
            *(scalars([1.0], variant=str(n)) for n in range(3)), *(scalars([1.0], owner=owner) for owner in OWNERS[1:])
        )
    )
    for most in range(1, 7):
        found = (await changes(case.store, cursor, most=most)).owners
        assert found.keys() == set(OWNERS)
        assert sum(len(one.series) for one in found.values()) <= most
        assert all(one.everything or one.series for one in found.values())
    assert not any(one.everything for one in found.values())


@pytest.mark.parametrize("cursor", [["another engine", 1], [], 1.5, ["embedded", 0, 2**62, 0, 0]])
async def test_a_cursor_of_another_store_says_nothing(case: Case, cursor: Cursor) -> None:
    await case.store.add(batch(scalars([1.0])))
    found = await changes(case.store, cursor)
    assert found.owners == dict.fromkeys(OWNERS, OwnerChanges(everything=True))
    assert (await changes(case.store, found.cursor)).owners == {}


async def test_a_cursor_outlives_a_restart(case: Case) -> None:
    await case.store.add(batch(scalars([1.0] * 3), scalars([1.0], owner=OTHER)))
    await case.settle()
    cursor = await now(case.store)
    await case.store.add(batch(scalars([1.0], iters=[5])))
    await case.store.close()
    await case.store.open()
    found = await changes(case.store, cursor, OWNER, OTHER)
    assert covers(found, {OWNER: OwnerChanges({LOSS: Range(5, 5)})})
    await case.store.add(batch(scalars([1.0], iters=[6])))
    found = await changes(case.store, found.cursor, OWNER, OTHER)
    assert tells(case, found, {OWNER: OwnerChanges({LOSS: Range(6, 6)})})


async def test_a_watch_tells_at_once_and_then_what_comes(case: Case) -> None:
    cursor = await now(case.store)
    await case.store.add(batch(scalars([1.0])))
    async with asyncio.timeout(PATIENCE), aclosing(case.store.watch(ChangesQuery([OWNER, OTHER], cursor))) as watch:
        assert tells(case, await anext(watch), {OWNER: OwnerChanges({LOSS: Range(0, 0)})})
        await case.store.add(batch(scalars([1.0], owner=ELSEWHERE)))
        await case.store.add(batch(scalars([1.0], iters=[1], owner=OTHER)))
        assert tells(case, await anext(watch), {OTHER: OwnerChanges({LOSS: Range(1, 1)})})
        waiting = asyncio.ensure_future(anext(watch))
        await case.store.add(batch(scalars([1.0], iters=[2])))
        found = await waiting
        assert tells(case, found, {OWNER: OwnerChanges({LOSS: Range(2, 2)})})
        await case.store.delete([OTHER])
        assert (await anext(watch)).owners == {OTHER: OwnerChanges(everything=True)}
    assert (await changes(case.store, found.cursor, OWNER, OTHER)).owners == {OTHER: OwnerChanges(everything=True)}


async def test_what_comes_while_nobody_waits_is_told_later(case: Case) -> None:
    told = {owner: OwnerChanges() for owner in OWNERS[:2]}
    async with asyncio.timeout(PATIENCE), aclosing(case.store.watch(ChangesQuery(OWNERS))) as watch:
        assert (await anext(watch)).owners == {}
        for n in range(4):
            await case.store.add(batch(scalars([1.0], iters=[n], owner=OWNERS[n % 2])))
        while not all(told.values()) or [told[owner].series[LOSS].greatest for owner in told] != [2, 3]:
            for owner, found in (await anext(watch)).owners.items():
                for series, ends in found.series.items():
                    told[owner].widen(series, ends)
    assert [told[owner].series[LOSS].least for owner in told] == [0, 1]


async def test_many_may_watch_the_same_owner(case: Case) -> None:
    async with (
        asyncio.timeout(PATIENCE),
        aclosing(case.store.watch(ChangesQuery([OWNER, OWNER]))) as one,
        aclosing(case.store.watch(ChangesQuery([OWNER, OTHER]))) as other,
    ):
        assert [(await anext(watch)).owners for watch in (one, other)] == [{}, {}]
        both = asyncio.gather(anext(one), anext(other))
        await asyncio.sleep(0)
        await case.store.add(batch(scalars([1.0])))
        assert [found.owners.keys() for found in await both] == [{OWNER}, {OWNER}]


@pytest.mark.parametrize("case", ENGINE_STATES, indirect=True)
async def test_a_watch_ends_with_its_store(case: Case) -> None:
    async with asyncio.timeout(PATIENCE), aclosing(case.store.watch(ChangesQuery(OWNERS))) as watch:
        await anext(watch)
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        await case.store.close()
        with pytest.raises(EventStoreError, match="not open"):
            await waiting
