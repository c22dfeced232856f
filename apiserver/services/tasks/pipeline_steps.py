"""The steps of a pipeline: the child tasks of its controller."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apiserver.services.backend import Call, documents
from apiserver.services.documents.many import Act
from apiserver.services.tasks.task_documents import TASKS, get_task
from apiserver.stores.documents.query import Document, In, Unequal


async def steps_of(
    call: Call, task_id: str, request: dict[str, Any], *, statuses: Collection[str] | None = None
) -> list[str]:
    """The ids of a controller's steps (in one of `statuses`); none unless the request has `include_pipeline_steps`."""
    if not request.get("include_pipeline_steps"):
        return []
    if (await get_task(call, task_id, ["type"])).get("type") != "controller":
        return []
    steps: Document = {"parent": task_id, "id": Unequal(task_id)}
    if statuses is not None:
        steps["status"] = In(list(statuses))
    return [step["id"] for step in await documents(call).find(TASKS, steps, projection=["id"])]


def of_step(request: dict[str, Any]) -> dict[str, Any]:
    """The request for a step: with `force`, and without steps of its own."""
    return {**request, "force": True, "include_pipeline_steps": False}


async def do_to_steps_too(
    call: Call, task_id: str, request: dict[str, Any], act: Act, *, statuses: Collection[str] | None = None
) -> dict[str, Any]:
    """Call `act` for the task, and then for its steps if the request asks for that; returns the task's answer."""
    done = await act(call, task_id, request)
    for step in await steps_of(call, task_id, request, statuses=statuses):
        await act(call, step, of_step(request))
    return done
