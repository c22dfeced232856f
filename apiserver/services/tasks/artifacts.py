"""The artifacts of a task: a list in which (key, mode) is unique; the one sent last wins."""

from __future__ import annotations

from typing import Any

from apiserver.services.backend import Call, endpoint
from apiserver.services.names import escape_keys
from apiserver.services.tasks.documents import editable, revise_task
from apiserver.stores.documents.base import Document, Update

_ARTIFACTS = ["execution.artifacts"]


@endpoint("tasks.add_or_update_artifacts", "2.10")
async def add_or_update_artifacts(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    given = escape_keys(request["artifacts"])

    def merged(task: Document) -> Update:
        return {"$set": {"execution.artifacts": without_duplicates([*artifacts_of(task), *given])}}

    statuses = editable(request["force"])
    return {"updated": int(await revise_task(call, request["task"], merged, fields=_ARTIFACTS, statuses=statuses))}


@endpoint("tasks.delete_artifacts", "2.10")
async def delete_artifacts(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    doomed = {_identity(artifact) for artifact in request["artifacts"]}

    def without(task: Document) -> Update | None:
        before = artifacts_of(task)
        after = [artifact for artifact in before if _identity(artifact) not in doomed]
        return {"$set": {"execution.artifacts": after}} if len(after) < len(before) else None

    statuses = editable(request["force"])
    return {"deleted": int(await revise_task(call, request["task"], without, fields=_ARTIFACTS, statuses=statuses))}


def artifacts_of(task: Document) -> list[Document]:
    """The artifacts of a task."""
    artifacts: list[Document] = task.get("execution", {}).get("artifacts", [])
    return artifacts


def without_duplicates(artifacts: list[Document]) -> list[Document]:
    """The artifacts in the order of their first mention, each as it was mentioned last."""
    return list({_identity(artifact): artifact for artifact in artifacts}.values())


def _identity(artifact: Document) -> tuple[str, str]:
    return artifact["key"], artifact.get("mode", "output")
