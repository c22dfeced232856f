"""How much is kept of each owner, on every engine."""

from __future__ import annotations

import pytest

from apiserver.events.model import EventType, Owner
from apiserver.stores.events.usage import Used
from tests.contract.event_stores import OWNER, Case, batch, case, lines, sample, scalars

__all__ = ["case"]  # a fixture

pytestmark = pytest.mark.anyio

MODEL, FOREIGN = Owner("company", "task", is_model=True), Owner("other", "task")


async def test_usage_is_told_by_owner_and_type(case: Case) -> None:
    store = case.store
    assert list((await store.usage("company")).rows()) == []
    for n in range(3):
        await store.add(
            batch(
                scalars([0.0, 1.0], iters=[2 * n, 2 * n + 1]),
                scalars([1.0], iters=[n], variant="test"),
                scalars([1.0], iters=[n], owner=MODEL),
                scalars([1.0], iters=[n], owner=FOREIGN),
                lines([f"line {n}"], timestamps=[n]),
                sample(n),
                sample(n, type=EventType.IMAGE),
            )
        )
        if n < 2:
            await case.settle()
    usage = await store.usage("company")
    found = {(one.owner, one.type): one for one in usage.rows()}
    expected = {
        (OWNER, EventType.SCALAR): (2, 9),
        (OWNER, EventType.LOG): (0, 3),
        (OWNER, EventType.PLOT): (1, 3),
        (OWNER, EventType.IMAGE): (1, 3),
        (MODEL, EventType.SCALAR): (1, 3),
    }
    assert {key: one.series for key, one in found.items()} == {key: series for key, (series, _) in expected.items()}
    for key, (_, events) in expected.items():
        assert events <= found[key].events <= (2 * events if usage.estimated else events)
    assert all(one.bytes > 0 for one in found.values())
    assert [one.owner for one in (await store.usage("other")).rows()] == [FOREIGN]


async def test_what_is_deleted_is_not_used(case: Case) -> None:
    other = Owner("company", "other")
    await case.store.add(batch(scalars([0.0]), sample(1), scalars([0.0], owner=other)))
    await case.settle()
    await case.store.delete([OWNER], [EventType.SCALAR])
    await case.store.delete([other])
    assert [one[:4] for one in (await case.store.usage("company")).rows()] == [Used(OWNER, EventType.PLOT, 1, 1, 0)[:4]]
