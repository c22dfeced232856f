"""Finding models."""

from __future__ import annotations

import re
from typing import Any

from apiserver.common import answers
from apiserver.common.errors import Refusal, Why, invalid_id
from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.documents.keys import escape, unescape
from apiserver.services.documents.public import read_one
from apiserver.services.lists.conditions import QuerySpec, hide_hidden
from apiserver.services.lists.fields import Fields, fields_of
from apiserver.services.lists.filters import only_values
from apiserver.services.lists.queries import list_query
from apiserver.services.lists.references import expand
from apiserver.services.lists.scrolls import scroll_answer, scrolled_page
from apiserver.services.models.model_documents import MODELS, answered
from apiserver.services.projects.tree import with_descendants, with_subprojects
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.documents.query import Document, Filter, In

SPEC = QuerySpec(
    lists=("id", "user", "project", "task", "parent", "uri", "framework", "tags", "system_tags"),
    values=("ready", "metadata.*"),
    times=("created", "last_update", "last_change"),
    ranges=("last_iteration", "last_metrics.*"),
    text=("id", "name", "comment", "tags", "uri"),
)
_METADATA = re.compile(r"metadata\.(.+)\.(key|type|value)", re.DOTALL)
REFERENCES = {"company": "companies", "user": "users", "project": "projects", "task": "tasks", "parent": "models"}


@endpoint("models.get_by_id", "1.0")
async def get_by_id(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _one(call, request["model"])


@endpoint("models.get_by_task_id", "1.0")
async def get_by_task_id(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    task = await read_one(call, TASKS, request["task"], ["models"])
    if not task["models"]["output"]:
        raise Refusal(Why.NO_MODEL, f"The task has no output model: task={task['id']}")
    return await _one(call, task["models"]["output"][-1]["model"])


@endpoint("models.get_all", "1.0")
async def get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _find(call, request, fields_of(request))


@endpoint("models.get_all_ex", "1.0")
async def get_all_ex(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    fields = fields_of(request, REFERENCES)
    answer = await _find(call, request, fields)
    await expand(visible(call), answer["models"], REFERENCES, fields.answered)
    if request.get("include_stats"):
        await _add_stats(call, answer["models"])
    return answer


@endpoint("models.get_by_id_ex", "1.0")
async def get_by_id_ex(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    ids, fields = request["id"], fields_of(request, REFERENCES)
    await call.backend.last_metrics.settle(call.identity.company, models=True, ids=ids)
    stored = await visible(call).find(MODELS, {"id": In(ids)}, projection=fields.read, counted=answers.counter())
    fields.leave_out(stored)
    models = {model["id"]: answered(model) for model in stored}
    if unknown := [id for id in ids if id not in models]:
        raise invalid_id("model", *unknown)
    await expand(visible(call), list(models.values()), REFERENCES, fields.answered)
    return {"models": [models[id] for id in dict.fromkeys(ids)]}


@endpoint("models.get_frameworks", "1.0")
async def get_frameworks(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    projects = request.get("projects")
    chosen = {"project": In(await with_descendants(call, projects))} if projects else {}
    frameworks = await visible(call).distinct(MODELS, "framework", chosen)
    return {"frameworks": [framework for framework in frameworks if framework]}


async def _one(call: Call, model_id: str) -> dict[str, Any]:
    await call.backend.last_metrics.settle(call.identity.company, models=True, ids=[model_id])
    return {"model": answered(await read_one(call, MODELS, model_id))}


async def _find(call: Call, request: dict[str, Any], fields: Fields) -> dict[str, Any]:
    await call.backend.last_metrics.settle(call.identity.company, models=True, ids=only_values(request.get("id")))
    page = await scrolled_page(call, request)
    request = _with_metadata_paths(await with_subprojects(call, request))
    query = list_query(request, SPEC, fields, page, hide_hidden(request))
    models = await visible(call, request).search(MODELS, query)
    fields.leave_out(models)
    return {"models": [answered(model) for model in models], **scroll_answer(call, page, len(models))}


async def _add_stats(call: Call, models: list[Document]) -> None:
    """Add `stats` to each model. Labels are read again, because the request may not have asked for them."""
    chosen: Filter = {"id": In([model["id"] for model in models])}
    labelled = await visible(call).find(MODELS, chosen, projection=["labels"])
    labels = {model["id"]: model["labels"] for model in labelled}
    for model in models:
        model["stats"] = {"labels_count": len(labels.get(model["id"], {}))}


def _with_metadata_paths(request: dict[str, Any]) -> dict[str, Any]:
    """The request with the keys in `metadata.<key>.value` escaped: the SDK sends any key there unescaped."""

    def stored_path(name: str) -> str:
        match = _METADATA.fullmatch(name)
        return f"metadata.{escape(unescape(match[1]))}.{match[2]}" if match else name

    return {stored_path(name): value for name, value in request.items()}
