"""What the doctor tells of a server on Elasticsearch and MongoDB."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.events.model import EventType, Owner
from apiserver.operating.doctor.examination import examine
from apiserver.operating.doctor.saying import numbers_of
from apiserver.settings.settings import Settings
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.harness import running_api
from tests.operating.doctor.filled import COMPANY

pytestmark = pytest.mark.anyio

BATCHES = 30


async def test_indices_are_counted_by_task(engines: dict[str, Any], tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data", events=engines["events"], documents=engines["documents"])
    async with running_api(tmp_path / "data", **engines) as api:
        project = (await api.call("projects.create", {"name": "a project"}))["id"]
        made = [await api.call("tasks.create", {"name": name, "type": "training", "project": project}) for name in "ab"]
        owners = [Owner(COMPANY, one["id"]) for one in made]
        events = api.backend.events
        for n in range(BATCHES):
            points = [scalars([n, n + 0.5], iters=[2 * n, 2 * n + 1], owner=one) for one in owners]
            await events.add(batch(*points, lines([f"line {n}"], timestamps=[n], owner=owners[0])))
        await events.add(batch(sample(1, owner=owners[0]), sample(2, owner=owners[0])))
        await events.compact(owners[1])  # type: ignore[attr-defined]
        left = tmp_path / "data" / ".working_copy" / "events"
        left.mkdir(parents=True)
        (left / "events.db").write_bytes(b"x" * 2_000_000)
        found = await examine(settings, checking=True, most=10, say=lambda line: None)
        assert found.findings == []
        assert any("a backup copied there what is in the engines, and was killed" in note for note in found.notes)
        assert found.total is not None
        assert found.notes  # that some numbers are estimates
        by_name = {one.name: one for one in found.owners}
        for name, counted in (("a", (2 * BATCHES, BATCHES, 2)), ("b", (2 * BATCHES, 0, 0))):
            told = numbers_of(by_name[name])  # what has been compacted a moment ago may count twice
            assert all(one <= number <= 2 * one for number, one in zip(told, counted, strict=True))
        assert by_name["b"].parts["chunks"] >= 1
        assert sum(by_name["a"].parts.values()) > 1
        assert [one.name for one in found.projects] == ["a project"]
        assert found.total.bytes > 0
        held = {one.name: one for one in found.held["events"]}
        lines_told = [held[f"logs in {name}"].number or 0 for name in ("fragments", "chunks")]
        assert BATCHES <= sum(lines_told) <= 2 * BATCHES
        assert sum(held[f"{name} of logs"].number or 0 for name in ("fragments", "chunks")) > 0
        assert held["deletions of scalars"].number == 0
        assert held["scalars wait for compaction"].number in (0, 1)
        assert {one.name for one in found.held["documents"]} > {"tasks", "projects"}

        await events.delete([owners[0]], [EventType.SCALAR])
        await events.add(batch(scalars([1.0], owner=Owner(COMPANY, "nobody"))))
        again = await examine(settings, checking=True, most=10, say=lambda line: None)
        assert {one.name: one for one in again.held["events"]}["deletions of scalars"].number == 1
        assert [one.thing for one in again.findings] == ["the task nobody is not there, and has 1 scalar"]


async def test_the_command_looks_at_engines(
    engines: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["doctor", "--events", engines["events"], "--documents", engines["documents"], "--data", str(tmp_path)]
    assert await asyncio.to_thread(main, command) == 2
    assert "has no schema yet: run `apiserver migrate`" in capsys.readouterr().err
    async with running_api(tmp_path / "data", **engines):
        pass
    assert await asyncio.to_thread(main, [*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["well"], report["total"]["points"]) == (True, 0)


async def test_an_engine_that_does_not_answer_cannot_be_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["doctor", "--events", "elasticsearch://127.0.0.1:1", "--data", str(tmp_path)]
    assert await asyncio.to_thread(main, command) == 2
    assert "Elasticsearch cannot be reached" in capsys.readouterr().err
