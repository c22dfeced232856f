"""A task with curves, whose data tests read, on each kind of stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from apiserver.server.bounds import Bounds
from tests.harness import Api, running_api
from tests.longer import beyond


class Data:
    """A server with a task "ex/amples/first try", and requests for its data."""

    def __init__(self, api: Api, project: str, task: str) -> None:
        self.api = api
        self.project = project
        self.task = task

    async def add(self, *events: dict[str, Any], task: str | None = None) -> None:
        """Add events to the task; numbers may be NaN or infinite."""
        lines = [orjson.dumps({"task": task or self.task, **event}) for event in events]
        if not lines:
            return
        await self.api.raw("POST", "/events.add_batch", content=b"\n".join(lines))

    async def get(self, address: str, *, expect: int = 200, **options: Any) -> httpx.Response:
        """The answer for an address below /data, or of the task if it begins without a slash."""
        path = f"/data{address}" if address.startswith("/") else f"/data/tasks/{self.task}/{address}"
        answer = await self.api.raw("GET", path, **options)
        assert answer.status_code == expect, answer.text[:500]
        return answer

    async def error(self, address: str, *, expect: int = 400, **options: Any) -> dict[str, Any]:
        """The error of a refused request."""
        error: dict[str, Any] = (await self.get(address, expect=expect, **options)).json()["error"]
        assert error["code"] == expect
        return error


def scalar(metric: str, variant: str, iter: int, value: Any, timestamp: int = 0) -> dict[str, Any]:
    """A point."""
    names = {"type": "training_stats_scalar", "metric": metric, "variant": variant}
    return {**names, "iter": iter, "value": value, "timestamp": timestamp or 1_700_000_000_000 + 100 * iter}


async def make_data(api: Api) -> Data:
    """The server with its task."""
    project = (await api.call("projects.create", {"name": "ex/amples"}))["id"]
    task = (await api.call("tasks.create", {"name": "first try", "type": "training", "project": project}))["id"]
    return Data(api, project, task)


@pytest.fixture
async def data(api: Api) -> Data:
    return await make_data(api)


#: Of the tests that `make check` runs on engines, too: one of each kind of answers.
ON_EACH = pytest.mark.parametrize(
    "data_anywhere", ["embedded", pytest.param("engines", marks=pytest.mark.check)], indirect=True
)


@pytest.fixture(params=beyond(["embedded"], ["embedded", "engines"]))
async def data_anywhere(request: pytest.FixtureRequest, tmp_path: Path, bounds: Bounds | None) -> AsyncIterator[Data]:
    """The server with its task. On engines it is for `make longer`, but for tests that are marked ON_EACH."""
    settings: dict[str, Any] = {} if request.param == "embedded" else request.getfixturevalue("shared_engines")
    async with running_api(tmp_path / "data", bounds, **settings) as api:
        yield await make_data(api)
