"""A task to report to."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from tests.harness import Api

Add = Callable[..., Awaitable[httpx.Response]]


@pytest.fixture
async def task(api: Api) -> str:
    created: str = (await api.call("tasks.create", {"name": "a task", "type": "training"}))["id"]
    return created


@pytest.fixture
def add(api: Api) -> Add:
    """Sends lines (objects, or text as it is) as one batch."""

    async def send(*lines: dict[str, Any] | str) -> httpx.Response:
        body = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        headers = {"content-type": "application/json-lines"}
        return await api.raw("POST", "/v2.23/events.add_batch", content=body, headers=headers)

    return send
