"""Counting and deleting what is in projects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.events.model import Owner
from apiserver.fileserver.addresses import is_in_object_store
from apiserver.services.backend import Call, documents
from apiserver.services.documents.unneeded_files import delete_files, event_urls
from apiserver.services.models.life import unlink
from apiserver.services.projects.children import DATASETS, PIPELINES
from apiserver.services.projects.stats import STATES
from apiserver.services.projects.tree import PROJECTS
from apiserver.services.tasks.cleanup import delete_task
from apiserver.stores.documents.query import Filter, In, Unequal, all_of

#: The tasks that are not reports.
TASKS_WITHOUT_REPORTS: Filter = {"system_tags": Unequal("reports")}

_DELETE = {"force": True, "delete_output_models": True, "return_file_urls": True}


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in some projects."""

    datasets: int
    """How many of the projects are datasets with a version that is not archived."""
    pipelines: int
    """How many of the projects are pipelines with a run that is not archived."""
    inside: Filter
    """The condition for tasks and models in the other projects."""


async def contents_of(call: Call, ids: Sequence[str]) -> Contents:
    """What is in the projects with these ids."""
    datasets = await _kind_of(call, ids, DATASETS)
    pipelines = await _kind_of(call, ids, PIPELINES)
    others = [id for id in ids if id not in datasets and id not in pipelines]
    return Contents(
        await _live(call, datasets, {}),
        await _live(call, pipelines, {"type": "controller"}),
        {"project": In(others)},
    )


async def active(call: Call, collection: str, inside: Filter) -> int:
    """How many of the matching tasks or models are not archived."""
    return await documents(call).count(collection, all_of([inside, STATES["active"]]))


async def _kind_of(call: Call, ids: Sequence[str], kind: Filter) -> set[str]:
    return set(await documents(call).distinct(PROJECTS, "id", all_of([{"id": In(ids)}, kind])))


async def _live(call: Call, projects: set[str], wanted: Filter) -> int:
    """How many of the projects have a matching task that is not archived."""
    if not projects:
        return 0
    inside = all_of([{"project": In(sorted(projects))}, wanted, STATES["active"]])
    return len(await documents(call).distinct("tasks", "project", inside))


async def delete_tasks(call: Call, inside: Filter, *, files: bool) -> dict[str, Any]:
    """Delete the matching tasks, with `files` also their files: `{deleted_tasks, deleted_models, urls}`."""
    urls: dict[str, list[str]] = {"event_urls": [], "artifact_urls": [], "model_urls": []}
    deleted: list[dict[str, Any]] = []
    for task in await documents(call).find("tasks", inside, projection=["id"]):
        try:
            deleted.append(await delete_task(call, task["id"], {**_DELETE, "delete_external_artifacts": files}))
        except Refusal as error:
            if error.why is not Why.NO_TASK:  # another call has deleted it meanwhile
                raise
    for one in deleted:
        for kind, found in one["urls"].items():
            urls[kind] += found
    models = sum(one["deleted_models"] for one in deleted)
    return {"deleted_tasks": len(deleted), "deleted_models": models, "urls": urls}


async def delete_models(call: Call, inside: Filter, urls: dict[str, list[str]], *, files: bool) -> int:
    """Delete the matching models with their events, and with `files` their files; returns how many there were.

    The URLs of their files are added to `urls`.
    """
    models = await documents(call).find("models", inside, projection=["uri"])
    ids = [model["id"] for model in models]
    owners = [Owner(call.identity.company, id, is_model=True) for id in ids]
    weights = {model["uri"] for model in models if model.get("uri")}
    shown = await event_urls(call, owners)
    if files:
        await delete_files(call, shown=shown, made=weights, models=ids)
    urls["model_urls"] += sorted(weights)
    urls["event_urls"] += sorted(filter(is_in_object_store, shown))
    for id in ids:
        await unlink(call, id)
    await call.backend.delete_events(owners)
    return await documents(call).delete("models", {"id": In(ids)}) if ids else 0
