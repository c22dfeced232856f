"""Old scalars that a rule thins, instead of deleting them."""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.operating.retention import archive, due
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.deleting import Amounts
from apiserver.settings.retention_rules import RetentionRule
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.contract.event_stores import OWNER, SCALARS, Case, batch, case, lines, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.contract.plain_points import stay_of
from tests.operating.retention.stores import DAY, NOW, Stores, stores_in
from tests.operating.retention.test_archive import CutShort, all_rows, names
from tests.operating.retention.test_run import Meanwhile
from tests.stores.events.random_events import values
from tests.stores.events.whole import points_of

__all__ = ["case"]

pytestmark = pytest.mark.anyio

OLD, YOUNG = NOW - 91 * DAY, NOW - 89 * DAY
THINNED = RetentionRule(("scalars",), "90 d", then="12 points")


def curve(count: int = 100, at: int = OLD, **how: Any) -> Any:
    """A curve whose points are a day apart, the newest of them at a time."""
    times = [at - (count - 1 - n) * DAY for n in range(count)]
    return scalars([math.sin(n) for n in range(count)], timestamps=times, **how)


async def iters(stores: Stores, owner: Owner = OWNER) -> list[int]:
    found = await points_of(stores.events, SeriesQuery(owner, EventType.SCALAR))
    return [row[0] for row in found.get(("loss", "train"), [])]


async def test_old_scalars_are_thinned_once_and_then_stay(stores: Stores) -> None:
    await stores.task()
    young = await stores.task("young")
    await stores.events.add(batch(curve(), curve(11, metric="short"), curve(owner=young, at=YOUNG)))
    planned = await stores.would_go(THINNED)
    assert len(await iters(stores)) == 100
    (gone,) = await stores.run(THINNED)
    assert [gone] == planned
    assert (gone.task, gone.keep, gone.newest) == ("task", "90 d, then 12 points", OLD - DAY)
    left = await iters(stores)
    assert 6 <= len(left) <= 12
    assert gone.events == 100 - len(left)
    assert len(await iters(stores, young)) == 100
    assert await stores.count(EventType.SCALAR) == len(left) + 11
    for now in (NOW, NOW + 5000 * DAY):
        assert [one.task for one in await stores.run(THINNED, now=now)] == (["young"] if now > NOW else [])
    assert await iters(stores) == left


@pytest.mark.test
async def test_the_archive_has_just_what_went_on_every_engine(case: Case, tmp_path: Path) -> None:
    async with stores_in(tmp_path / "data", case.store) as stores:
        await stores.task()
        groups = [curve(60), curve(50, variant="valid", worker="two"), curve(9, metric="short"), lines(["a"])]
        await stores.events.add(batch(*groups))
        await stores.events.add(batch(scalars([7.0], iters=[-(2**31)], timestamps=[OLD], worker="three")))
        await case.settle()
        before = await points_of(case.store, SCALARS)
        (gone,) = await stores.run(THINNED, archive=tmp_path / "archive", moment="M")
        await case.settle()
        after = await points_of(case.store, SCALARS)
        went = flat(before) - flat(after)
        assert archived(tmp_path / "archive") == went
        assert flat(after) < flat(before)
        assert gone.events == len(went)
        assert [name.rpartition("/")[2] for name in names(tmp_path / "archive")] == ["scalars-M.parquet"]


async def test_the_audit_log_has_what_was_thinned(stores: Stores) -> None:
    await stores.task(project=await stores.project("lab"))
    await stores.events.add(batch(curve()))
    amounts = Amounts()
    (gone,) = await stores.run(THINNED, tell=amounts.add)
    (entry,) = amounts.entries()
    assert (entry.action, entry.what) == ("retention.delete", {"project": "lab", "tasks": 1, "scalars": gone.events})


async def test_documents_of_tasks_stay_as_they_are(stores: Stores) -> None:
    await stores.task(last_metrics={"m": {"v": {"value": 1.0}}})
    await stores.events.add(batch(curve()))
    await stores.events.restated([OWNER])
    before = await stores.documents.find_one("tasks", {"id": "task"})
    assert len(await stores.run(THINNED)) == 1
    assert await stores.documents.find_one("tasks", {"id": "task"}) == before
    assert [one async for one in stores.events.owners_to_restate()] == []


@pytest.mark.parametrize("status", ["published", "queued"])
async def test_a_task_that_is_published_or_begins_again_meanwhile_is_left_alone(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: str
) -> None:
    await stores.task()
    await stores.events.add(batch(curve()))

    async def change() -> None:
        await stores.documents.delete("tasks", {"id": "task"})
        await stores.task(status=status)

    Meanwhile(monkeypatch, change)
    assert await stores.run(THINNED, archive=tmp_path / "archive") == []
    assert await stores.run(THINNED, archive=tmp_path / "archive") == []
    assert len(await iters(stores)) == 100
    assert names(tmp_path / "archive") == []


async def test_points_that_come_meanwhile_wait_for_the_next_run(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await stores.task()
    await stores.events.add(batch(curve()))

    async def add() -> None:
        await stores.events.add(batch(scalars([5.0], iters=[200], timestamps=[OLD])))

    Meanwhile(monkeypatch, add)
    assert await stores.run(THINNED, archive=tmp_path / "archive") == []
    assert len(await iters(stores)) == 101
    assert names(tmp_path / "archive") == []
    assert len(await stores.run(THINNED, archive=tmp_path / "archive")) == 1
    assert (await iters(stores))[-1] == 200


@pytest.mark.test
@pytest.mark.parametrize("iter", [140, 50], ids=["beyond all others", "in place of another one"])
async def test_a_point_that_comes_in_the_very_moment_costs_no_other(
    case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, iter: int
) -> None:
    """Its series waits for the next run. Each point is stored or in the archive, and there once."""
    async with stores_in(tmp_path / "data", case.store) as stores:
        await stores.task()
        await stores.events.add(batch(curve(), curve(variant="valid")))
        await case.settle()
        with monkeypatch.context() as patch:
            late = batch(scalars([0.5], iters=[iter], timestamps=[OLD]))
            meant = before_deleting(patch, lambda: stores.events.add(late), stores)
            (gone,) = await stores.run(THINNED, archive=tmp_path / "archive", moment="M")
        await case.settle()
        after = await points_of(case.store, SCALARS)
        assert len(after["loss", "train"]) == (101 if iter == 140 else 100)
        assert gone.events == 100 - len(after["loss", "valid"]) >= 88
        assert meant <= archived(tmp_path / "archive") | flat(after)
        (again,) = await stores.run(THINNED, archive=tmp_path / "archive", moment="N")
        await case.settle()
        after = await points_of(case.store, SCALARS)
        assert again.events == (101 if iter == 140 else 100) - len(after["loss", "train"]) >= 88
        assert meant <= archived(tmp_path / "archive") | flat(after)
        assert len(all_rows(tmp_path / "archive")) == len(archived(tmp_path / "archive"))
        assert await stores.run(THINNED, archive=tmp_path / "archive") == []
        assert stores.failures == []


@pytest.mark.test
@pytest.mark.parametrize("has_archive", [True, False])
async def test_nothing_is_told_or_archived_if_the_only_series_changed_in_the_very_moment(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_archive: bool
) -> None:
    await stores.task()
    await stores.events.add(batch(curve()))
    folder = tmp_path / "archive" if has_archive else None
    with monkeypatch.context() as patch:
        before_deleting(patch, lambda: stores.events.add(batch(scalars([0.5], iters=[140], timestamps=[OLD]))), stores)
        assert await stores.run(THINNED, archive=folder) == []
        assert stores.failures == []
    assert await iters(stores) == [*range(100), 140]
    assert names(tmp_path / "archive") == []
    assert len(await stores.run(THINNED, archive=folder)) == 1


def before_deleting(patch: pytest.MonkeyPatch, do: Callable[[], Awaitable[Any]], stores: Stores) -> set[Any]:
    """Do something once all checks were made, just before anything is deleted; what is stored then comes into a set."""
    real, there = due.delete, set[Any]()

    async def delete(*how: Any) -> int:
        await do()
        there.update(flat(await points_of(stores.events, SCALARS)))
        return await real(*how)

    patch.setattr(due, "delete", delete)
    return there


def flat(found: Mapping[tuple[str, str], Sequence[Any]]) -> set[Any]:
    """Points of series as rows."""
    return {(*name, *row) for name, some in found.items() for row in some}


def archived(folder: Path) -> set[Any]:
    """The points in an archive, as such rows."""
    return {(*row[:3], repr(row[4]), row[3], *row[5:]) for row in all_rows(folder)}


async def test_a_dry_run_reads_each_point_once(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    await stores.task()
    await stores.events.add(batch(curve(), curve(variant="valid"), curve(12, variant="short")))
    read: list[int] = []
    real = stores.events.whole_points

    async def whole_points(series: SeriesQuery) -> Any:
        async for part in real(series):
            read.extend(len(one.points.iters) for one in part)
            yield part

    monkeypatch.setattr(stores.events, "whole_points", whole_points)
    (planned,) = await stores.would_go(THINNED)
    assert sum(read) == 200
    assert [planned] == await stores.run(THINNED)


@pytest.mark.test
@pytest.mark.parametrize(
    ("place", "is_thinned"),
    [((archive, "keep"), False), ((due, "delete"), False), ((archive, "rename_each"), True)],
    ids=["while it is written", "before it is thinned", "when it is thinned"],
)
async def test_a_run_that_was_cut_short_archives_nothing_twice_and_loses_nothing(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str], is_thinned: bool
) -> None:
    await stores.task()
    await stores.events.add(batch(curve()))
    with monkeypatch.context() as patch:

        def dies(*how: Any) -> None:
            raise CutShort

        patch.setattr(*place, dies)
        with pytest.raises(CutShort):
            await stores.run(THINNED, archive=tmp_path, moment="M")
    assert (len(await iters(stores)) < 100) == is_thinned
    await stores.run(THINNED, archive=tmp_path, moment="N")
    archived = [row[2] for row in all_rows(tmp_path)]
    assert sorted([*archived, *await iters(stores)]) == [*range(100)]
    assert not [name for name in names(tmp_path) if "going" in name]


@pytest.mark.test
async def test_a_long_series_is_thinned_in_parts(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts of a series, and several series of a part, give what all points at once would."""
    await stores.task()
    many = [math.sin(n / 900) + math.cos(n) for n in range(30_000)]
    await stores.events.add(batch(scalars(many, timestamps=range(OLD - 30_000, OLD)), curve(metric="other")))
    plain = PlainEventStore()
    await plain.add(batch(scalars(many, timestamps=range(OLD - 30_000, OLD)), curve(metric="other")))
    await merge(stores)
    assert isinstance(stores.events, EmbeddedEventStore)
    monkeypatch.setattr(stores.events, "bounds", EmbeddedBounds(points_at_a_time=5000))
    stores.bounds = RetentionBounds(points=5000)
    rule = RetentionRule(("scalars",), "90 d", then="50 points")
    (planned,) = await stores.would_go(rule)
    assert await stores.run(rule) == [planned]
    assert planned.events == await plain.thin_scalars(SCALARS, 50)
    assert await points_of(stores.events, SCALARS) == await points_of(plain, SCALARS)


async def merge(stores: Stores) -> None:
    """Merge all points, so that the store has them in chunks."""
    assert isinstance(stores.events, EmbeddedEventStore)
    await stores.events.merge()


# --- any curves -------------------------------------------------------------------------------------

Curve = dict[int, tuple[int, float]]
#: Ages in days and values by iteration, of a few series.
curves = st.lists(
    st.dictionaries(
        st.integers(-5, 60) | st.sampled_from([-(2**63), -(2**31), 2**40, 2**63 - 1]),
        st.tuples(st.sampled_from([91, 91, 92, 100]), values),
        min_size=1,
        max_size=60,
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.test
@examples(40)
@given(curves, st.integers(12, 30), st.sampled_from(["completed", "published", "in_progress"]), st.booleans())
def test_just_those_points_stay_that_the_rule_names_and_a_second_time_all_of_them(
    curves: Sequence[Curve], points: int, status: str, has_young: bool
) -> None:
    asyncio.run(_same_as_word_by_word(curves, points, status, has_young=has_young))


async def _same_as_word_by_word(curves: Sequence[Curve], points: int, status: str, *, has_young: bool) -> None:
    rule = RetentionRule(("scalars",), "90 d", then=f"{points} points")
    groups = [
        scalars(
            [value for _, value in of.values()],
            iters=[*of],
            timestamps=[NOW - age * DAY for age, _ in of.values()],
            metric=str(n),
        )
        for n, of in enumerate(curves)
    ]
    young = [scalars([1.0], timestamps=[YOUNG], metric="young")] if has_young else []
    with tempfile.TemporaryDirectory() as folder:
        async with stores_in(Path(folder)) as stores:
            await stores.task(status=status)
            plain = PlainEventStore()
            for store in (stores.events, plain):
                await store.add(batch(*groups, *young))
            before = await points_of(plain, SCALARS)
            kept = {name: {row[0] for row in some} for name, some in before.items()}
            if status == "completed" and not has_young:
                for name, by_iter in plain._scalars(SCALARS).items():
                    if len(by_iter) > points:
                        kept[name] = stay_of(by_iter, points)
            told = await stores.would_go(rule)
            assert await points_of(stores.events, SCALARS) == before
            assert await stores.run(rule) == told
            after = {name: [row for row in some if row[0] in kept[name]] for name, some in before.items()}
            assert await points_of(stores.events, SCALARS) == after
            assert sum(one.events for one in told) == sum(map(len, before.values())) - sum(map(len, after.values()))
            assert await stores.run(rule) == []
