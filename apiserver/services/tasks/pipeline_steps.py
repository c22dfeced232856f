"""The steps of a pipeline: the tasks whose parent its controller is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeAlias

from apiserver.services.backend import Call, documents
from apiserver.services.tasks.task_documents import TASKS, get_task
from apiserver.stores.documents.base import Document

#: Something done to a task; its answer.
Act: TypeAlias = Callable[[Call, str, dict[str, Any]], Awaitable[dict[str, Any]]]


async def steps_of(
    call: Call, task_id: str, request: dict[str, Any], *, statuses: Collection[str] | None = None
) -> list[str]:
    """The ids of a controller's steps (in one of `statuses`) when `include_pipeline_steps` asks for them."""
    if not request.get("include_pipeline_steps"):
        return []
    if (await get_task(call, task_id, ["type"])).get("type") != "controller":
        return []
    steps: Document = {"parent": task_id, "id": {"$ne": task_id}}
    if statuses is not None:
        steps["status"] = {"$in": list(statuses)}
    return [step["id"] for step in await documents(call).find(TASKS, steps, projection=["id"])]


def of_step(request: dict[str, Any]) -> dict[str, Any]:
    """The request as it goes for a step: by force, and not on to steps of its own."""
    return {**request, "force": True, "include_pipeline_steps": False}


async def do_to_steps_too(
    call: Call, task_id: str, request: dict[str, Any], act: Act, *, statuses: Collection[str] | None = None
) -> dict[str, Any]:
    """Do it to the task, and then to its steps, if the request asks for that; answers what the task's own was."""
    done = await act(call, task_id, request)
    for step in await steps_of(call, task_id, request, statuses=statuses):
        await act(call, step, of_step(request))
    return done
