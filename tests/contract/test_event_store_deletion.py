"""What every event store deletes up to a cursor: nothing that came since."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from apiserver.events.changes import ChangesQuery, Cursor
from apiserver.events.model import SAMPLE_TYPES, EventType, MetricSelection, Owner
from apiserver.events.queries import EVERYWHERE, Range, SeriesQuery
from apiserver.stores.events.codec.points import Points, WholePoints
from tests.contract.event_stores import LOGS, OWNER, PLOTS, SCALARS, Case, batch, case, lines, sample, scalars, select

__all__ = ["case"]

pytestmark = pytest.mark.anyio

OTHER = Owner("company", "other task")


def some(type: EventType, first: int = 0, owner: Owner = OWNER) -> list[Any]:
    """Two events of different series."""
    if type is EventType.SCALAR:
        return [scalars([1.0], iters=[first], variant=variant, owner=owner) for variant in "ab"]
    if type is EventType.LOG:
        return [lines([f"{first}"], timestamps=[first], variant=variant, owner=owner) for variant in "ab"]
    return [sample(first, type=type, variant=variant, owner=owner) for variant in "ab"]


async def now(case: Case) -> Cursor:
    cursor = (await case.store.changes(ChangesQuery([OWNER]))).cursor
    return msgspec.msgpack.decode(msgspec.msgpack.encode(cursor))


async def delete(case: Case, type: EventType, up_to: Cursor, *variants: str) -> int:
    """Delete all of a type, or samples and lines of some series."""
    metric = "console" if type is EventType.LOG else "plots"
    series = select(SeriesQuery(OWNER, type), *([MetricSelection(metric, variants)] if variants else []))
    if type is EventType.SCALAR:
        return await case.store.delete_scalars(OWNER, up_to)
    if type is EventType.LOG:
        return await case.store.delete_logs(series, None, (), up_to)
    return await case.store.delete_samples(series, EVERYWHERE, None, up_to)


@pytest.mark.parametrize("type", EventType, ids=str)
async def test_all_that_was_there_goes_if_nothing_of_it_came_since(case: Case, type: EventType) -> None:
    """Events of other owners do not matter."""
    others = [one for other in EventType if other is not type for one in some(other)]
    await case.store.add(batch(*some(type), *others, *some(type, 1)))
    await case.settle()
    cursor = await now(case)
    await case.store.add(batch(*some(type, owner=OTHER)))
    await case.settle()
    assert await delete(case, type, cursor) == 4
    await case.settle()
    assert await case.store.events_count(OWNER, [type]) == 0
    assert await case.store.events_count(OWNER) == 2 * (len(EventType) - 1)
    assert await case.store.events_count(OTHER) == 2
    assert await delete(case, type, await now(case)) == 0
    await case.store.add(batch(*some(type)))
    assert await case.store.events_count(OWNER, [type]) == 2


@pytest.mark.parametrize("type", EventType, ids=str)
@pytest.mark.parametrize("is_settled", [True, False])
async def test_what_came_since_stays(case: Case, type: EventType, is_settled: bool) -> None:
    await case.store.add(batch(*some(type)))
    await case.settle()
    cursor = await now(case)
    await case.store.add(batch(*some(type, 1)))
    if is_settled:
        await case.settle()
    deleted = await delete(case, type, cursor)
    assert deleted in (0, 2)
    await case.settle()
    assert await case.store.events_count(OWNER, [type]) == 4 - deleted
    assert await delete(case, type, await now(case)) == 4 - deleted


@pytest.mark.parametrize("type", [EventType.LOG, *SAMPLE_TYPES], ids=str)
async def test_several_deletions_up_to_one_cursor_delete_all(case: Case, type: EventType) -> None:
    """A deletion is nothing that comes."""
    await case.store.add(batch(*some(type)))
    await case.settle()
    cursor = await now(case)
    assert [await delete(case, type, cursor, variant) for variant in "ab"] == [1, 1]
    assert await case.store.events_count(OWNER) == 0


async def test_what_came_after_a_deletion_stays(case: Case) -> None:
    cursor = await now(case)
    await case.store.delete([OWNER])
    await case.store.add(batch(*some(EventType.SCALAR), *some(EventType.LOG), *some(EventType.PLOT)))
    await case.settle()
    assert [await delete(case, type, cursor) for type in (EventType.SCALAR, EventType.LOG, EventType.PLOT)] == [0] * 3
    assert await case.store.events_count(OWNER) == 6


async def test_what_a_copy_brought_since_stays(case: Case) -> None:
    await case.store.add(batch(scalars([1.0]), lines(["a"])))
    await case.settle()
    cursor = await now(case)
    column = np.array([1], np.int64)
    points = Points(column, np.array([2.0]), column, np.zeros_like(column), column)
    await case.store.put_points(OWNER, [WholePoints(("loss", "train"), points, ["worker"])])
    assert await case.store.delete_scalars(OWNER, cursor) == 0
    assert await case.store.events_count(OWNER, [EventType.SCALAR]) == 2


async def test_nothing_goes_by_a_cursor_that_is_not_understood(case: Case) -> None:
    await case.store.add(batch(scalars([1.0]), lines(["a"]), sample(0)))
    await case.settle()
    assert await case.store.delete_scalars(OWNER, ["elsewhere", 7]) == 0
    assert await case.store.delete_logs(LOGS, None, (), ["elsewhere", 7]) == 0
    assert await case.store.delete_samples(PLOTS, Range(0, 9), None, ["elsewhere", 7]) == 0
    assert await case.store.events_count(OWNER) == 3
    assert len(await case.store.scalar_stats(SCALARS)) == 1
