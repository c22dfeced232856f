"""The input and output models of a task: two lists of `{name, model, updated}` with unique names.

The models need not exist here: a task from another server may name that server's models.
"""

from __future__ import annotations

from typing import Any

from apiserver.common.times import utc_now
from apiserver.services.backend import Call, endpoint
from apiserver.services.tasks.task_documents import editable, revise_task
from apiserver.stores.documents.query import Document, Update

_MODELS = ["models"]


@endpoint("tasks.add_or_update_model", "2.13")
async def add_or_update_model(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    kind, item = request["type"], {"name": request["name"], "model": request["model"], "updated": utc_now()}

    def merged(task: Document) -> Update:
        reached = {"last_iteration": request["iteration"]} if "iteration" in request else {}
        return Update(set={f"models.{kind}": put(models_of(task, kind), item)}, max=reached)

    done = await revise_task(call, request["task"], merged, fields=_MODELS, statuses=editable(force=True))
    return {"updated": int(done)}


@endpoint("tasks.delete_models", "2.13")
async def delete_models(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    doomed = {(item["type"], item["name"]) for item in request["models"]}

    def without(task: Document) -> Update | None:
        before = {kind: models_of(task, kind) for kind in ("input", "output")}
        after = {kind: [m for m in items if (kind, m["name"]) not in doomed] for kind, items in before.items()}
        return Update(set={f"models.{kind}": items for kind, items in after.items()}) if after != before else None

    done = await revise_task(call, request["task"], without, fields=_MODELS, statuses=editable(force=True))
    return {"updated": int(done)}


def models_of(task: Document, kind: str) -> list[Document]:
    """The `input` or `output` models of a task."""
    items: list[Document] = task.get("models", {}).get(kind) or []
    return items


def put(items: list[Document], item: Document) -> list[Document]:
    """`items` with `item` in place of the one with its name, or at the end."""
    return list({**{old["name"]: old for old in items}, item["name"]: item}.values())
