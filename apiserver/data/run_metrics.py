"""`/data/metrics`: the newest values of runs that are under way, so that Prometheus can alert on a loss that is NaN."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated

from fastapi import Query, Response

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.data.calls import DataCall, TheCall, bad_parameter
from apiserver.data.parameters import Metrics, Variants, matching, simple_selection
from apiserver.data.places import find_project
from apiserver.data.routes import router
from apiserver.events.model import EventType, Owner, ScalarStats
from apiserver.events.queries import SeriesQuery
from apiserver.operating.metrics.exposition import OPENMETRICS, PLAIN, Family, is_openmetrics, text
from apiserver.rpc.errors import ApiError
from apiserver.services.projects.tree import PROJECTS
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.documents.query import Document, In

routes = router()

#: The most runs and curves of an answer.
_MOST_RUNS, _MOST_CURVES = 1000, 50_000
_BYTES = 2000
#: Runs whose curves are read at once.
_RUNS_AT_ONCE = 50

Project = Annotated[str | None, Query(max_length=1024, description="A project's id or name; without, all projects.")]


@routes.get("/metrics", operation_id="data.metrics.runs", response_class=Response)
async def of_runs(
    call: TheCall,
    project: Project = None,
    metrics: Metrics = [],  # noqa: B006
    variants: Variants = [],  # noqa: B006
) -> Response:
    """The newest value of each curve of all tasks that are running, as Prometheus reads it.

    `apiserver_run_value` may be NaN or infinite. `apiserver_run_last_report_seconds` is when the task last reported.
    """
    tasks = await _running(call, project)
    names = await _project_names(call, tasks)
    stats = await _stats(call, tasks, metrics, variants)
    openmetrics = is_openmetrics(call.headers.get("accept", ""))

    def content() -> bytes:
        return text(_families(tasks, names, stats, matching(metrics, variants)), openmetrics=openmetrics)

    body = await off_loop(sum(map(len, stats)), content)
    return Response(body, headers={"content-type": OPENMETRICS if openmetrics else PLAIN})


async def _stats(
    call: DataCall, tasks: Sequence[Document], metrics: Sequence[str], variants: Sequence[str]
) -> list[list[ScalarStats]]:
    """The statistics of each task's curves, which may be more than are asked for. 400 if there are too many."""
    selection = simple_selection(metrics, variants) or ()
    queries = [SeriesQuery(Owner(task["company"], task["id"]), EventType.SCALAR, selection) for task in tasks]
    stats: list[list[ScalarStats]] = []
    curves = 0
    read = call.backend.events.scalar_stats_of_each
    async with aclosing(answers.some_at_a_time(queries, _RUNS_AT_ONCE, read)) as parts:
        async for part in parts:
            size = sum(map(len, part))
            curves += size
            if curves > _MOST_CURVES:
                message = f"there are more than {_MOST_CURVES} curves: name a project, metrics or variants"
                raise bad_parameter("metric", message)
            answers.hold(_BYTES * size)
            stats += part
    return stats


def _families(
    tasks: Sequence[Document],
    names: Mapping[str | None, str],
    stats: Sequence[Sequence[ScalarStats]],
    is_asked: Callable[[tuple[str, str]], bool],
) -> list[Family]:
    value = Family("apiserver_run_value", "gauge", "The newest value of a curve of a task that is running.")
    iter = Family("apiserver_run_iteration", "gauge", "The iteration of that value.")
    time = Family("apiserver_run_last_report_seconds", "gauge", "When it was reported, in seconds since 1970.")
    for task, of_task in zip(tasks, stats, strict=True):
        run = {"project": names.get(task.get("project"), ""), "task": task["id"], "name": str(task.get("name"))}
        for series in of_task:
            if is_asked((series.metric, series.variant)):
                labels = {**run, "metric": series.metric, "variant": series.variant}
                value.add(series.last_value, **labels)
                iter.add(series.last_iter, **labels)
                time.add(series.max_timestamp / 1000, **labels)
    return [value, iter, time]


async def _running(call: DataCall, project: str | None) -> list[Document]:
    """The tasks that are running, of a project or of all."""
    running: Document = {"status": "in_progress"}
    if project is not None:
        running = {**running, "project": (await find_project(call, project))["id"]}
    elif call.link is not None:
        raise ApiError(403, 0, "The link is for one task or project: name the project")
    documents = call.backend.visible_to(call.caller)
    ids = [task["id"] for task in await documents.find(TASKS, running, projection=["id"], limit=_MOST_RUNS + 1)]
    if len(ids) > _MOST_RUNS:
        raise bad_parameter("project", f"more than {_MOST_RUNS} tasks are running: name a project")
    return await documents.find_kept(TASKS, ids, ("id", "name", "project"))


async def _project_names(call: DataCall, tasks: Sequence[Document]) -> dict[str | None, str]:
    ids = {document["project"] for document in tasks if document.get("project")}
    documents = call.backend.visible_to(call.caller)
    return {document["id"]: document["name"] for document in await documents.find(PROJECTS, {"id": In(list(ids))})}
