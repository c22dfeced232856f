"""The tree of projects: made by names, changed by renames, moves and merges."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from apiserver.rpc.call import Identity
from apiserver.stores.documents.query import Update
from tests.harness import Api

pytestmark = pytest.mark.anyio


async def make(api: Api, name: str, **fields: Any) -> str:
    made: str = (await api.call("projects.create", {"name": name, **fields}))["id"]
    return made


async def get(api: Api, project: str) -> dict[str, Any]:
    found: dict[str, Any] = (await api.call("projects.get_by_id", {"project": project}))["project"]
    return found


async def tree(api: Api) -> dict[str, str]:
    """All projects: name → id. Each is checked to be where its name says."""
    found = (await api.call("projects.get_all", {"search_hidden": True}))["projects"]
    ids: dict[str, str] = {project["name"]: project["id"] for project in found}
    for project in found:
        parts = project["name"].split("/")
        above = [ids["/".join(parts[:depth])] for depth in range(1, len(parts))]
        assert project["path"] == above, project["name"]
        assert project.get("parent") == (above[-1] if above else None)
        assert project["basename"] == parts[-1]
    return ids


async def refused(api: Api, endpoint: str, request: dict[str, Any]) -> tuple[int, int]:
    meta = (await api.call(f"projects.{endpoint}", request, expect=400))["meta"]
    return meta["result_code"], meta["result_subcode"]


async def test_a_new_project(api: Api) -> None:
    fields = {"description": "d", "tags": ["t"], "system_tags": ["s"], "default_output_destination": "s3://b"}
    project = await get(api, await make(api, "a project", **fields))

    assert project == {**project, **fields}
    assert (project["name"], project["basename"], project["path"]) == ("a project", "a project", [])
    assert "parent" not in project
    assert project["company"] == api.company
    assert project["user"] == (await api.call("users.get_current_user"))["user"]["id"]
    assert project["created"] == project["last_update"]


async def test_parents_are_made_as_names_need_them(api: Api) -> None:
    await make(api, " a / b/c ")
    known = await tree(api)
    assert sorted(known) == ["a", "a/b", "a/b/c"]
    await make(api, "a/b/d")
    assert {**known, **await tree(api)} == await tree(api)
    assert sorted(await tree(api)) == ["a", "a/b", "a/b/c", "a/b/d"]


async def test_parents_of_hidden_places_are_hidden(api: Api) -> None:
    await make(api, "a/.datasets/d", system_tags=["dataset", "hidden"])
    shown = (await api.call("projects.get_all"))["projects"]
    assert [project["name"] for project in shown] == ["a"]


async def test_names_are_unique_also_when_made_at_the_same_time(api: Api) -> None:
    await make(api, "a")
    assert await refused(api, "create", {"name": "a"}) == (400, 801)

    async def create(n: int) -> int:
        body = {"name": f"x/y/{n % 2}"}
        return (await api.raw("POST", "/v2.34/projects.create", json=body)).status_code

    assert sorted(await asyncio.gather(*map(create, range(6)))) == [200, 200, 400, 400, 400, 400]
    assert sorted(await tree(api)) == ["a", "x", "x/y", "x/y/0", "x/y/1"]


async def test_a_name_taken_at_the_same_time_is_in_use_and_not_public(api: Api) -> None:
    async def create(_: int) -> tuple[int, int]:
        meta = (await api.raw("POST", "/v2.34/projects.create", json={"name": "a"})).json()["meta"]
        return meta["result_code"], meta["result_subcode"]

    assert sorted(await asyncio.gather(*map(create, range(16)))) == [(200, 0), *[(400, 801)] * 15]


async def test_a_move_leaves_alone_what_another_call_is_moving(api: Api) -> None:
    a, b, below, x = [await make(api, name) for name in ("a", "a/b", "a/b/c", "x")]
    documents = api.backend.documents_of(Identity("", api.company))
    # Another call has moved b, and not yet what is below.
    place = {"name": "x/b", "parent": x, "path": [x]}
    await documents.update("projects", {"id": b}, Update(set=place))

    assert await api.call("projects.move", {"project": a, "new_location": "y"}) == {"moved": 1}
    assert (await get(api, below))["name"] == "a/b/c"


async def test_a_name_that_something_below_cannot_have_is_in_use(api: Api) -> None:
    a, _, taken = [await make(api, name) for name in ("a", "a/b", "taken")]
    documents = api.backend.documents_of(Identity("", api.company))
    await documents.update("projects", {"id": taken}, Update(set={"name": "y/a/b"}))
    assert await refused(api, "move", {"project": a, "new_location": "y"}) == (400, 801)


@pytest.mark.parametrize("name", ["/team/x", "team//x", "team/x/", "team / x", " /team/ /x / "])
async def test_spare_slashes_and_blanks_are_no_part_of_a_name(api: Api, name: str) -> None:
    async def found(pattern: str) -> list[str]:
        request = {"name": pattern, "only_fields": ["name"]}
        return [one["name"] for one in (await api.call("projects.get_all", request))["projects"]]

    made = await make(api, name, tags=["first"])
    assert sorted(await tree(api)) == ["team", "team/x"]
    # As the SDK does: it looks for the name as it is written, and makes it if there is none.
    exactly = f"^{re.escape(name)}$"
    assert await found(exactly) == ["team/x"]
    assert [one["id"] for one in (await api.call("projects.get_all_ex", {"name": exactly}))["projects"]] == [made]
    assert await found(f"{exactly}|^none$") == []
    assert await make(api, name, tags=["second"]) == made
    assert (await get(api, made))["tags"] == ["first"]
    assert await refused(api, "create", {"name": "team/x"}) == (400, 801)


async def test_spare_slashes_are_no_part_of_a_name_wherever_one_is_given(api: Api) -> None:
    task = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m"}))["id"]
    moved = await api.call("tasks.move", {"ids": [task], "project_name": "/a//b/"})
    assert (await get(api, moved["project_id"]))["name"] == "a/b"
    there = await api.call("models.move", {"ids": [model], "project_name": " a / b"})
    assert (there["project_id"], there["project_name"]) == (moved["project_id"], "a/b")
    cloned = await api.call("tasks.clone", {"task": task, "new_project_name": "a/b//"})
    assert cloned["new_project"] == {"id": moved["project_id"], "name": "a/b"}
    imported = {"source": "s", "name": "t", "project_name": "//a/b"}
    run = (await api.call("tasks.import_run", imported))["id"]
    assert (await api.call("tasks.get_by_id", {"task": run}))["task"]["project"] == moved["project_id"]

    project = moved["project_id"]
    assert (await api.call("projects.update", {"project": project, "name": "/a//c"}))["fields"]["name"] == "a/c"
    await api.call("projects.move", {"project": project, "new_location": "/x//y/"})
    assert sorted(await tree(api)) == ["a", "x", "x/y", "x/y/c"]
    await api.call("projects.move", {"project": project, "new_location": " / "})
    assert sorted(await tree(api)) == ["a", "c", "x", "x/y"]
    with_data = await api.raw("GET", "/data/projects/%2Fx%2F%2Fy/tasks.json")
    assert with_data.status_code == 200


@pytest.mark.parametrize("name", ["", " ", "x" * 1025])
async def test_names_of_no_length_or_too_long_are_refused(api: Api, name: str) -> None:
    meta = (await api.call("projects.create", {"name": name}, expect=400))["meta"]
    assert (meta["result_subcode"], meta["error_data"]) == (12, {"field": "name"})
    assert await tree(api) == {}


@pytest.mark.parametrize("name", ["/", " / /"])
async def test_a_name_is_more_than_where_it_would_be(api: Api, name: str) -> None:
    assert await refused(api, "create", {"name": name}) == (400, 407)
    assert await tree(api) == {}


async def test_the_tree_is_of_limited_depth(api: Api) -> None:
    await make(api, "/".join("abcdefghij"))
    assert await refused(api, "create", {"name": "/".join("abcdefghijk")}) == (400, 409)
    assert await make(api, "//".join("abcdefghij")) in (await tree(api)).values()
    assert await refused(api, "create", {"name": "//".join("abcdefghijk")}) == (400, 409)


async def test_an_update_changes_what_is_given(api: Api) -> None:
    project = await make(api, "a", description="old", tags=["t"])
    answer = await api.call("projects.update", {"project": project, "description": "new", "system_tags": ["s"]})
    assert (answer["updated"], answer["fields"]["description"]) == (1, "new")
    now = await get(api, project)
    assert (now["description"], now["tags"], now["system_tags"]) == ("new", ["t"], ["s"])
    assert now["last_update"] > now["created"]
    assert (await api.call("projects.update", {"project": project}))["updated"] == 0
    assert await refused(api, "update", {"project": "none", "description": "x"}) == (400, 401)


async def test_a_new_name_is_seen_in_all_names_below(api: Api) -> None:
    for name in ("a/b/c/d", "a/bb"):
        await make(api, name)
    before = await tree(api)

    answer = await api.call("projects.update", {"project": before["a/b"], "name": "a/new"})

    assert answer["fields"]["basename"] == "new"
    after = await tree(api)
    assert sorted(after) == ["a", "a/bb", "a/new", "a/new/c", "a/new/c/d"]
    assert after["a/new/c/d"] == before["a/b/c/d"]
    assert await refused(api, "update", {"project": after["a/new"], "name": "a/bb"}) == (400, 801)
    assert await refused(api, "update", {"project": after["a/new"], "name": "b/new"}) == (400, 408)
    assert await refused(api, "update", {"project": after["a/new"], "name": ""}) == (400, 12)
    assert await tree(api) == after


async def test_a_move_takes_along_what_is_below(api: Api) -> None:
    for name in ("a/b/c", "x"):
        await make(api, name)
    before = await tree(api)

    assert await api.call("projects.move", {"project": before["a/b"], "new_location": "x/y"}) == {"moved": 2}
    assert sorted(await tree(api)) == ["a", "x", "x/y", "x/y/b", "x/y/b/c"]
    assert await api.call("projects.move", {"project": before["a/b"], "new_location": ""}) == {"moved": 2}
    after = await tree(api)
    assert sorted(after) == ["a", "b", "b/c", "x", "x/y"]
    assert (after["b"], after["b/c"]) == (before["a/b"], before["a/b/c"])


async def test_moves_that_cannot_be(api: Api) -> None:
    for name in ("a/b", "b", "c"):
        await make(api, name)
    ids = await tree(api)
    assert await refused(api, "move", {"project": ids["a/b"], "new_location": "a"}) == (400, 410)
    assert await refused(api, "move", {"project": ids["c"]}) == (400, 410)
    assert await refused(api, "move", {"project": ids["a"], "new_location": "a/b"}) == (400, 411)
    for location in ("a", " a / b ", "a /b", "/a"):
        assert await refused(api, "move", {"project": ids["a"], "new_location": location}) == (400, 411)
    assert await refused(api, "move", {"project": ids["b"], "new_location": "a"}) == (400, 801)
    assert await tree(api) == ids


@pytest.mark.test
async def test_nothing_is_moved_too_deep(api: Api) -> None:
    chain = "1/2/3/4/5/6/7/8/9"
    for name in (chain, "a/b/c"):
        await make(api, name)
    ids = await tree(api)
    assert await refused(api, "move", {"project": ids["a"], "new_location": chain[:-2]}) == (400, 409)
    for source, target in (("1", "a/b/c"), ("a", chain)):
        merge = {"project": ids[source], "destination_project": ids[target]}
        assert await refused(api, "merge", merge) == (400, 409)
    assert await tree(api) == ids
    merge = {"project": ids["a"], "destination_project": ids[chain[:-2]]}
    assert await api.call("projects.merge", merge) == {"moved_entities": 0, "moved_projects": 2}


async def test_projects_tell_that_what_is_in_them_changed(api: Api) -> None:
    for name in ("a", "b"):
        await make(api, name)
    ids = await tree(api)

    async def changed(*names: str) -> bool:
        found = (await api.call("projects.get_all", {"only_fields": ["name", "last_update"]}))["projects"]
        times = {project["name"]: project["last_update"] for project in found}
        told = {name for name in ids if times[name] != seen.get(name)}
        seen.update(times)
        return told == set(names)

    seen: dict[str, str] = {}
    assert await changed("a", "b")
    inner = await make(api, "a/x")
    assert await changed("a")
    await api.call("projects.move", {"project": inner, "new_location": "b"})
    assert await changed("a", "b")
    await api.call("projects.merge", {"project": inner, "destination_project": ids["a"]})
    assert await changed("a", "b")


async def test_a_merge_moves_all_and_deletes_the_source(api: Api) -> None:
    for name in ("from/sub/deep", "to"):
        await make(api, name)
    ids = await tree(api)
    task = (await api.call("tasks.create", {"name": "t", "type": "training", "project": ids["from"]}))["id"]
    await api.call("models.create", {"name": "m", "uri": "file:///m", "project": ids["from"]})

    answer = await api.call("projects.merge", {"project": ids["from"], "destination_project": ids["to"]})

    assert answer == {"moved_entities": 2, "moved_projects": 2}
    assert sorted(await tree(api)) == ["to", "to/sub", "to/sub/deep"]
    assert (await api.call("tasks.get_by_id", {"task": task}))["task"]["project"] == ids["to"]
    await api.call("tasks.move", {"ids": [task], "project": ids["from/sub"]})
    assert await api.call("projects.merge", {"project": ids["from/sub"]}) == {"moved_entities": 1, "moved_projects": 1}
    assert sorted(await tree(api)) == ["deep", "to"]
    assert "project" not in (await api.call("tasks.get_by_id", {"task": task}))["task"]


async def test_merges_that_cannot_be(api: Api) -> None:
    await make(api, "a/b")
    ids = await tree(api)
    assert await refused(api, "merge", {"project": ids["a"], "destination_project": ids["a"]}) == (400, 410)
    assert await refused(api, "merge", {"project": ids["a"], "destination_project": ids["a/b"]}) == (400, 412)
    assert await refused(api, "merge", {"project": ids["a"], "destination_project": "none"}) == (400, 401)
    assert await tree(api) == ids


async def test_projects_with_contents_are_deleted_by_force_only(api: Api) -> None:
    await make(api, "a/b")
    ids = await tree(api)
    task = (await api.call("tasks.create", {"name": "t", "type": "training", "project": ids["a/b"]}))["id"]
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "project": ids["a"]}))["id"]

    counts = await api.call("projects.validate_delete", {"project": ids["a"]})
    nothing_else = {"reports": 0, "non_archived_reports": 0, "datasets": 0, "pipelines": 0}
    assert counts == {"tasks": 1, "non_archived_tasks": 1, "models": 1, "non_archived_models": 1, **nothing_else}
    assert await refused(api, "delete", {"project": ids["a"]}) == (400, 402)
    await api.call("tasks.archive", {"tasks": [task]})
    assert await refused(api, "delete", {"project": ids["a"]}) == (400, 405)
    await api.call("models.archive_many", {"ids": [model]})
    counts = await api.call("projects.validate_delete", {"project": ids["a"]})
    assert counts == {"tasks": 1, "non_archived_tasks": 0, "models": 1, "non_archived_models": 0, **nothing_else}

    answer = await api.call("projects.delete", {"project": ids["a"]})
    assert (answer["deleted"], answer["disassociated_tasks"], answer["deleted_tasks"]) == (2, 1, 0)
    assert await tree(api) == {}
    assert "project" not in (await api.call("tasks.get_by_id", {"task": task}))["task"]
    assert "project" not in (await api.call("models.get_by_id", {"model": model}))["model"]
    assert await refused(api, "get_by_id", {"project": ids["a"]}) == (400, 401)


@pytest.mark.test
@pytest.mark.parametrize(("kind", "subcode"), [("dataset", 406), ("pipeline", 413)])
async def test_projects_with_datasets_or_pipelines_are_deleted_by_force_only(api: Api, kind: str, subcode: int) -> None:
    async def count() -> int:
        found: int = (await api.call("projects.validate_delete", {"project": project}))[f"{kind}s"]
        return found

    project = await make(api, "a")
    inner = {"name": f"a/.{kind}s/one", "description": "", "system_tags": [kind]}
    place = (await api.call("projects.create", inner))["id"]
    assert await count() == 0
    types = {"dataset": "data_processing", "pipeline": "controller"}
    new = {"name": "t", "type": types[kind], "project": place, "system_tags": [kind]}
    task = (await api.call("tasks.create", new))["id"]
    assert await count() == 1
    assert await refused(api, "delete", {"project": project}) == (400, subcode)
    await api.call("tasks.archive", {"tasks": [task]})
    assert await count() == 0
    await api.call("projects.delete", {"project": project})


async def test_a_delete_may_take_the_contents_along(api: Api) -> None:
    project = await make(api, "a")
    task = (await api.call("tasks.create", {"name": "t", "type": "training", "project": project}))["id"]
    await api.call("models.create", {"name": "m", "uri": "file:///m", "project": project})
    image = {"type": "training_debug_image", "task": task, "metric": "m", "variant": "v", "iter": 1, "key": "k"}
    await api.call("events.add", {**image, "url": "http://files/i"})

    answer = await api.call("projects.delete", {"project": project, "force": True, "delete_contents": True})

    assert (answer["deleted"], answer["deleted_tasks"], answer["deleted_models"]) == (1, 1, 1)
    assert answer["urls"] == {"event_urls": [], "artifact_urls": [], "model_urls": ["file:///m"]}
    assert (await api.call("tasks.get_all"))["tasks"] == []
    assert (await api.call("models.get_all"))["models"] == []


async def test_reports_are_counted_apart(api: Api) -> None:
    project = await make(api, "a")
    await api.call("tasks.create", {"name": "t", "type": "training", "project": project})
    report = (await api.call("reports.create", {"name": "r", "project": project}))["id"]
    await api.call("reports.create", {"name": "r", "project": project})
    await api.call("reports.archive", {"task": report})
    counts = await api.call("projects.validate_delete", {"project": project})
    assert (counts["tasks"], counts["non_archived_tasks"]) == (1, 1)
    assert (counts["reports"], counts["non_archived_reports"]) == (2, 1)


@pytest.mark.test
async def test_a_project_is_deleted_also_when_its_tasks_are_meanwhile(api: Api) -> None:
    project = await make(api, "a")
    new = {"name": "t", "type": "training", "project": project}
    tasks = [(await api.call("tasks.create", new))["id"] for _ in range(10)]

    answers = await asyncio.gather(
        api.call("projects.delete", {"project": project, "force": True, "delete_contents": True}),
        api.call("tasks.delete_many", {"ids": tasks[::-1], "force": True}),
    )
    assert answers[0]["deleted"] == 1
    assert await tree(api) == {}


@pytest.mark.test
@pytest.mark.parametrize("end", ["delete", "merge"])
async def test_what_is_put_into_a_project_that_goes_meanwhile_is_in_none_or_goes_along(api: Api, end: str) -> None:
    project = await make(api, "a")
    new = {"name": "t", "type": "training", "project": project}
    for _ in range(5):
        await api.call("tasks.create", new)
    how: dict[str, Any] = {"force": True, "delete_contents": True}
    if end == "merge":
        how = {"destination_project": await make(api, "b")}

    gone = asyncio.create_task(api.call(f"projects.{end}", {"project": project, **how}))
    while not gone.done():
        await api.raw("POST", "/v2.34/tasks.create", json=new)

    await gone
    tasks = (await api.call("tasks.get_all", {"only_fields": ["project"]}))["tasks"]
    assert {task.get("project") for task in tasks} <= {None, *(await tree(api)).values()}


async def test_tasks_elsewhere_tell_that_a_model_was_deleted_with_its_project(api: Api) -> None:
    project = await make(api, "a")
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "project": project}))["id"]
    models = {"input": [{"name": "m", "model": model}]}
    task = (await api.call("tasks.create", {"name": "t", "type": "training", "models": models}))["id"]
    await api.call("projects.delete", {"project": project, "force": True, "delete_contents": True})
    [told] = (await api.call("tasks.get_by_id", {"task": task}))["task"]["models"]["input"]
    assert told["model"] == f"__DELETED__{model}"
