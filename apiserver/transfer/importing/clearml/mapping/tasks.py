"""Converts tasks of all types, including reports, pipelines and datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.services.documents.keys import escape_keys
from apiserver.services.tasks.artifacts import in_order
from apiserver.services.tasks.import_times import IMPORTED
from apiserver.services.tasks.legacy import modernise
from apiserver.services.tasks.task_documents import empty_task, new_execution
from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.clearml.mapping.common import Context, base, keyed
from apiserver.transfer.importing.clearml.names import unescape_if_escaped

#: Parts of a task that are converted by themselves.
_SECTIONS = ("hyperparams", "configuration", "container", "execution", "runtime")


def task(document: Mapping[str, Any], context: Context) -> Document:
    """The task as it is stored here."""
    fields = base(document, context)
    plain: Document = escape_keys({name: value for name, value in fields.items() if name not in _SECTIONS})
    empty = empty_task()
    made = {
        **empty,
        **plain,
        "hyperparams": _hyperparams(fields.get("hyperparams"), context),
        "configuration": keyed(fields.get("configuration"), context.name, lambda name, item: {**item, "name": name}),
        "container": keyed(fields.get("container"), context.name, lambda name, value: value),
        "runtime": _runtime(fields.get("runtime"), context),
        "execution": _execution(fields.get("execution"), context),
        "script": empty["script"] | plain.get("script", {}),
        IMPORTED: context.now,
        "models": {kind: (plain.get("models") or {}).get(kind) or [] for kind in ("input", "output")},
    }
    for time in ("last_update", "last_change"):
        made.setdefault(time, made["created"])
    if any(last.get("x_axis_label") for metric in made["last_metrics"].values() for last in metric.values()):
        made["has_x_axis_labels"] = True
    modernise(made)
    made["execution"] = new_execution() | made["execution"]
    return _moved(made, context)


def _hyperparams(sections: Mapping[str, Any] | None, context: Context) -> Document:
    def params(section: str, entries: Mapping[str, Any]) -> Document:
        return keyed(entries, context.name, lambda name, item: {**item, "section": section, "name": name})

    return keyed(sections, context.name, params)


def _runtime(entries: Mapping[str, Any] | None, context: Context) -> Document:
    """The runtime properties. Whether a key is escaped depends on the call that set it."""
    name = unescape_if_escaped if context.escaped else str
    return keyed(entries, name, lambda name, value: escape_keys(value))


def _execution(section: Mapping[str, Any] | None, context: Context) -> Document:
    fields = {name: value for name, value in (section or {}).items() if value is not None}
    artifacts = fields.pop("artifacts", None) or []
    listed = artifacts.values() if isinstance(artifacts, Mapping) else artifacts
    labels = keyed(fields.pop("model_labels", None), context.name, lambda name, value: value)
    made: Document = escape_keys(fields)
    return {**made, "model_labels": labels, "artifacts": in_order([escape_keys(artifact) for artifact in listed])}


def _moved(made: Document, context: Context) -> Document:
    """The task with the addresses of files replaced."""
    moved = context.urls.in_text
    for artifact in made["execution"]["artifacts"]:
        if artifact.get("uri"):
            artifact["uri"] = moved(artifact["uri"])
    if made["output"].get("destination"):
        made["output"]["destination"] = moved(made["output"]["destination"])
    if made.get("report"):
        made["report"] = moved(made["report"])
    if made.get("report_assets"):
        made["report_assets"] = [moved(asset) for asset in made["report_assets"]]
    return made
