"""`/data/usage`: what is kept of the caller's company, and what that costs however often it is asked."""

from __future__ import annotations

import asyncio
import csv
import io
import time
from typing import Any

import pytest

from apiserver.events.model import EventType, Owner
from apiserver.server.bounds import Bounds
from apiserver.services.access.credentials import create_user
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.harness import Api

pytestmark = pytest.mark.anyio


async def filled(api: Api) -> tuple[str, str]:
    """A project and a task in it, with a hundred points in two series, three lines and an image."""
    project = (await api.call("projects.create", {"name": "a project"}))["id"]
    task = (await api.call("tasks.create", {"name": "a, task\n", "type": "training", "project": project}))["id"]
    owner = Owner(api.company, task)
    await api.backend.events.add(
        batch(
            *(scalars([0.5] * 50, variant=name, owner=owner) for name in "ab"),
            *(lines(["one", "two", "three"], owner=owner), sample(1, type=EventType.IMAGE, owner=owner)),
            scalars([1.0], owner=Owner("another company", "secret")),
        )
    )
    return project, task


async def rows(api: Api, query: str = "") -> list[dict[str, Any]]:
    response = await api.raw("GET", f"/data/usage.json{query}")
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()
    return found


@pytest.mark.test
async def test_usage_is_told_by_task_project_and_type(api: Api) -> None:
    project, task = await filled(api)
    by_type = {row["type"]: row for row in await rows(api)}
    assert by_type.keys() == {"scalars", "logs", "images"}
    assert all(row["bytes"] > 0 for row in by_type.values())
    about = {"project": project, "project_name": "a project", "kind": "task", "id": task, "name": "a, task\n"}
    assert by_type["scalars"].items() >= {**about, "series": 2, "points": 100, "lines": 0, "samples": 0}.items()
    assert by_type["logs"].items() >= {**about, "series": 0, "points": 0, "lines": 3, "samples": 0}.items()
    assert by_type["images"].items() >= {**about, "series": 1, "points": 0, "lines": 0, "samples": 1}.items()
    of_project = {row["type"]: row for row in await rows(api, "?by=project")}
    assert of_project["scalars"].items() >= {"project_name": "a project", "points": 100}.items()
    of_all = {row["type"]: row for row in await rows(api, "?by=type")}
    assert {name: row["bytes"] for name, row in of_all.items()} == {name: row["bytes"] for name, row in by_type.items()}
    answered = (await api.raw("GET", "/data/usage.csv?by=task")).text
    assert {row["name"] for row in csv.DictReader(io.StringIO(answered))} == {"a, task\n"}
    assert [row["id"] for row in await rows(api, f"?project={project}") if row["type"] == "logs"] == [task]
    assert await rows(api, "?project=a%20project") == await rows(api, f"?project={project}") != []
    assert await rows(api, "?project=*") == await rows(api)
    assert await rows(api, "?project=") == []
    unknown = await api.raw("GET", "/data/usage.json?project=unknown")
    assert (unknown.status_code, unknown.json()["error"]["message"]) == (404, "There is no project 'unknown'")
    alone = await api.raw("GET", "/data/usage.json?of=task")
    assert (alone.status_code, alone.json()["error"]["message"]) == (400, "of: it goes only with by=quota")
    assert (await api.raw("GET", "/data/usage?by=user")).status_code == 400


@pytest.mark.test
@pytest.mark.own_api
async def test_files_are_told_by_task_and_project_and_those_of_no_task(api: Api) -> None:
    project, task = await filled(api)
    without = (await api.call("tasks.create", {"name": "only files", "type": "training", "project": project}))["id"]
    names = (f"p/a.{task}/artifacts/a", f"p/a.{task}/b", f"p/b.{without}/c", f"p/gone.{'0' * 32}/d", "of nobody")
    for n, name in enumerate(names):
        assert (await api.raw("PUT", f"/files/{name}", content=b"x" * 10**n)).status_code == 200
    by_task = {row["id"]: row for row in await rows(api) if row["type"] == "files"}
    told = {id: (row["name"], row["kind"], row["files"], row["bytes"]) for id, row in by_task.items()}
    assert told == {
        task: ("a, task\n", "task", 2, 11),
        without: ("only files", "task", 1, 100),
        "": ("", "", 2, 11_000),
    }
    assert all(row["series"] == row["points"] == row["lines"] == row["samples"] == 0 for row in by_task.values())
    of_project = [row for row in await rows(api, "?by=project") if row["type"] == "files"]
    assert [(row["project_name"], row["files"], row["bytes"]) for row in of_project] == [
        ("", 2, 11_000),
        ("a project", 3, 111),
    ]
    (in_all,) = [row for row in await rows(api, "?by=type") if row["type"] == "files"]
    assert (in_all["files"], in_all["bytes"]) == (5, 11_111)
    assert {row["id"] for row in await rows(api, f"?project={project}")} == {task, without}
    _, credential = await create_user(api.backend.documents, "another company", "bob", "user")
    response = await api.raw("GET", "/data/usage.json", auth=(credential.key, credential.secret))
    assert "files" not in {row["type"] for row in response.json()}


@pytest.mark.own_api
async def test_another_company_sees_its_own(api: Api) -> None:
    await filled(api)
    _, credential = await create_user(api.backend.documents, "another company", "bob", "user")
    response = await api.raw("GET", "/data/usage.json", auth=(credential.key, credential.secret))
    assert [(row["id"], row["points"]) for row in response.json()] == [("secret", 1)]


#: How many seconds more have passed for a server than for others.
_LATER = {"seconds": 0.0}


@pytest.mark.test
@pytest.mark.bounds(Bounds(clock=lambda: time.monotonic() + _LATER["seconds"]))
async def test_a_thousand_calls_add_up_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(api)
    asked = []
    real = api.backend.events.usage

    async def counted(company: str) -> Any:
        asked.append(company)
        return await real(company)

    monkeypatch.setattr(api.backend.events, "usage", counted)
    for _ in range(10):
        answers = await asyncio.gather(*(api.raw("GET", "/data/usage.json") for _ in range(50)))
        assert {answer.status_code for answer in answers} <= {200, 429}
    strangers = await asyncio.gather(*(api.raw("GET", "/data/usage.json", auth=None) for _ in range(500)))
    assert {answer.status_code for answer in strangers} == {401}
    assert len(asked) == 1
    monkeypatch.setitem(_LATER, "seconds", 3600.0)
    await rows(api)
    assert len(asked) == 2


@pytest.mark.own_api
async def test_what_takes_too_long_is_given_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(api)
    await api.backend.events.merge()  # type: ignore[attr-defined]
    monkeypatch.setattr(api.backend.events, "bounds", EmbeddedBounds(usage_seconds=-1, usage_steps=1))
    response = await api.raw("GET", "/data/usage.json")
    assert response.status_code == 503
    assert "apiserver doctor" in response.json()["error"]["message"]
    assert response.headers["retry-after"] == "600"
    monkeypatch.undo()
    assert len(await rows(api)) == 3  # the connection is as it was
