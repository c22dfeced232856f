"""A data folder with some of everything, as a server leaves it that is killed: with a journal, and logs of SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apiserver.events.model import EventBatch, Owner
from apiserver.operating.doctor.examination import Examined, examine
from apiserver.settings.settings import Settings
from apiserver.stores.documents.sqlite.bounds import SqliteBounds
from apiserver.stores.documents.sqlite.engine import SqliteEngine
from apiserver.stores.events.embedded.engine import EmbeddedEngine
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.harness import Api, running_api
from tests.stores.events.embedded.merging import copy_as_of_a_crash
from tests.stores.events.embedded.sizes import SMALL

COMPANY = Settings().company
#: Batches that are added, for two tasks. Each has a line and five points of a series of a task; some have a point of
#: another series, or a plot. The last one is in the journal.
BATCHES, FEW, SELDOM = 21, 10, 7
POINTS = 5 * BATCHES + len(range(0, BATCHES, FEW))
PLOTS = len(range(0, BATCHES, SELDOM))


@asynccontextmanager
async def filled(data: Path) -> AsyncIterator[tuple[Api, list[Owner]]]:
    """A server with two tasks in a project, with events of three types, and with a model and an artifact."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedEngine, "bounds", SMALL)
        patch.setattr(SqliteEngine, "bounds", SqliteBounds(many=0))  # so that lists make side tables
        async with running_api(data) as api:
            project = (await api.call("projects.create", {"name": "a project"}))["id"]
            owners = []
            for name in ("one", "two"):
                task = await api.call("tasks.create", {"name": name, "type": "training", "project": project})
                owners.append(Owner(COMPANY, task["id"]))
            await upload(api, f"/a project/one.{owners[0].id}/artifacts/x.bin", b"12345")
            await upload(api, "/by hand/y.bin", b"1234567")
            uri = f"http://localhost:8081/a%20project/one.{owners[0].id}/artifacts/x.bin"
            artifact = {"key": "x", "type": "custom", "uri": uri}
            await api.call("tasks.add_or_update_artifacts", {"task": owners[0].id, "artifacts": [artifact]})
            await api.call("models.create", {"name": "m", "uri": "s3://bucket/m", "project": project})
            events = api.backend.events
            for n in range(BATCHES - 1):
                await events.add(part(owners, n))
                if n % 5 == 4:
                    await events.merge()  # type: ignore[attr-defined]
            await events.seal()  # type: ignore[attr-defined]
            await events.add(part(owners, BATCHES - 1))
            yield api, owners


def part(owners: list[Owner], n: int) -> EventBatch:
    """The n-th batch."""
    iters = range(5 * n, 5 * n + 5)
    return batch(
        *(scalars([i / 7 for i in iters], iters=iters, owner=one) for one in owners),
        *(scalars([n], iters=[n], metric="few", owner=one) for one in owners if n % FEW == 0),
        *(lines([f"line {n}"], timestamps=[n], digest=b"%d" % n, owner=one) for one in owners),
        *(sample(n, owner=one, document=b'{"plot": "%d"}' % n) for one in owners if n % SELDOM == 0),
    )


async def upload(api: Api, name: str, content: bytes) -> None:
    """Upload a file to the file server, as the SDK does."""
    response = await api.raw("POST", "/files", files={name: ("file", content)})
    assert response.status_code == 200, response.text


async def killed(folder: Path) -> tuple[Path, list[Owner]]:
    """A copy of a folder, as it is while the server runs."""
    async with filled(folder / "running") as (api, owners):
        events = api.backend.events
        assert isinstance(events, EmbeddedEventStore)
        copy_as_of_a_crash(events, folder / "running", folder / "data")
    return folder / "data", owners


async def examined(data: Path, *, most: int = 10, checking: bool = True) -> Examined:
    """What the doctor finds."""
    return await examine(Settings(data=data), checking=checking, most=most, say=lambda line: None)
