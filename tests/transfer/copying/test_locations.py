"""`apiserver copy`: what its arguments mean, what it refuses, and whole data folders copied."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.events.model import Owner
from apiserver.settings.settings import Settings
from apiserver.stores.documents.query import Document
from apiserver.transfer.copying.locations import Location, location, opened
from tests.contract.event_stores import batch, scalars
from tests.harness import Served, served

ELASTICSEARCH = "elasticsearch://es/prefix"
MONGO = "mongodb://mongo/db"


@pytest.mark.parametrize(
    ("said", "events", "documents"),
    [
        ([], "of the settings", "of the settings"),
        (["folder"], "embedded", "embedded"),
        ([ELASTICSEARCH, MONGO], ELASTICSEARCH, MONGO),
        ([MONGO, "folder"], "embedded", MONGO),
        ([ELASTICSEARCH], ELASTICSEARCH, None),
        ([MONGO], None, MONGO),
    ],
)
def test_locations_stand_for_events_or_documents_or_both(said: list[str], events: str, documents: str) -> None:
    found = location(said, Settings(data=Path("data"), events="of the settings", documents="of the settings"))
    assert (found.settings.events if found.has_events else None) == events
    assert (found.settings.documents if found.has_documents else None) == documents
    assert found.settings.data == Path("folder" if "folder" in said else "data")


@pytest.mark.parametrize(
    "said", [["a", "b"], [MONGO, MONGO], ["http://es"], ["mongodb://host"], ["elasticsearch://e/A"]]
)
def test_locations_that_mean_nothing_are_refused(said: list[str]) -> None:
    with pytest.raises(ValueError, match=r"data folder|database|prefix"):
        location(said, Settings())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with two tasks, one with events."""
    with served(tmp_path / "data") as server:
        task = server.call("tasks.create", {"name": "t", "type": "training"})["id"]
        server.call("tasks.create", {"name": "other", "type": "training"})
        for event in (
            {"type": "training_stats_scalar", "metric": "m", "variant": "v", "iter": 1, "value": 0.5},
            {"type": "log", "msg": "a line", "timestamp": 1},
        ):
            server.call("events.add", {"task": task, **event})
    return tmp_path / "data"


@pytest.mark.test
@pytest.mark.parametrize("on_engines", [False, pytest.param(True, marks=pytest.mark.check)])
def test_a_data_folder_is_copied_and_served(
    on_engines: bool, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    new = tmp_path / "new"
    settings: dict[str, Any] = request.getfixturevalue("engines") if on_engines else {}
    target = [settings["events"], settings["documents"]] if on_engines else [str(new)]
    assert main(["copy", "--from", str(data), "--to", *target]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "events: 1 of type training_stats_scalar copied" in said
    assert "events: 1 of type log copied" in said
    assert main(["copy", "--to", *target, "--data", str(data)]) == 0
    assert capsys.readouterr().out.splitlines()[-5:] == said[-5:]
    with served(new, **settings) as server:
        tasks = server.call("tasks.get_all", {"order_by": ["name"]})["tasks"]
        assert [task["name"] for task in tasks] == ["other", "t"]
        assert server.call("events.get_task_log", {"task": tasks[1]["id"]})["events"][0]["msg"] == "a line"
        (metric,) = tasks[1]["last_metrics"].values()
        assert next(iter(metric.values()))["value"] == 0.5


async def add_and_be_killed(settings: Settings, owner: Owner, value: float) -> None:
    """Add a point as a server does that is killed before it writes it into the task's document."""
    async with opened(Location(settings)) as (events, _):
        assert events is not None
        later = int(value) + 10**13  # than what the server got
        point = scalars([value], metric="m", variant="v", iters=[int(value)], timestamps=[later], owner=owner)
        await events.add(batch(point))


async def document_of(settings: Settings, task: str) -> Document:
    async with opened(Location(settings)) as (_, documents):
        assert documents is not None
        (found,) = await documents.find("tasks", {"id": task})
    return found


@pytest.mark.test
@pytest.mark.parametrize("on_engines", [False, pytest.param(True, marks=pytest.mark.check)])
def test_last_values_that_a_killed_server_did_not_write_are_there_when_the_copy_ends(
    on_engines: bool, data: Path, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    here, back = Settings(data=data), Settings(data=tmp_path / "back")
    there = Settings(data=tmp_path / "new", **(request.getfixturevalue("engines") if on_engines else {}))
    new = [there.events, there.documents] if on_engines else [str(there.data)]
    with served(data) as server:
        task = server.call("tasks.get_all", {"name": "^t$"})["tasks"][0]["id"]
    before = asyncio.run(document_of(here, task))
    owner = Owner(before["company"], task)
    for value, source, target, from_, to in (
        (7.0, here, there, [str(data)], new),
        (8.0, there, back, new, [str(back.data)]),
    ):
        asyncio.run(add_and_be_killed(source, owner, value))
        for _ in range(2):  # also if it is copied again
            assert main(["copy", "--from", *from_, "--to", *to]) == 0
            found = asyncio.run(document_of(target, task))
            assert [one["value"] for of in found["last_metrics"].values() for one in of.values()] == [value]
            assert (found["last_iteration"], found["last_update"]) == (int(value), before["last_update"])
    if on_engines:
        capsys.readouterr()
        assert main(["copy", "--from", there.events, "--to", str(tmp_path / "events alone")]) == 0
        assert "the next server writes the last values of 1 task or model soon" in capsys.readouterr().out


def test_a_folder_that_a_server_uses_is_not_copied(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["--from", str(server.data), "--to", str(tmp_path / "new")], ["--from", str(server.data)]):
        assert main(["copy", *arguments, "--data", str(tmp_path / "new")]) == 1
        assert f"{server.data}/events is in use by the process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--from", "nothing", "--to", "new"],
            1,
            "there is nothing to copy in the data folder 'nothing': it has no 'events'",
        ),
        (["--from", "new", "--to", "new"], 1, "source and target are the same"),
        (
            ["--from", ELASTICSEARCH, "--to", MONGO],
            1,
            "nothing can be copied: one side names only events, the other one only documents",
        ),
        ([], 2, "--from or --to: say where to copy from, or where to"),
        (["--from", "http://es"], 2, "--from, --to: give a data folder"),
    ],
)
def test_what_cannot_be_copied_is_named(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["copy", *arguments]) == code
    assert capsys.readouterr().err.startswith(f"apiserver: {message}")
    assert list(tmp_path.iterdir()) == []
