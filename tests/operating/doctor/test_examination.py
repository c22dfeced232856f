"""What the doctor tells of a data folder, of one that is not there, and of one that a server uses."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from apiserver.cli import main
from apiserver.common.escaping import shown
from apiserver.events.model import EventType, Owner
from apiserver.operating.doctor.saying import numbers_of
from apiserver.stores.events.embedded import journal
from apiserver.stores.events.embedded.journal import MAGIC
from tests.contract.event_stores import batch, scalars
from tests.harness import running_api
from tests.operating.doctor.filled import BATCHES, COMPANY, PLOTS, POINTS, examined, filled, killed

pytestmark = pytest.mark.anyio


async def test_all_is_well_and_counted(tmp_path: Path) -> None:
    data, owners = await killed(tmp_path)
    found = await examined(data)
    assert found.findings == []
    assert found.total is not None
    assert numbers_of(found.total) == (2 * POINTS, 2 * BATCHES, 2 * PLOTS)
    assert {one.id for one in found.owners} == {owner.id for owner in owners}
    for one in found.owners:
        assert numbers_of(one) == (POINTS, BATCHES, PLOTS)
        assert sum(one.series) == 3
    (project,) = [one for one in found.projects if one.id]
    assert (project.name, project.files) == ("a project", 5)
    assert found.owners[0].name in ("one", "two")
    assert [one.files for one in found.owners if one.name == "one"] == [5]
    assert [note for note in found.notes if "names 1 file, with 7 bytes: " in note and "/by hand/y.bin" in note]
    assert [(one.name, one.number) for one in found.held["files"]] == [("files", 2)]


@pytest.mark.test
async def test_bytes_are_those_that_the_file_has(tmp_path: Path) -> None:
    data, _ = await killed(tmp_path)
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn:
        queries = [
            f"SELECT coalesce(sum(length({column})), 0) FROM {table}"
            for table, column in [("chunk_curves", "body"), ("tail_pages", "curve"), ("log_blocks", "body")]
        ]
        bodies = [conn.execute(query).fetchone()[0] for query in queries]
    found = await examined(data)
    by_type = dict(zip(EventType, found.bytes_by_type, strict=True))
    size = (data / "events" / "events.db").stat().st_size
    assert bodies[0] + bodies[1] < by_type[EventType.SCALAR] < size
    assert bodies[2] < by_type[EventType.LOG] < size


@pytest.mark.test
async def test_the_folder_stays_as_it_was(tmp_path: Path) -> None:
    data, _ = await killed(tmp_path)
    before = contents(data)
    await examined(data)
    assert contents(data) == before


def contents(data: Path) -> dict[str, bytes]:
    """All files but the memory that SQLite shares."""
    files = (path for path in data.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(data)): path.read_bytes() for path in files}


@pytest.mark.test
async def test_a_folder_that_may_only_be_read_is_looked_at(tmp_path: Path) -> None:
    async with filled(tmp_path / "data"):
        pass
    for path in (*(tmp_path / "data").rglob("*"), tmp_path / "data"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        assert (await examined(tmp_path / "data")).findings == []
    finally:
        for path in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
            path.chmod(0o700)


@pytest.mark.test
async def test_a_server_that_writes_goes_on(tmp_path: Path) -> None:
    async with filled(tmp_path / "data") as (api, owners):
        events = api.backend.events

        async def write() -> int:
            n = 0
            while not looked.is_set():
                await events.add(batch(scalars([float(n)], iters=[n], metric="more", owner=owners[0])))
                if n % 20 == 0:
                    await events.merge()  # type: ignore[attr-defined]
                n += 1
                await asyncio.sleep(0)
            return n

        looked = asyncio.Event()
        writing = asyncio.create_task(write())
        for _ in range(5):
            assert (await examined(tmp_path / "data")).findings == []
        looked.set()
        written = await writing
        found = await examined(tmp_path / "data")
        assert found.findings == []
        assert found.total is not None
        assert numbers_of(found.total)[0] == 2 * POINTS + written
        assert await events.events_count(owners[0], [EventType.SCALAR]) == POINTS + written


@pytest.mark.test
@pytest.mark.parametrize("begun", [b"", MAGIC[:3], MAGIC])
async def test_a_segment_that_a_server_has_just_begun_is_well(tmp_path: Path, begun: bytes) -> None:
    """It makes the file, then writes to it. A server that is killed between these leaves an empty file."""
    async with filled(tmp_path / "data"):
        events = tmp_path / "data" / "events"
        newest, _ = journal.segments(events)[-1]
        journal.segment_path(events, newest + 1).write_bytes(begun)
        found = await examined(tmp_path / "data")
    assert found.findings == []
    assert (found.total and numbers_of(found.total)) == (2 * POINTS, 2 * BATCHES, 2 * PLOTS)


@pytest.mark.test
async def test_events_of_nobody_are_named(tmp_path: Path) -> None:
    async with filled(tmp_path / "data") as (api, _):
        nobody = Owner(COMPANY, "nobody"), Owner(COMPANY, "no-model", is_model=True)
        await api.backend.events.add(batch(*(scalars([1.0, 2.0], owner=one) for one in nobody)))
    found = await examined(tmp_path / "data")
    assert {one.kind for one in found.findings} == {"orphan-events"}
    assert sorted(one.thing for one in found.findings) == [
        "the model no-model is not there, and has 2 scalars",
        "the task nobody is not there, and has 2 scalars",
    ]


@pytest.mark.test
async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    async with filled(tmp_path / "data") as (_, owners):
        pass
    (file,) = (tmp_path / "data").rglob("x.bin")
    file.unlink()
    (finding,) = (await examined(tmp_path / "data")).findings
    assert finding.kind == "missing-file"
    assert finding.thing.startswith(f"the file of the artifact x of task {owners[0].id} is missing")


@pytest.mark.test
async def test_a_file_that_did_not_come_is_noted_and_no_finding(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data") as api:
        task = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
        await api.call("tasks.started", {"task": task})
        artifact = {"key": "x", "type": "custom", "uri": f"http://localhost:8081/t.{task}/artifacts/x.bin"}
        await api.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [artifact]})
        for uri in ("http://localhost:8081/uploading_file", "http://localhost:8081/failed_uploading"):
            await api.call("models.create", {"name": "m", "uri": uri})
    found = await examined(tmp_path / "data")
    assert found.findings == []
    assert any("3 files of models, or of artifacts of tasks that run, did not come: " in note for note in found.notes)
    async with running_api(tmp_path / "data") as api:
        await api.call("tasks.stopped", {"task": task})
    found = await examined(tmp_path / "data")
    (finding,) = found.findings
    assert "it was lost, or it never came" in finding.line
    assert any("2 files of models, or" in note for note in found.notes)


@pytest.mark.parametrize("files", [None, {}, {"journal-0000000007.log": MAGIC}])
async def test_where_nothing_is_nothing_can_be_looked_at(
    tmp_path: Path, files: dict[str, bytes] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A journal without its database is nothing, too."""
    if files is not None:
        (tmp_path / "events").mkdir()
        for name, content in files.items():
            (tmp_path / "events" / name).write_bytes(content)
    before = sorted(tmp_path.rglob("*"))  # noqa: ASYNC240
    assert await asyncio.to_thread(main, ["doctor", "--data", str(tmp_path)]) == 2
    assert "cannot be looked at" in (said := capsys.readouterr().err) or "there is no folder" in said
    assert sorted(tmp_path.rglob("*")) == before  # noqa: ASYNC240


@pytest.mark.test
async def test_the_command_answers_programs_and_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[2Jred\n\u202eline"
    async with running_api(tmp_path / "data") as api:
        task = (await api.call("tasks.create", {"name": evil, "type": "training"}))["id"]
        await api.backend.events.add(batch(scalars([1.0], owner=Owner(COMPANY, task))))
    command = ["doctor", "--data", str(tmp_path / "data")]
    assert await asyncio.to_thread(main, command) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert r"\x1b[2Jred\n\u202eline" in said
    assert said.splitlines()[-1] == "all well"
    assert await asyncio.to_thread(main, [*command, "--json", "--usage"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["tasks"][0]["name"] == evil
    assert (report["well"], report["checked"], report["total"]["points"]) == (True, False, 1)

    async with running_api(tmp_path / "data") as api:
        await api.backend.events.add(batch(scalars([1.0], owner=Owner(COMPANY, "\x07nobody"))))
    assert await asyncio.to_thread(main, command) == 1
    output = capsys.readouterr()
    assert r"the task \x07nobody is not there, and has 1 scalar" in output.out
    assert output.err == "apiserver: something is not well\n"


@pytest.mark.test
async def test_only_the_largest_are_told(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data") as api:
        for n in range(5):
            project = (await api.call("projects.create", {"name": f"p{n}"}))["id"]
            task = await api.call("tasks.create", {"name": f"t{n}", "type": "training", "project": project})
            await api.backend.events.add(batch(scalars([0.5] * (10 * n + 1), owner=Owner(COMPANY, task["id"]))))
    found = await examined(tmp_path / "data", most=2)
    assert [one.name for one in found.owners] == ["t4", "t3"]
    assert [one.name for one in found.projects] == ["p4", "p3"]
    assert len((await examined(tmp_path / "data", most=0)).owners) == 5


def test_a_terminal_gets_only_what_it_shows() -> None:
    assert shown("a\tb\x9b1m\ud800é") == r"a\tb\x9b1m\ud800é"
    assert shown("x" * 100, longest=60) == "x" * 59 + "…"
