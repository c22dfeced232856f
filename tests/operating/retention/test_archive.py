"""The archive: what is in it, and what a run that was cut short leaves."""

from __future__ import annotations

import datetime
import math
import os
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arro3.io import read_parquet

from apiserver.events.model import SAMPLE_TYPES, EventType, LogColumns
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.operating.retention import archive, due, tables
from apiserver.settings.retention_rules import RetentionRule
from apiserver.stores import formats
from apiserver.stores.documents.query import Update
from apiserver.tables.formats import arrow
from tests.contract.event_stores import RECEIVED, SCALARS, Case, batch, case, iters, lines, messages, sample, scalars
from tests.longer import beyond
from tests.operating.retention.stores import COMPANY, DAY, LOGS, NOW, OWNER, Stores, stores_in

__all__ = ["case"]

pytestmark = pytest.mark.anyio

OLD = NOW - 200 * DAY
ALL = (RetentionRule(("scalars", "vectors", "images", "plots", "logs"), "90 d"),)


class CutShort(BaseException):
    """The process dies: no code of the run sees it as a failure."""


def rows(path: Path) -> list[tuple[Any, ...]]:
    """The rows of a file; times are epoch milliseconds, as the file has them."""
    found: list[tuple[Any, ...]] = []
    for of in read_parquet(path):
        columns = [of.column(name).to_pylist() for name in of.schema.names]
        found += [tuple(map(_plain, row)) for row in zip(*columns, strict=True)]
    return found


def _plain(value: Any) -> Any:
    return round(value.timestamp() * 1000) if isinstance(value, datetime.datetime) else value


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.test
async def test_the_archive_has_just_what_was_deleted_on_every_engine(case: Case, tmp_path: Path) -> None:
    async with stores_in(tmp_path / "data", case.store) as stores:
        await same_as_it_was(stores, case, tmp_path / "archive")


async def same_as_it_was(stores: Stores, case: Case, folder: Path) -> None:
    """Events of all types, of which some are old, go into an archive."""
    await stores.task(project=await stores.project("lab"))
    log = LogColumns(
        owner=OWNER,
        timestamps=np.array([OLD, OLD + 1, NOW], np.int64),
        levels=["info", None, "error"],
        workers=["one", "two", "one"],
        messages=["ä\n", "", "young"],
        iters=[None, 7, None],
        metrics=["console", "", "console"],
        variants=["", "v", ""],
        extras={1: b'{"a":1}'},
    )
    values = [1.5, math.nan, -math.inf, -0.0]
    points = scalars(values, timestamps=[OLD + n for n in range(4)], worker="one")
    other = scalars([2.0], iters=[-(2**31)], timestamps=[OLD], metric="a", worker="two")
    samples = [sample(n, type=type, timestamp=OLD + 20 * n * DAY, key="k") for n in range(10) for type in SAMPLE_TYPES]
    await stores.events.add(batch(log, points, other, *samples))
    await case.settle()
    gone = await stores.run(*ALL, archive=folder, moment="M")
    numbers = {EventType.SCALAR: 5, EventType.LOG: 2}
    assert {one.type: one.events for one in gone} == {type: numbers.get(type, 6) for type in EventType}
    of_task = folder / COMPANY / "task"
    assert names(of_task) == sorted(f"{type.plural}-M.parquet" for type in EventType)
    assert [(at, *row) for at, _, *row in rows(of_task / "logs-M.parquet")] == [
        (OLD, "one", "info", "ä\n", "console", "", None, RECEIVED, None),
        (OLD + 1, "two", None, "", "", "v", 7, RECEIVED, '{"a":1}'),
    ]
    loss = [("loss", "train", n, OLD + n, value, "one", RECEIVED) for n, value in enumerate(values)]
    expected = [("a", "train", -(2**31), OLD, 2.0, "two", RECEIVED), *loss]
    assert repr(rows(of_task / "scalars-M.parquet")) == repr(expected)
    for type in SAMPLE_TYPES:
        assert rows(of_task / f"{type.plural}-M.parquet") == [
            ("plots", "roc", n, "k", OLD + 20 * n * DAY, f'{{"iter": {n}}}') for n in range(6)
        ]
        assert await iters(stores.events, SeriesQuery(OWNER, type)) == [6, 7, 8, 9]
    assert await messages(stores.events, SeriesQuery(OWNER, EventType.LOG)) == ["young"]
    assert await stores.count(EventType.SCALAR) == 0


@pytest.mark.test
@pytest.mark.parametrize("is_replaced", [False, True], ids=["beside others", "in place of another one"])
@pytest.mark.parametrize("type", beyond([EventType.SCALAR, EventType.LOG, EventType.PLOT], EventType), ids=str)
async def test_what_comes_in_the_very_moment_is_deleted_only_once_it_is_in_the_archive(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type: EventType, is_replaced: bool
) -> None:
    """It comes once all checks were made, just before anything is deleted."""
    folder = tmp_path / "archive"

    def made(number: int, sent: float) -> Any:
        at = OLD + number * DAY
        if type is EventType.LOG:
            return lines([str(sent)], timestamps=[at])
        if type is EventType.SCALAR:
            return scalars([sent], iters=[number], timestamps=[at], variant=str(number % 2))
        return sample(number, type=type, variant=str(number % 2), timestamp=at, document=str(sent).encode())

    async with stores_in(tmp_path / "data", case.store) as stores:
        await stores.task()
        await stores.events.add(batch(*(made(number, number) for number in range(4))))
        await case.settle()
        before, real = list[set[str]](), due.delete

        async def delete(*how: Any) -> int:
            await stores.events.add(batch(made(1 if is_replaced else 4, 9)))
            before.append(await contents(stores, type))
            return await real(*how)

        with monkeypatch.context() as patch:
            patch.setattr(due, "delete", delete)
            gone = await stores.run(*ALL, archive=folder, moment="M")
        await case.settle()
        left = await contents(stores, type)
        assert before[0] - left <= archived(folder, type)
        assert [one for one in before[0] if float(one) == 9] == [one for one in left if float(one) == 9]
        assert sum(one.events for one in gone) == len(before[0] - left)
        assert len(await stores.run(*ALL, archive=folder, moment="N")) == 1
        assert await contents(stores, type) == set()
        assert stores.failures == []
        assert before[0] <= archived(folder, type)
        assert len(all_rows(folder)) == len(archived(folder, type))
        assert not [name for name in names(folder) if "going" in name]


#: Which column of an archive tells an event of the test above from others.
CONTENT: dict[EventType, str] = {
    EventType.SCALAR: "value",
    EventType.LOG: "msg",
    **dict.fromkeys(SAMPLE_TYPES, "document"),
}


async def contents(stores: Stores, type: EventType) -> set[str]:
    """What is stored of a type."""
    if type is EventType.LOG:
        return {*await messages(stores.events)}
    if type is EventType.SCALAR:
        points = await stores.events.scalar_points(SCALARS, PageQuery(100))
        return {*map(str, points.values.tolist())}
    return {one.document.decode() for one in await stores.events.samples(SeriesQuery(OWNER, type), PageQuery(100))}


def archived(folder: Path, type: EventType) -> set[str]:
    """The same in an archive."""
    place = [column.name for column in tables.COLUMNS[type]].index(CONTENT[type])
    return {str(row[place]) for row in all_rows(folder)}


async def test_a_file_is_durable_before_anything_is_deleted(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stores.task()
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))
    done: list[str] = []
    real_sync, real_delete = os.fsync, stores.events.delete_logs

    def fsync(descriptor: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real_sync(descriptor)

    async def delete_logs(*how: Any) -> int:
        done.append(f"delete with {names(tmp_path / 'archive' / COMPANY)}")
        return await real_delete(*how)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(stores.events, "delete_logs", delete_logs)
    await stores.run(LOGS, archive=tmp_path / "archive", moment="M")
    assert [one for one in done if not one.startswith("events")][:5] == [
        *(tmp_path.name, "archive", COMPANY),
        "logs-M.going.parquet.part",
        "task",
    ]
    assert "delete with ['task/logs-M.going.parquet']" in done[5:]


def all_rows(folder: Path) -> list[tuple[Any, ...]]:
    return [row for path in folder.rglob("*.parquet") for row in rows(path)]


@pytest.mark.test
@pytest.mark.parametrize("when", ["while it is written", "before anything is deleted", "when all is deleted"])
@pytest.mark.parametrize("type", [EventType.LOG, EventType.PLOT, EventType.SCALAR])
async def test_a_run_that_was_cut_short_archives_nothing_twice_and_loses_nothing(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, type: EventType
) -> None:
    """After the cut, a client sends two more events: too young for the next run, and old for the last one."""
    await stores.task()

    def made(first: int, number: int) -> Any:
        times = [OLD + n * DAY for n in range(first, first + number)]
        if type is EventType.LOG:
            return [lines([f"line {n}" for n in times], timestamps=times)]
        if type is EventType.SCALAR:
            return [scalars(times, iters=range(first, first + number), timestamps=times)]
        return [sample(n, timestamp=OLD + n * DAY) for n in range(first, first + number)]

    await stores.events.add(batch(*made(0, 105)))
    place = {"while it is written": (archive, "keep"), "when all is deleted": (archive, "rename_each")}.get(when)
    with monkeypatch.context() as patch:
        if place is not None:

            def dies(*how: Any) -> None:
                raise CutShort

            patch.setattr(*place, dies)
        else:

            async def dies_too(*how: Any) -> int:
                raise CutShort

            patch.setattr(due, "delete", dies_too)
        with pytest.raises(CutShort):
            await stores.run(*ALL, archive=tmp_path, moment="M")
    left = [name.rpartition("/")[2] for name in names(tmp_path / COMPANY)]
    assert left == ([] if when == "while it is written" else [f"{type.plural}-M.going.parquet"])
    await stores.events.add(batch(*made(300, 2)))
    await stores.run(*ALL, archive=tmp_path, moment="N", now=NOW + 10 * DAY if type is not EventType.SCALAR else NOW)
    await stores.run(*ALL, archive=tmp_path, moment="O", now=NOW + 1000 * DAY)
    assert await stores.count(type) == 0
    assert not [name for name in names(tmp_path / COMPANY) if "going" in name]
    found = all_rows(tmp_path)
    assert len(found) == len(set(found)) == 107


async def test_a_slow_disk_of_the_archive_keeps_no_call_waiting(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is done with files of the archive is done in other threads than that of the event loop."""
    folder, here, elsewhere = tmp_path / "archive", set[str](), set[str]()

    def watched(name: str) -> Any:
        real = getattr(Path, name)

        def method(path: Path, *how: Any, **more: Any) -> Any:
            if path.is_relative_to(folder):
                (here if threading.current_thread() is threading.main_thread() else elsewhere).add(name)
            return real(path, *how, **more)

        return method

    methods = ("glob", "unlink", "mkdir", "rename", "is_dir")
    for name in methods:
        monkeypatch.setattr(Path, name, watched(name))
    await stores.task()
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))
    real = stores.documents.find_one

    async def came_late(*how: Any, **more: Any) -> Any:
        """Before it is looked at again."""
        await stores.documents.find_and_update("tasks", {"id": "task"}, Update(set={"status": "queued"}))
        return await real(*how, **more)

    with monkeypatch.context() as patch:
        patch.setattr(stores.documents, "find_one", came_late)
        assert await stores.run(LOGS, archive=folder) == []
    await stores.documents.find_and_update("tasks", {"id": "task"}, Update(set={"status": "stopped"}))
    (folder / COMPANY / "task" / "logs-M.going.parquet.part").write_text("half")
    with monkeypatch.context() as patch:

        def dies(*how: Any) -> None:
            raise CutShort

        patch.setattr(archive, "rename_each", dies)
        with pytest.raises(CutShort):
            await stores.run(LOGS, archive=folder, moment="M")
    assert await stores.run(LOGS, archive=folder, moment="N") == []
    assert here == set()
    assert elsewhere == set(methods)
    assert names(folder / COMPANY) == ["task/logs-M.parquet"]


async def test_large_documents_are_written_some_at_a_time(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a row group has is in memory when it is written, and when it is read."""
    groups = []
    real = arrow.write_parquet_file

    def noted(path: Path, columns: Any, batches: Any, about: Any, rows: int) -> None:
        groups.append((path.name.partition("-")[0], rows))
        real(path, columns, batches, about, rows)

    monkeypatch.setattr(arrow, "write_parquet_file", noted)
    await stores.task()
    samples = [sample(n, type=type, timestamp=OLD) for n in range(250) for type in SAMPLE_TYPES]
    await stores.events.add(batch(*samples, lines(["old"], timestamps=[OLD])))
    await stores.run(*ALL, archive=tmp_path, moment="M")
    assert sorted(groups) == sorted([("logs", 5000), *((type.plural, 200) for type in SAMPLE_TYPES)])
    assert [row[2] for row in rows(tmp_path / COMPANY / "task" / "plots-M.parquet")] == list(range(250))


@pytest.mark.test
async def test_what_is_known_of_rows_takes_little_memory(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 20_000
    await stores.task()
    await stores.events.add(batch(scalars(range(number), timestamps=[OLD] * number)))

    async def dies(*how: Any) -> int:
        raise CutShort

    monkeypatch.setattr(due, "delete", dies)
    with pytest.raises(CutShort):
        await stores.run(*ALL, archive=tmp_path, moment="M")
    left = archive.Archive(tmp_path, "N").left(OWNER, EventType.SCALAR)
    archive._known_rows(left, EventType.SCALAR)  # imports what it needs
    tracemalloc.start()
    try:
        known = archive._known_rows(left, EventType.SCALAR)
        assert len(known) == number
        assert tracemalloc.get_traced_memory()[0] < 20 * number
    finally:
        tracemalloc.stop()


async def test_ids_of_tasks_lead_nowhere_else(stores: Stores, tmp_path: Path) -> None:
    for id in ("..", "../../x", ".", "a/b", "%2E"):
        owner = await stores.task(id)
        await stores.events.add(batch(lines(["old"], timestamps=[OLD], owner=owner)))
    await stores.run(LOGS, archive=tmp_path / "archive", moment="M")
    found = [name for name in names(tmp_path) if name.endswith(".parquet")]
    assert len(found) == 5
    assert all(name.startswith(f"archive/{COMPANY}/") and name.count("/") == 3 for name in found)


async def test_nothing_is_deleted_if_it_cannot_be_archived(stores: Stores, tmp_path: Path) -> None:
    await stores.task()
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))
    (tmp_path / "archive").write_text("this is no folder")
    assert await stores.run(LOGS, archive=tmp_path / "archive") == []
    assert len(stores.failures) == 1
    assert await stores.count(EventType.LOG) == 1


async def test_a_file_that_a_newer_release_left_is_named_and_nothing_is_deleted(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stores.task()
    await stores.events.add(batch(lines(["one", "two"], timestamps=[OLD, OLD + 1])))
    folder = tmp_path / "archive"

    async def cut_short(*how: Any) -> int:
        raise CutShort

    with monkeypatch.context() as newer:
        newer.setattr(formats, "ARCHIVES", replace(formats.ARCHIVES, number=2))
        newer.setattr(archive, "__version__", "99.0.0")
        newer.setattr(due, "delete", cut_short)
        with pytest.raises(CutShort):
            await stores.run(LOGS, archive=folder, moment="M")
    (left,) = names(folder / COMPANY / "task")
    path = folder / COMPANY / "task" / left
    about = read_parquet(path).schema.metadata_str
    assert (about["format"], about["server"], about["task"]) == ("2", "events-apiserver 99.0.0", "task")
    assert await stores.run(LOGS, archive=folder, moment="N") == []
    (failure,) = stores.failures
    assert f"'{path}' has format 2 of archives, which events-apiserver 99.0.0 wrote" in failure
    assert "reads up to 1" in failure
    assert await stores.count(EventType.LOG) == 2
    assert names(folder / COMPANY / "task") == [left]


def test_files_with_another_number_or_none_are_refused() -> None:
    path = Path("logs-M.going.parquet")
    archive._require_known(path, {"format": "1"})
    for wrong in ({}, *({"format": number} for number in ("0", "2", "-1", "", "x", "9" * 10_000))):
        with pytest.raises(archive.ArchiveError, match="of archives, which another release wrote"):
            archive._require_known(path, wrong)
