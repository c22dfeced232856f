"""Inputs of tasks in the form of older API versions, which have them in the execution section.

    execution.parameters   hyperparams with type "legacy"
    execution.model_desc   configuration with type "legacy"
    execution.model        the input model
    execution.docker_cmd   container

They are stored in the present form (on the right). Answers to older clients have them in the older form, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.common.errors import validation_error
from apiserver.common.times import utc_now
from apiserver.rpc.versions import Version
from apiserver.stores.documents.query import Document, Update

_LEGACY = "legacy"
_SECTION = "Args"
#: The only section that an older parameter's name may have in front, before a slash.
_SPELLED_SECTION = "TF_DEFINE"
_INPUT_MODEL = "Input Model"
#: The API versions from which clients use the present form.
_PARAMETERS_MOVED, _MODELS_MOVED = Version(2, 9), Version(2, 13)


def modernise(fields: Document) -> None:
    """Turn the older form in `fields`, which are escaped, into the present one, in place."""
    execution = fields.get("execution", {})
    for name, value in (execution.pop("parameters", None) or {}).items():
        section, own = _split(name)
        fields.setdefault("hyperparams", {}).setdefault(section, {})[own] = _item(value)
    for name, value in (execution.pop("model_desc", None) or {}).items():
        fields.setdefault("configuration", {})[name] = _item(value)
    if model := execution.pop("model", None):
        item = {"name": _INPUT_MODEL, "model": model, "updated": utc_now()}
        fields["models"] = {"input": [item]} | fields.get("models", {})
    if command := execution.pop("docker_cmd", None):
        image, _, arguments = command.partition(" ")
        fields["container"] = {"image": image, "arguments": arguments} | fields.get("container", {})


def replacing(task: Document, fields: Document, names: Sequence[str]) -> Update:
    """The update that replaces the task's legacy entries by those of `fields`, in the sections `names`."""
    given = {path: item for name in names for path, item in _entries(name, fields[name]).items()}
    stored = {path: item for name in names for path, item in _entries(name, task.get(name, {})).items()}
    gone = [path for path, item in stored.items() if item.get("type") == _LEGACY and path not in given]
    return Update(set=given, unset=gone)


def with_legacy(task: Document, version: str) -> Document:
    """The task with the older form that clients of `version` read. Its names are not escaped any more."""
    asked = Version.parse(version)
    execution: dict[str, Any] = {}
    if asked < _PARAMETERS_MOVED:
        params = [item for section in task.get("hyperparams", {}).values() for item in section.values()]
        execution["parameters"] = {_full_name(item): item["value"] for item in params if item.get("type") == _LEGACY}
        items = task.get("configuration", {}).items()
        execution["model_desc"] = {name: item["value"] for name, item in items if item.get("type") == _LEGACY}
    output: dict[str, Any] = {}
    if asked < _MODELS_MOVED:
        if models := task.get("models", {}).get("input"):
            execution["model"] = models[0]["model"]
        if models := task.get("models", {}).get("output"):
            output["model"] = models[-1]["model"]
        container = task.get("container", {})
        if container.get("image"):
            execution["docker_cmd"] = f"{container['image']} {container.get('arguments', '')}".rstrip()
    shown = {name: value for name, value in execution.items() if value}
    for name, older in (("execution", shown), ("output", output)):
        if older:
            task = {**task, name: task.get(name, {}) | older}
    return task


def _split(name: str) -> tuple[str, str]:
    section, slash, own = name.partition("/")
    if section != _SPELLED_SECTION or not slash:
        return _SECTION, name
    if not own:
        raise validation_error(f"expected a name after '{_SPELLED_SECTION}/'", field="execution.parameters")
    return section, own


def _full_name(param: Document) -> str:
    return "/".join((param["section"], param["name"])) if param["section"] == _SPELLED_SECTION else param["name"]


def _item(value: Any) -> Document:
    return {"value": "" if value is None else str(value), "type": _LEGACY}


def _entries(name: str, section: Document) -> Document:
    """The parameters or configurations of a stored section, by path."""
    if name == "configuration":
        return {f"{name}.{key}": item for key, item in section.items()}
    return {f"{name}.{outer}.{key}": item for outer, params in section.items() for key, item in params.items()}
