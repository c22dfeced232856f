"""A server on either store of documents, as which of two calls comes first is decided by the documents.

The events are on the embedded store. `make check` has the embedded documents, and `make longer` MongoDB.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.server.bounds import Bounds
from tests.engines import mongodb
from tests.harness import Api, running_api
from tests.longer import beyond
from tests.services.tasks.calls import make, put, report


@pytest.fixture(params=beyond(["embedded"], ["embedded", "mongodb"]))
async def api(request: pytest.FixtureRequest, tmp_path: Path, bounds: Bounds | None) -> AsyncIterator[Api]:
    settings: dict[str, Any] = {}
    if request.param == "mongodb":
        url, database = (request.getfixturevalue(name) for name in ("mongodb_url", "mongodb_shared_database"))
        settings = {"documents": mongodb.address(url, database), "migrate_at_start": True}
    async with running_api(tmp_path / "data", bounds, **settings) as running:
        yield running


@pytest.fixture
async def archived(api: Api) -> str:
    """A task that may be deleted without force, with an event."""
    task = await make(api)
    await put(api, task, "completed")
    await report(api, task)
    await api.call("tasks.archive", {"tasks": [task]})
    return task
