"""How the order of two calls is written down: a call stops at a step until the other call has done its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from apiserver.common.times import from_now
from apiserver.stores.documents.query import Update
from tests.harness import PATIENCE, Api

Answer = TypeVar("Answer")


class Step:
    """A step of a call, at which the first call stops until `go_on` is set. Calls that come later do not stop."""

    def __init__(self, owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        self._do: Callable[..., Awaitable[Any]] = getattr(owner, name)
        monkeypatch.setattr(owner, name, self._stop)

    async def _stop(self, *arguments: Any, **named: Any) -> Any:
        if not self.reached.is_set():
            self.reached.set()
            await self.go_on.wait()
        return await self._do(*arguments, **named)

    @asynccontextmanager
    async def stops(self, call: Coroutine[Any, Any, Answer]) -> AsyncIterator[asyncio.Task[Answer]]:
        """The call, which is at this step until the block ends."""
        task = asyncio.create_task(call)
        await asyncio.wait_for(self.reached.wait(), PATIENCE)
        try:
            yield task
        finally:
            self.go_on.set()


async def status(api: Api, endpoint: str, request: dict[str, Any]) -> int:
    """The HTTP status of a call."""
    return (await api.raw("POST", f"/{endpoint}", json=request)).status_code


async def events(api: Api, task: str) -> int:
    found: int = (await api.call("events.get_task_events", {"task": task}))["total"]
    return found


async def hold(api: Api, field: str, task: str, seconds: float) -> None:
    """Write what a server leaves that dies while it holds the task."""
    await api.backend.documents.update("tasks", {"id": task}, Update(set={field: from_now(seconds)}))
