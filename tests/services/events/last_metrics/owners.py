"""Owners, their events, and what their documents say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.events.model import Owner
from tests.harness import Api
from tests.reading.events import scalars


async def new_task(api: Api) -> Owner:
    created = await api.call("tasks.create", {"name": "a task", "type": "training"})
    return Owner(api.company, created["id"])


async def add(api: Api, owner: Owner, *points: tuple[int, float], variant: str = "v") -> None:
    batch = scalars(points, variant=variant, owner=owner)
    with api.backend.last_metrics.adding(batch):
        await api.backend.events.add(batch)


async def seen(api: Api, owner: Owner) -> tuple[int, dict[str, float]]:
    """The last iteration, and the last value of each variant."""
    task = (await api.call("tasks.get_by_id", {"task": owner.id}))["task"]
    last = [one for variants in task["last_metrics"].values() for one in variants.values()]
    return task["last_iteration"], {one["variant"]: one["value"] for one in last}


async def unstated(api: Api) -> set[Owner]:
    return {owner async for owner in api.backend.events.owners_to_restate()}


def before(api: Api, monkeypatch: pytest.MonkeyPatch, what: str, do: Callable[..., Any]) -> None:
    """Run `do` with its arguments each time before a method of the documents is called."""
    method = getattr(api.backend.documents, what)

    async def first(*arguments: Any, **named: Any) -> Any:
        await do(*arguments)
        return await method(*arguments, **named)

    monkeypatch.setattr(api.backend.documents, what, first)
