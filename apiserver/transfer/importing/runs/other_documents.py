"""Models and projects of runs: made where they are missing. A model is found again by what identifies it."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.events.model import JsonObject
from apiserver.transfer.importing.runs.model import Model
from apiserver.transfer.importing.runs.names import project_name
from apiserver.transfer.importing.runs.server import Server

#: The item of a model's metadata that keeps what identifies it.
SOURCE = "imported_from"


def put_model(server: Server, model: Model, about: JsonObject) -> str:
    """Make the model, or bring it up to date; its id. `about` is as `models.create` takes it."""
    known = {"metadata." + SOURCE + ".value": [model.source], "only_fields": ["id"], "allow_public": False}
    there = server.call("models.get_all", known)["models"]
    metadata = {**about.get("metadata", {}), SOURCE: {"key": SOURCE, "type": "str", "value": model.source}}
    fields = {**about, "metadata": list(metadata.values())}
    if model.project:
        fields["project"] = project_named(server, model.project)
    if there:
        fields.pop("created", None)
        server.call("models.edit", {**fields, "model": there[0]["id"]})
        return str(there[0]["id"])
    return str(server.call("models.create", fields)["id"])


def make_projects(server: Server, projects: Iterable[JsonObject]) -> None:
    """Make the projects that the server lacks. A project has the fields of `projects.create`."""
    for project in sorted(projects, key=lambda one: str(one["name"])):
        project_named(server, str(project["name"]), project)


def project_named(server: Server, name: str, about: JsonObject | None = None) -> str:
    """The id of the project of that name, which is made if there is none."""
    name, _ = project_name(name)
    asked = {"name": f"^{escaped(name)}$", "search_hidden": True, "only_fields": ["name"], "allow_public": False}
    for one in server.call("projects.get_all", asked)["projects"]:
        if one["name"] == name:
            return str(one["id"])
    return str(server.call("projects.create", {"description": "", **(about or {}), "name": name})["id"])


def escaped(name: str) -> str:
    """The name as a part of a regular expression."""
    return "".join(f"\\{one}" if one in r"\.^$*+?{}[]|()" else one for one in name)
