"""Repairs: what was found is mended, what can be read stays as it was, and what is taken out is kept."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.events.model import EventType, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.embedded import journal
from apiserver.stores.events.embedded.repair import Repair
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from apiserver.stores.inspection import Finding
from tests.harness import served
from tests.operating.doctor.filled import BATCHES, examined, killed
from tests.operating.doctor.test_damage import COLUMNS, flipped, stopped

__all__ = ["stopped"]  # a fixture


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Owner]]:
    """A folder that a server left when it was killed, and its tasks; not to be changed."""
    return asyncio.run(killed(tmp_path_factory.mktemp("killed")))


def contents(data: Path, owners: list[Owner]) -> dict[Any, Any]:
    """All events, by owner and type."""

    async def read() -> dict[Any, Any]:
        store = EmbeddedEventStore(data / "events")
        await store.open()
        found: dict[Any, Any] = {}
        try:
            for owner in owners:
                points = await store.scalar_points(SeriesQuery(owner, EventType.SCALAR), PageQuery(10_000))
                named = [points.names[n] for n in points.series.tolist()]
                found[owner, "points"] = list(zip(named, points.iters.tolist(), points.values.tolist(), strict=True))
                found[owner, "times"] = points.timestamps.tolist()
                lines = await store.log_lines(SeriesQuery(owner, EventType.LOG), PageQuery(10_000))
                found[owner, "lines"] = [line.message for line in lines]
                assert await store.log_count(SeriesQuery(owner, EventType.LOG)) == len(lines)
                found[owner, "plots"] = [
                    one.document for one in await store.samples(SeriesQuery(owner, EventType.PLOT), PageQuery(100))
                ]
                for one in await store.scalar_stats(SeriesQuery(owner, EventType.SCALAR)):
                    of_series = [name for name in named if name == (one.metric, one.variant)]
                    assert one.count == len(of_series)
        finally:
            await store.close()
        return found

    return asyncio.run(read())


def repaired(data: Path) -> int:
    """The exit code of a repair."""
    return main(["doctor", "--data", str(data), "--repair", "--yes"])


#: What each damage of `COLUMNS` may take from what can be read.
LOSES = {
    "damaged-chunk": {"points", "times"},
    "damaged-details": {"times"},
    "damaged-page": {"points", "times"},
    "damaged-log": {"lines"},
    "damaged-sample": {"plots"},
}


@pytest.mark.test
@pytest.mark.parametrize(("table", "column", "kind", "names"), COLUMNS)
def test_damage_is_mended_and_the_rest_stays(
    whole: tuple[Path, list[Owner]], tmp_path: Path, table: str, column: str, kind: str, names: str
) -> None:
    folder, owners = whole
    before = contents(shutil.copytree(folder, tmp_path / "whole"), owners)
    data = shutil.copytree(folder, tmp_path / "data")
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        ((id, content),) = conn.execute(f"SELECT id, {column} FROM {table} ORDER BY id LIMIT 1").fetchall()
        damaged = flipped(content, len(content) - 1)
        conn.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (damaged, id))
    assert repaired(data) == 0
    assert asyncio.run(examined(data)).findings == []
    after = contents(data, owners)
    assert {what for (_, what), found in after.items() if found != before[_, what]} <= LOSES.get(kind, set())
    for key, found in after.items():
        if key[1] != "times":
            assert [one for one in before[key] if one in found] == found
    if kind != "damaged-sums":
        assert damaged in {path.read_bytes() for path in (data / "damaged").rglob("*") if path.is_file()}


@pytest.mark.test
@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("DELETE FROM tail_pages", set[str]()),
        ("UPDATE tail_pages SET live = live + 1", set[str]()),
        ("DELETE FROM sample_documents", set[str]()),
        ("DELETE FROM samples", set[str]()),
        ("DELETE FROM owners WHERE id = 1", {"orphan-events"}),
    ],
)
def test_rows_that_do_not_fit_are_mended(
    whole: tuple[Path, list[Owner]], tmp_path: Path, statement: str, left: set[str]
) -> None:
    data = shutil.copytree(whole[0], tmp_path / "data")
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        conn.execute(statement)
    assert repaired(data) == bool(left)
    assert {one.kind for one in asyncio.run(examined(data)).findings} == left
    contents(data, whole[1])


@pytest.mark.test
def test_batches_behind_damage_of_the_journal_are_saved(whole: tuple[Path, list[Owner]], tmp_path: Path) -> None:
    folder, owners = whole
    data = shutil.copytree(folder, tmp_path / "data")
    ((_, path),) = journal.segments(data / "events")
    good = path.read_bytes()
    bad = good[:8] + flipped(good[8:], 100) + good[8:]
    path.write_bytes(bad)
    assert repaired(data) == 0
    assert contents(data, owners)[owners[0], "lines"] == [f"line {n}" for n in range(BATCHES)]
    assert [one.read_bytes() for one in (data / "damaged").rglob("journal-*")] == [bad]


def test_what_is_taken_out_is_on_the_disk_before_it_is_gone_elsewhere(
    whole: tuple[Path, list[Owner]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = shutil.copytree(whole[0], tmp_path / "data")
    events = data / "events"
    ((_, path),) = journal.segments(events)
    path.write_bytes(path.read_bytes()[:8] + b"damaged" + path.read_bytes()[8:])
    with closing(sqlite3.connect(events / "events.db")) as conn, conn:
        conn.execute("UPDATE log_blocks SET count = count + 1 WHERE id = 1")
    kept = data / "damaged" / "now"
    steps: list[object] = []
    fsync, replace = os.fsync, Path.replace

    class Noting(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql == "COMMIT":
                steps.append(sql)
            return super().execute(sql, *parameters)

    def noted_fsync(descriptor: int) -> None:
        fsync(descriptor)
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    def noted_replace(one: Path, other: Path) -> None:
        replace(one, other)
        steps.append("replaced")

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Noting))
    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    findings = [
        Finding("events", kind, place, "", "") for kind, place in (("x-journal", path.name), ("damaged-log", "1"))
    ]
    Repair(events, kept).run(findings)
    folders = [kept, kept.parent, data]
    assert steps == [
        *(kept / path.name, *folders, path.with_suffix(".new"), "replaced", events),
        *(kept / "log-1", *folders, "COMMIT"),
    ]


@pytest.mark.test
def test_documents_are_mended(stopped: Path, tmp_path: Path) -> None:
    data = shutil.copytree(stopped, tmp_path / "data")
    with closing(sqlite3.connect(data / "documents.db")) as conn, conn:
        before = conn.execute("SELECT * FROM tasks").fetchall()
        conn.execute("UPDATE tasks SET \"key.project\" = 'other' WHERE row = 1")
        conn.execute("UPDATE \"side:2\" SET text = 'other' WHERE rowid = 1")
    assert repaired(data) == 0
    with closing(sqlite3.connect(data / "documents.db")) as conn:
        assert conn.execute("SELECT * FROM tasks").fetchall() == before
    assert not (data / "damaged").exists()


@pytest.mark.test
def test_nothing_is_repaired_beside_a_server_or_without_a_yes(
    whole: tuple[Path, list[Owner]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shutil.copytree(whole[0], tmp_path / "data")
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        conn.execute("UPDATE log_blocks SET count = count + 1 WHERE id = (SELECT min(id) FROM log_blocks)")
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert main(["doctor", "--data", str(data), "--repair"]) == 1
    said, asked = capsys.readouterr()
    [finding] = [line for line in said.splitlines() if "--repair: " in line]
    assert "lost" in finding.partition("--repair: ")[2]  # what it would lose
    assert "Mend 1 of these" in asked
    assert "Nothing was mended. Where nobody can answer, --yes agrees." in asked
    with served(data):
        assert repaired(data) == 2
        assert "is in use by the process" in capsys.readouterr().err
    assert [one.kind for one in asyncio.run(examined(data)).findings] == ["damaged-log"]


@pytest.mark.parametrize("name", ["events/events.db", "documents.db"])
def test_a_database_that_nothing_mends_is_to_be_restored(
    whole: tuple[Path, list[Owner]], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shutil.copytree(whole[0], tmp_path / "data")
    with closing(sqlite3.connect(data / name, isolation_level=None)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (data / name).write_bytes(b"text" * 1000)
    assert repaired(data) > 0
    assert "apiserver restore DEST --data NEW --verify" in capsys.readouterr().err
