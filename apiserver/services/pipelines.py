"""pipelines.*: a pipeline is a project, a run of it a task of type controller there, its steps are the children."""

from __future__ import annotations

import re
from typing import Any

from apiserver.rpc.errors import ApiError
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.many import do_each
from apiserver.services.names import escape
from apiserver.services.project_tree import get_project
from apiserver.services.tasks.cleanup import delete_task
from apiserver.services.tasks.clone import cloned
from apiserver.services.tasks.documents import TASKS, get_task, insert_task
from apiserver.services.tasks.queueing import enqueue_task, wanted_queue, watched
from apiserver.stores.documents.base import Document

_ARGS = "Args"
_DELETE = {
    "force": True,
    "delete_output_models": True,
    "delete_external_artifacts": True,
    "return_file_urls": False,
    "include_pipeline_steps": True,
}


@endpoint("pipelines.start_pipeline", "2.17")
async def start_pipeline(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    original = await get_task(call, request["task"])
    queue = await wanted_queue(call, request)
    run, _ = await cloned(call, original, {})
    run["hyperparams"].setdefault(_ARGS, {}).update(_params(request.get("args", [])))
    run["name"] = await _run_name(call, run)
    await insert_task(call, run)
    await enqueue_task(call, run["id"], queue, {"status_message": "Starting pipeline"})
    return {"pipeline": run["id"], "enqueued": True, **await watched(call, queue, request)}


@endpoint("pipelines.delete_runs", "2.26")
async def delete_runs(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    controllers = {"project": request["project"], "type": "controller"}
    runs = {run["id"] for run in await documents(call).find(TASKS, controllers, projection=["id"])}
    doomed = [id for id in request["ids"] if id in runs]
    if not runs.difference(doomed):
        raise ApiError(400, 160, f"At least one run of a pipeline must stay: project={request['project']}")
    return await do_each(doomed, lambda id: delete_task(call, id, _DELETE))


def _params(args: list[dict[str, Any]]) -> Document:
    """Arguments as hyperparameters, by their (escaped) names."""
    return {escape(arg["name"]): {"section": _ARGS, "value": "", **arg} for arg in args}


async def _run_name(call: Call, run: Document) -> str:
    """The name of the pipeline, numbered from the second run on."""
    if not run.get("project"):
        return str(run["name"])
    name: str = (await get_project(call, run["project"]))["basename"]
    runs = {"project": run["project"], "system_tags": "pipeline", "name": {"$regex": f"^{re.escape(name)}( #[0-9]+)?$"}}
    count = await documents(call).count(TASKS, runs)
    return f"{name} #{count}" if count else name
