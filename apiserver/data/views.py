"""Short addresses of pages, and their named views. `services/projects/views.py` says what they are."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Query
from pydantic import BaseModel, Field

from apiserver.data.calls import DataCall, TheCall, bad_parameter
from apiserver.data.places import find_project
from apiserver.data.routes import router
from apiserver.services.projects import views
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.scoped import CompanyDocuments

routes = router()


class View(BaseModel, extra="forbid"):
    """The address of a page that is to be stored. With a name, it becomes a view of a project."""

    address: str = Field(min_length=1, max_length=views.LONGEST, description="`/projects/…?…`, without the server.")
    name: str | None = Field(None, min_length=1, max_length=200, description="Saves it as a view of `project`.")
    project: str | None = Field(None, min_length=1, max_length=100, description="A project's id; `*`: all projects.")
    shared: bool = Field(False, description="Whether others see the named view. Short addresses open for everybody.")


@routes.post("/views", operation_id="data.views.save", responses={200: {"description": "The view"}})
async def save(call: TheCall, view: Annotated[View, Body()]) -> Any:
    """Keep an address of a page. The `short` address leads there, for everybody in the company.

    With a `name` and a `project`, it is saved as a named view.
    """
    documents = _documents(call)
    if view.name is None:
        return _shown(await views.keep(documents, call.caller, view.address, call.backend.bounds))
    if view.project is None:
        raise bad_parameter("project", "a named view belongs to a project")
    place = {"name": view.name, "project": (await find_project(call, view.project))["id"]}
    return _shown(
        await views.save(documents, call.caller, view.address, call.backend.bounds, **place, shared=view.shared)
    )


@routes.get("/views", operation_id="data.views.list", responses={200: {"description": "The named views"}})
async def of_project(
    call: TheCall, project: Annotated[str, Query(max_length=100, description="A project's id, or `*`.")]
) -> Any:
    """The named views of a project: the caller's own, then those that others share, each by name; at most 1,000."""
    documents = _documents(call)
    found = await find_project(call, project)
    return [
        _shown(one)
        for one in await views.of_project(documents, call.caller, found["id"], call.backend.bounds.listed_views)
    ]


@routes.get("/views/{id}", operation_id="data.views.get", responses={200: {"description": "The view"}})
async def one(call: TheCall, id: str) -> Any:
    """The address that is kept under an id."""
    return _shown(await views.find(_documents(call), call.caller, id))


@routes.post("/views/{id}/delete", operation_id="data.views.delete", responses={200: {"description": "Nothing"}})
async def delete(call: TheCall, id: str) -> Any:
    """Delete a view. Only its maker and admins may."""
    await views.delete(_documents(call), call.caller, id)
    return {}


def _documents(call: DataCall) -> CompanyDocuments:
    call.refuse_link()
    return call.backend.documents_of(call.caller)


def _shown(view: Document) -> Document:
    return {**{name: view.get(name) for name in views.SHOWN}, "short": f"/s/{view['id']}"}
