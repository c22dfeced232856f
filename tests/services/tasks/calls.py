"""Short calls that the tests of tasks are written with."""

from __future__ import annotations

from typing import Any

from apiserver.stores.documents.query import Update
from tests.harness import Api


async def make(api: Api, **fields: Any) -> str:
    """A new task; its id."""
    created: str = (await api.call("tasks.create", {"name": "a task", "type": "training", **fields}))["id"]
    return created


async def get(api: Api, task: str) -> dict[str, Any]:
    """The task as it is now."""
    found: dict[str, Any] = (await api.call("tasks.get_by_id", {"task": task}))["task"]
    return found


async def put(api: Api, task: str, status: str) -> None:
    """Write the status itself, whatever calls lead there."""
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"status": status}))


async def names(api: Api, **request: Any) -> list[str]:
    """The names of the tasks that get_all finds."""
    return [task["name"] for task in (await api.call("tasks.get_all", request))["tasks"]]


async def refused(api: Api, endpoint: str, request: dict[str, Any]) -> tuple[int, int]:
    """The code and subcode of a call that must fail."""
    meta = (await api.call(endpoint, request, expect=400))["meta"]
    return meta["result_code"], meta["result_subcode"]


async def report(api: Api, task: str, *, metric: str = "loss", variant: str = "train", iter: int = 1) -> None:
    """Send one scalar."""
    event = {"type": "training_stats_scalar", "task": task, "metric": metric, "variant": variant, "iter": iter}
    await api.call("events.add", {**event, "value": 0.5})
