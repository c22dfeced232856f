"""Models and tasks to work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.harness import Api

Create = Callable[..., Awaitable[str]]


@pytest.fixture
def model(api: Api) -> Create:
    """Makes a model that is not published; its id."""

    async def create(**fields: Any) -> str:
        request = {"name": "a model", "uri": "https://files/m.pkl", "ready": False, **fields}
        made: str = (await api.call("models.create", request))["id"]
        return made

    return create


@pytest.fixture
def task(api: Api) -> Create:
    """Makes a task; its id."""

    async def create(**fields: Any) -> str:
        made: str = (await api.call("tasks.create", {"name": "a task", "type": "training", **fields}))["id"]
        return made

    return create


@pytest.fixture
def get(api: Api) -> Callable[[str], Awaitable[dict[str, Any]]]:
    """A model as clients get it."""

    async def get_by_id(model: str) -> dict[str, Any]:
        found: dict[str, Any] = (await api.call("models.get_by_id", {"model": model}))["model"]
        return found

    return get_by_id


@pytest.fixture
def links(api: Api) -> Callable[[str, str], Awaitable[list[tuple[str, str]]]]:
    """The (name, model) pairs of a task's input or output models."""

    async def models_of(task: str, kind: str) -> list[tuple[str, str]]:
        found = (await api.call("tasks.get_by_id", {"task": task}))["task"]["models"][kind]
        return [(item["name"], item["model"]) for item in found]

    return models_of
