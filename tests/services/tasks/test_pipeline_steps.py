"""What is done to a pipeline's controller and, when asked for, to its steps."""

from __future__ import annotations

import pytest

from tests.harness import Api
from tests.services.tasks.calls import get, make, names, refused

pytestmark = pytest.mark.anyio

ALL = ["controller", "done", "waiting"]


@pytest.fixture
async def pipeline(api: Api) -> dict[str, str]:
    """The ids by name: a controller that waits in a queue, as one of its steps does; the other one is completed."""
    controller = await make(api, name="controller", type="controller")
    steps = {name: await make(api, name=name, parent=controller) for name in ("done", "waiting")}
    await api.call("tasks.enqueue_many", {"ids": [controller, steps["waiting"]], "queue_name": "q"})
    await api.call("tasks.completed", {"task": steps["done"], "force": True})
    return {"controller": controller, **steps}


async def statuses(api: Api, pipeline: dict[str, str]) -> list[str]:
    return [(await get(api, pipeline[name]))["status"] for name in ALL]


@pytest.mark.test
@pytest.mark.parametrize(("endpoint", "named"), [("stop", "task"), ("stop_many", "ids")])
async def test_stop(api: Api, pipeline: dict[str, str], endpoint: str, named: str) -> None:
    controller = pipeline["controller"]
    request = {named: controller if named == "task" else [controller]}
    await api.call(f"tasks.{endpoint}", request)
    assert await statuses(api, pipeline) == ["stopped", "completed", "queued"]
    await api.call(f"tasks.{endpoint}", {**request, "include_pipeline_steps": True})
    assert await statuses(api, pipeline) == ["stopped", "completed", "stopped"]


@pytest.mark.parametrize(("endpoint", "named"), [("archive", "tasks"), ("archive_many", "ids")])
async def test_archive_and_back(api: Api, pipeline: dict[str, str], endpoint: str, named: str) -> None:
    controller = pipeline["controller"]
    await api.call(f"tasks.{endpoint}", {named: [controller], "include_pipeline_steps": True})
    assert sorted(await names(api, system_tags=["archived"])) == ALL
    await api.call("tasks.unarchive_many", {"ids": [controller], "include_pipeline_steps": True})
    assert await names(api, system_tags=["archived"]) == []
    await api.call(f"tasks.{endpoint}", {named: [controller]})
    assert await names(api, system_tags=["archived"]) == ["controller"]


async def test_delete(api: Api, pipeline: dict[str, str]) -> None:
    controller = pipeline["controller"]
    assert await refused(api, "tasks.delete", {"task": controller, "include_pipeline_steps": True}) == (400, 123)
    assert sorted(await names(api)) == ALL
    await api.call("tasks.delete_many", {"ids": [controller], "force": True, "include_pipeline_steps": True})
    assert await names(api) == []


async def test_a_task_that_is_no_controller_has_no_steps(api: Api) -> None:
    parent = await make(api, name="parent")
    await make(api, name="child", parent=parent)
    await api.call("tasks.archive", {"tasks": [parent], "include_pipeline_steps": True})
    assert await names(api, system_tags=["archived"]) == ["parent"]
