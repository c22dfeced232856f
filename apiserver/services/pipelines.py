"""pipelines.*: a pipeline is a project, a run is a task of type controller in it, and steps are the run's children.

The SDK puts the pipeline `name` of a project at `project/.pipelines/name`. A run that is started here under a new name
goes to the same place.
"""

from __future__ import annotations

import re
from typing import Any

from apiserver.common.errors import Refusal, Why, validation_error
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.keys import escape
from apiserver.services.documents.many import do_each
from apiserver.services.projects.tree import checked_name, find_by_name, find_or_create, get_project
from apiserver.services.tasks.cleanup import delete_task
from apiserver.services.tasks.clone import cloned
from apiserver.services.tasks.queueing import enqueue_task, wanted_queue, watched
from apiserver.services.tasks.task_documents import TASKS, get_task, insert_task
from apiserver.stores.documents.query import Document, Matches

_ARGS, _PROPERTIES = "Args", "properties"
#: The system tags that the SDK gives a project that is a pipeline.
_SYSTEM_TAGS = ("pipeline", "hidden")
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
    run["hyperparams"].setdefault(_ARGS, {}).update(_params(_ARGS, request.get("args", [])))
    if version := request.get("new_pipeline_version"):
        run["hyperparams"].setdefault(_PROPERTIES, {}).update(
            _params(_PROPERTIES, [{"name": "version", "value": version}])
        )
    answer = await _put_in_new_project(call, run, request)
    run["name"] = await _run_name(call, run, request.get("new_pipeline_run"))
    await insert_task(call, run)
    await enqueue_task(call, run["id"], queue, {"status_message": "Starting pipeline"})
    return {"pipeline": run["id"], "enqueued": True, **answer, **await watched(call, queue, request)}


@endpoint("pipelines.check_new_run", "2.34")
async def check_new_run(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    project = await find_by_name(call, _new_name(await get_task(call, request["task"]), request))
    return {} if project is None else {"existing_project": {"id": project["id"], "name": project["name"]}}


@endpoint("pipelines.delete_runs", "2.26")
async def delete_runs(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    controllers = {"project": request["project"], "type": "controller"}
    runs = {run["id"] for run in await documents(call).find(TASKS, controllers, projection=["id"])}
    doomed = [id for id in request["ids"] if id in runs]
    if not runs.difference(doomed):
        raise Refusal(Why.LAST_PIPELINE_RUN, f"At least one run of a pipeline must stay: project={request['project']}")
    return await do_each(call, "task", doomed, lambda id: delete_task(call, id, _DELETE))


async def _put_in_new_project(call: Call, run: Document, request: dict[str, Any]) -> dict[str, Any]:
    """Put the run into the pipeline that the request names, which is made if needed; returns it for the answer."""
    if not request.get("new_project_name"):
        return {}
    project = await find_or_create(call, _new_name(run, request), {"system_tags": list(_SYSTEM_TAGS)})
    run["project"] = project["id"]
    return {"new_project": {"id": project["id"], "name": project["name"]}}


def _new_name(run: Document, request: dict[str, Any]) -> str:
    """The name of the project for the pipeline that a request names."""
    name: str = request.get("new_pipeline_name") or run["name"]
    if "/" in name or not name.strip():
        raise validation_error("a pipeline's name must not be empty or contain '/'", field="new_pipeline_name")
    project = checked_name(request["new_project_name"], field="new_project_name")
    return checked_name(f"{project}/.pipelines/{name}", field="new_project_name")


def _params(section: str, given: list[dict[str, Any]]) -> Document:
    """Hyperparameters of a section, by escaped name."""
    return {escape(param["name"]): {"section": section, "value": "", **param} for param in given}


async def _run_name(call: Call, run: Document, number: int | None) -> str:
    """The pipeline's name and `number`. Without `number`, runs are numbered from the second on: `train`, `train #1`."""
    if not run.get("project"):
        return str(run["name"])
    name: str = (await get_project(call, run["project"]))["basename"]
    runs = {"project": run["project"], "system_tags": "pipeline", "name": Matches(f"^{re.escape(name)}( #[0-9]+)?$")}
    count = await documents(call).count(TASKS, runs) if number is None else number
    return f"{name} #{count}" if count else name
