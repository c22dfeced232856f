"""organization.*, through the whole server."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.harness import Api
from tests.services.test_auth import new_user

pytestmark = pytest.mark.anyio


async def test_tags_are_those_of_tasks_and_models(api: Api) -> None:
    task = {"name": "t", "type": "training", "tags": ["b", "a"], "system_tags": ["archived"]}
    await api.call("tasks.create", task)
    await api.call("models.create", {"name": "m", "uri": "file:///m", "tags": ["c", "a"], "system_tags": ["x"]})

    assert await api.call("organization.get_tags") == {"tags": ["a", "b", "c"]}
    both = await api.call("organization.get_tags", {"include_system": True})
    assert both == {"tags": ["a", "b", "c"], "system_tags": ["archived", "x"]}
    current = {"filter": {"system_tags": ["-archived"]}, "include_system": True}
    assert await api.call("organization.get_tags", current) == {"tags": ["a", "c"], "system_tags": ["x"]}
    assert await api.call("organization.get_tags", {"filter": {"tags": ["b"]}}) == {"tags": ["a", "b"]}


async def test_there_is_one_company_with_all_its_users(api: Api) -> None:
    eve, _ = await new_user(api, "eve")
    adam, _ = await new_user(api, "adam")
    admin = (await api.call("users.get_current_user"))["user"]["id"]

    [company] = (await api.call("organization.get_user_companies"))["companies"]

    assert (company["id"], company["name"]) == (api.backend.settings.company, "default")
    named = [(adam, "adam"), (admin, "admin"), (eve, "eve")]
    assert company["owners"] == [{"id": id, "name": name, "avatar": None} for id, name in named]
    assert company["allocated"] == 3


async def test_things_are_counted_by_kind(api: Api) -> None:
    for name, tags in (("data", ["dataset"]), (".secret", ["hidden"]), ("plain", [])):
        await api.call("projects.create", {"name": name, "description": "", "system_tags": tags})
    await api.call("tasks.create", {"name": "t", "type": "training"})
    await api.call("reports.create", {"name": "r"})
    await api.call("models.create", {"name": "m", "uri": "u"})

    async def count(**request: Any) -> dict[str, int]:
        found: dict[str, int] = await api.call("organization.get_entities_count", request)
        return found

    assert await count() == {}
    assert await count(projects={}, tasks={}, models={}) == {"projects": 2, "tasks": 1, "models": 1}
    assert await count(projects={}, tasks={"name": "t"}, search_hidden=True) == {"projects": 4, "tasks": 1}
    tagged = {"system_tags": ["dataset"]}
    assert await count(datasets=tagged, dataset_versions=tagged) == {"datasets": 1, "dataset_versions": 0}
    await api.call("projects.create", {"name": "pipes/.pipelines/p", "system_tags": ["hidden", "pipeline"]})
    assert await count(pipelines={"system_tags": ["pipeline"]}) == {"pipelines": 1}
    assert await count(reports={}, models={"_any_": {"fields": ["name"], "pattern": "x"}}) == {
        "reports": 1,
        "models": 0,
    }
    assert await count(projects={}, active_users=["nobody"]) == {"projects": 0}
    assert await count(projects={}, limit=1) == {"projects": 1}
    await api.call("organization.get_entities_count", {"tasks": {"name": 5}}, expect=400)
    counts = await count(projects={}, tasks={"name": "("}, models={"filters": {"tags": {"test": []}}})
    errors: Any = counts.pop("errors")
    assert counts == {"projects": 3}
    assert {kind: error.partition(":")[0] for kind, error in errors.items()} == {
        "tasks": "Validation error (field 'name'",
        "models": "Validation error (field 'filters.tags'",
    }


async def test_runs_are_counted_by_type_with_those_below_and_by_user(api: Api) -> None:
    eve, eves = await new_user(api, "eve")
    top = (await api.call("projects.create", {"name": "top"}))["id"]
    below = (await api.call("projects.create", {"name": "top/below"}))["id"]
    for project, type in ((top, "controller"), (below, "controller"), (below, "data_processing"), (below, "training")):
        await api.call("tasks.create", {"name": "t", "type": type, "project": project}, auth=eves)

    criteria = {"project": [top]}
    request = dict.fromkeys(("tasks", "pipeline_runs", "dataset_versions"), criteria)
    counts = await api.call("organization.get_entities_count", request)
    assert counts == {"tasks": 1, "pipeline_runs": 2, "dataset_versions": 1}
    deep = {"tasks": {"project": top, "include_subprojects": True}}
    assert await api.call("organization.get_entities_count", deep) == {"tasks": 4}
    for user, found in ((eve, 4), ("nobody", 0)):
        asked = {**deep, "active_users": [user]}
        assert await api.call("organization.get_entities_count", asked) == {"tasks": found}


async def prepared(api: Api, columns: list[dict[str, Any]], **request: Any) -> str:
    query = {"entity_type": "task", "only_fields": [], "field_mappings": columns, **request}
    prepare_id: str = (await api.call("organization.prepare_download_for_get_all", query))["prepare_id"]
    return prepare_id


async def downloaded(api: Api, prepare_id: str) -> tuple[str, str]:
    """The name of a prepared file, and what is in it."""
    response = await api.raw("GET", f"/v2.34/organization.download_for_get_all?prepare_id={prepare_id}")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.content.startswith("\ufeff".encode())
    return response.headers["content-disposition"], response.content.decode("utf-8-sig")


async def test_a_table_of_tasks_is_a_file(api: Api) -> None:
    project = (await api.call("projects.create", {"name": "a/my ü project"}))["id"]
    for name, lr in (("=first", "1e-3"), ('sec"ond', "2")):
        task = {"name": name, "type": "training", "project": project, "tags": ["a", "b"]}
        await api.call("tasks.create", {**task, "hyperparams": {"Args": {"l.r": {"value": lr}}}})
    await api.call("tasks.create", {"name": "elsewhere", "type": "training"})
    columns: list[dict[str, Any]] = [
        {"field": "name", "name": "NAME"},
        {"field": "type", "values": [{"key": "training", "value": "Training"}]},
        *({"field": field} for field in ("tags", "project.name", "user", "hyperparams.Args.l%2Er.value", "started")),
        {"field": "last_iteration", "name": "ITER"},
    ]
    admin = (await api.call("users.get_current_user"))["user"]["id"]

    name, text = await downloaded(api, await prepared(api, columns, project=[project], order_by=["name"]))

    assert name == "attachment; filename=my___project-tasks.csv"
    assert text == (
        "NAME,type,tags,project.name,user,hyperparams.Args.l%2Er.value,started,ITER\r\n"
        f'\'=first,Training,"a, b",a/my ü project,{admin},1e-3,,0\r\n'
        f'"sec""ond",Training,"a, b",a/my ü project,{admin},2,,0\r\n'
    )
    fields = ["name", "last_iteration"]
    name, text = await downloaded(api, await prepared(api, columns[:1], only_fields=fields, order_by=["-name"]))
    assert name == "attachment; filename=tasks.csv"
    assert text.splitlines() == ["NAME", '"sec""ond"', "elsewhere", "'=first"]


async def test_a_table_has_all_its_pages(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.services.downloads._PAGE", 2)
    for number in range(5):
        await api.call("models.create", {"name": f"m{number}", "uri": "u", "metadata": {"k": {"value": "v"}}})
    columns = [{"field": "name"}, {"field": "metadata.k.value", "name": "k"}]
    name, text = await downloaded(
        api, await prepared(api, columns, entity_type="model", order_by=["name"], page=7, scroll_id="x", size=1)
    )
    assert name == "attachment; filename=models.csv"
    assert text.split() == ["name,k", *(f"m{number},v" for number in range(5))]
    nothing = await prepared(api, columns, entity_type="model", name="^x$")
    assert (await downloaded(api, nothing))[1] == "name,k\r\n"


async def test_what_cannot_be_downloaded_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [{"field": "name"}]
    query = {"entity_type": "task", "field_mappings": columns}
    for request in (
        {**query, "entity_type": "queue"},
        {**query, "field_mappings": [*columns, {"field": "x", "name": "name"}]},
        {**query, "field_mappings": []},
        {**query, "name": "("},
    ):
        await api.call("organization.prepare_download_for_get_all", request, expect=400)
    meta = (await api.call("organization.download_for_get_all", {"prepare_id": "x"}, expect=400))["meta"]
    assert meta["result_subcode"] == 10

    late = await prepared(api, columns)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 301)
    await api.call("organization.download_for_get_all", {"prepare_id": late}, expect=400)
    await prepared(api, columns)
    assert await api.backend.documents.count("downloads", {}) == 1
