"""The hyperparameters of a task: `{section: {name: {section, name, value, type, description}}}`, names escaped."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import validation_error
from apiserver.services.backend import Call, endpoint
from apiserver.services.documents.keys import escape, unescape
from apiserver.services.tasks.statuses import STATUSES
from apiserver.services.tasks.task_documents import change_task, editable, read_tasks
from apiserver.stores.documents.query import Document, Update

#: The section of user properties, which may be edited in every status. Requests may write it in any case.
_PROPERTIES = "properties"


@endpoint("tasks.get_hyper_params", "1.0")
async def get_hyper_params(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    tasks = await read_tasks(call, request["tasks"], ["hyperparams"])
    return {"params": [{"task": task["id"], "hyperparams": _listed(task)} for task in tasks]}


@endpoint("tasks.edit_hyper_params", "1.0")
async def edit_hyper_params(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    sections = _by_section(request["hyperparams"])
    statuses = _statuses(sections, request["force"])
    await change_task(
        call, request["task"], Update(set=_changes(sections, request["replace_hyperparams"])), statuses=statuses
    )
    return {"updated": 1}


@endpoint("tasks.delete_hyper_params", "1.0")
async def delete_hyper_params(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    doomed: dict[str, list[str]] = {}
    for number, key in enumerate(request["hyperparams"]):
        doomed.setdefault(_section(key, number), []).append(key.get("name", ""))
    paths = [_path(section, name) for section, names in doomed.items() for name in names]
    statuses = _statuses(doomed, request["force"])
    await change_task(call, request["task"], Update(unset=paths), statuses=statuses)
    return {"deleted": 1}


def named_param(section: str, name: str, item: Document) -> Document:
    """A parameter with its section and name, taken from the escaped keys that it is stored under."""
    return {**item, "section": unescape(section), "name": unescape(name)}


def _by_section(items: list[Document]) -> dict[str, dict[str, Document]]:
    """The stored form of a request's items, by section and escaped name. A missing value becomes the empty text."""
    sections: dict[str, dict[str, Document]] = {}
    for number, item in enumerate(items):
        section = _section(item, number)
        if not item.get("name"):
            raise validation_error("is required", field=f"hyperparams[{number}].name")
        params = sections.setdefault(section, {})
        params[escape(item["name"])] = {"value": "", **item, "section": section}
    return sections


def _section(item: Document, number: int) -> str:
    section: str = item.get("section") or ""
    if not section:
        raise validation_error("is required", field=f"hyperparams[{number}].section")
    return _PROPERTIES if section.lower() == _PROPERTIES else section


def _changes(sections: dict[str, dict[str, Document]], replace: str) -> Document:
    if replace == "all":
        return {"hyperparams": {escape(section): params for section, params in sections.items()}}
    if replace == "section":
        return {f"hyperparams.{escape(section)}": params for section, params in sections.items()}
    return {
        f"hyperparams.{escape(section)}.{key}": item
        for section, params in sections.items()
        for key, item in params.items()
    }


def _path(section: str, name: str) -> str:
    """The path of a parameter, or of the whole section if `name` is empty."""
    return f"hyperparams.{escape(section)}.{escape(name)}" if name else f"hyperparams.{escape(section)}"


def _statuses(sections: dict[str, Any], force: bool) -> tuple[str, ...]:
    return STATUSES if set(sections) == {_PROPERTIES} else editable(force)


def _listed(task: Document) -> list[Document]:
    """The parameters of a task, sorted by section and name."""
    sections: dict[str, dict[str, Document]] = task.get("hyperparams") or {}
    items = [named_param(section, name, item) for section, params in sections.items() for name, item in params.items()]
    return sorted(items, key=lambda item: (item["section"], item["name"]))
