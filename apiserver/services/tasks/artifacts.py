"""The artifacts of a task: a list in which (key, mode) is unique. A later artifact replaces an earlier one."""

from __future__ import annotations

from typing import Any

from apiserver.services.backend import Call, endpoint
from apiserver.services.documents.keys import escape_keys
from apiserver.services.tasks.task_documents import editable, revise_task
from apiserver.stores.documents.query import Document, Update

_ARTIFACTS = ["execution.artifacts"]


@endpoint("tasks.add_or_update_artifacts", "2.10")
async def add_or_update_artifacts(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    given = escape_keys(request["artifacts"])

    def merged(task: Document) -> Update:
        return Update(set={"execution.artifacts": in_order([*artifacts_of(task), *given])})

    statuses = editable(force=True)
    return {"updated": int(await revise_task(call, request["task"], merged, fields=_ARTIFACTS, statuses=statuses))}


@endpoint("tasks.delete_artifacts", "2.10")
async def delete_artifacts(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    doomed = {_identity(artifact) for artifact in request["artifacts"]}

    def without(task: Document) -> Update | None:
        before = artifacts_of(task)
        after = [artifact for artifact in before if _identity(artifact) not in doomed]
        return Update(set={"execution.artifacts": after}) if len(after) < len(before) else None

    statuses = editable(force=True)
    return {"deleted": int(await revise_task(call, request["task"], without, fields=_ARTIFACTS, statuses=statuses))}


def artifacts_of(task: Document) -> list[Document]:
    """The artifacts of a task."""
    artifacts: list[Document] = task.get("execution", {}).get("artifacts", [])
    return artifacts


def in_order(artifacts: list[Document]) -> list[Document]:
    """The artifacts sorted by key and type, the last one of each identity. The web UI needs their `display_data`."""
    unique = {_identity(artifact): {"display_data": [], **artifact} for artifact in artifacts}.values()
    return sorted(unique, key=lambda artifact: (artifact["key"], artifact["type"]))


def _identity(artifact: Document) -> tuple[str, str]:
    return artifact["key"], artifact.get("mode", "output")
