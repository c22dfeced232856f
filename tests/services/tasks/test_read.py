"""Finding tasks."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from apiserver.stores.documents.query import Update
from tests.harness import Api
from tests.services.tasks.calls import get, make, names, refused, report

pytestmark = pytest.mark.anyio


def digest(name: str) -> str:
    return hashlib.md5(name.encode()).hexdigest()


async def test_an_unknown_task_is_an_error_as_the_sdk_expects(api: Api) -> None:
    assert await refused(api, "tasks.get_by_id", {"task": "none"}) == (400, 101)
    await make(api)
    for ids in (["none"], "none", []):
        assert await refused(api, "tasks.get_by_id_ex", {"id": ids}) == (400, 101)


async def test_readers_see_what_was_just_reported(api: Api) -> None:
    task = await make(api)
    for iter in range(1, 4):
        await report(api, task, iter=iter)
        assert (await get(api, task))["last_iteration"] == iter
    [found] = (await api.call("tasks.get_all", {"id": [task], "only_fields": ["last_metrics"]}))["tasks"]
    last = found["last_metrics"][digest("loss")][digest("train")]
    assert (last["metric"], last["variant"], last["value"]) == ("loss", "train", 0.5)
    assert found.keys() == {"id", "last_metrics"}


@pytest.mark.test
async def test_each_filter(api: Api) -> None:
    user = (await api.call("users.get_current_user"))["user"]["id"]
    project = (await api.call("projects.create", {"name": "p"}))["id"]
    first = await make(api, name="Alpha one", project=project, tags=["x"], hyperparams={"Args": {"lr": {"value": "1"}}})
    second = await make(api, name="beta [two]", type="testing", parent=first, comment="note", runtime={"host": "h"})
    await api.call("tasks.started", {"task": second})
    hidden = await make(api, name="hidden", system_tags=["hidden"])

    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["Alpha one", "beta [two]"]),
        ({"id": [], "type": [], "user": None, "status": [], "project": None}, ["Alpha one", "beta [two]"]),
        ({"id": [second]}, ["beta [two]"]),
        ({"id": ["none"]}, []),
        ({"id": [hidden]}, ["hidden"]),
        ({"search_hidden": True, "order_by": ["-name"]}, ["hidden", "beta [two]", "Alpha one"]),
        ({"name": "^Alpha"}, ["Alpha one"]),
        ({"name": "alpha"}, []),
        ({"name": r"^beta\ \[two\]$"}, ["beta [two]"]),
        ({"_any_": {"fields": ["name", "comment"], "pattern": "ALPHA|note"}}, ["Alpha one", "beta [two]"]),
        ({"_all_": {"fields": ["name", "comment"], "pattern": "t"}}, ["beta [two]"]),
        ({"search_text": "TWO not"}, ["beta [two]"]),
        ({"project": [project]}, ["Alpha one"]),
        ({"project": [None]}, ["beta [two]"]),
        ({"user": [user]}, ["Alpha one", "beta [two]"]),
        ({"user": ["other"]}, []),
        ({"type": ["testing", "custom"]}, ["beta [two]"]),
        ({"status": ["in_progress"]}, ["beta [two]"]),
        ({"status": ["-in_progress"]}, ["Alpha one"]),
        ({"parent": first}, ["beta [two]"]),
        ({"tags": ["x"]}, ["Alpha one"]),
        ({"status_changed": [">2026-01-01"]}, ["beta [two]"]),
        ({"last_update": ["<2026-01-01"]}, []),
        ({"hyperparams.Args.lr.value": ["1", "2"]}, ["Alpha one"]),
        ({"runtime.host": "h"}, ["beta [two]"]),
        ({"page": 1, "page_size": 1}, ["beta [two]"]),
        ({"page": 2, "page_size": 1}, []),
    ]
    for request, wanted in cases:
        assert await names(api, **request) == wanted, request


async def test_tasks_are_found_by_their_metrics(api: Api) -> None:
    for iter in (1, 5):
        await report(api, await make(api, name=f"at {iter}"), iter=iter)
    field = f"last_metrics.{digest('loss')}.{digest('train')}.min_value_iteration"
    assert await names(api, last_iteration=[2, None]) == ["at 5"]
    assert await names(api, **{field: ["0", "3"]}) == ["at 1"]
    assert await names(api, order_by=[f"-{field}"]) == ["at 5", "at 1"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"name": "("}, "name"),
        ({"status_changed": ["soon"]}, "status_changed"),
        ({"page_size": 0}, "page_size"),
        ({"page": -1}, "page"),
        ({"tags": ["__$not"]}, "tags"),
        ({"last_iteration": [1, 2, 3]}, "last_iteration"),
        ({"_any_": {"fields": "name", "pattern": "x"}}, "_any_.fields"),
    ],
)
async def test_bad_conditions_name_the_field(api: Api, request_: dict[str, Any], field: str) -> None:
    meta = (await api.call("tasks.get_all", request_, expect=400))["meta"]
    assert (meta["result_code"], meta["result_subcode"]) == (400, 12)
    assert meta["error_data"] == {"field": field}


async def test_only_fields_reach_into_sections(api: Api) -> None:
    task = await make(
        api, execution={"artifacts": [{"key": "k", "type": "t"}]}, hyperparams={"a.b": {"c": {"value": "1"}}}
    )
    fields = ["name", "execution.artifacts", "hyperparams.a%2Eb.c.value", "status_message"]
    [found] = (await api.call("tasks.get_all", {"id": [task], "only_fields": fields}))["tasks"]
    assert found == {
        "id": task,
        "name": "a task",
        "execution": {"artifacts": [{"key": "k", "type": "t", "mode": "output", "display_data": []}]},
        "hyperparams": {"a.b": {"c": {"value": "1"}}},
    }


async def test_pages_neither_skip_nor_repeat(api: Api) -> None:
    made = [await make(api, name="same") for _ in range(7)]
    for order in (["name"], ["-name"], []):
        pages = [
            [task["id"] for task in (await api.call("tasks.get_all", request))["tasks"]]
            for request in ({"order_by": order, "page": page, "page_size": 3} for page in range(4))
        ]
        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert sorted(id for page in pages for id in page) == sorted(made)


async def test_scrolling(api: Api) -> None:
    made = [await make(api, name=f"{n}") for n in range(5)]
    seen: list[str] = []
    scroll: dict[str, Any] = {"scroll_id": None}
    while found := await api.call("tasks.get_all_ex", {"size": 2, "order_by": ["name"], **scroll}):
        if not found["tasks"]:
            break
        seen += [task["id"] for task in found["tasks"]]
        scroll = {"scroll_id": found["scroll_id"]}
    assert seen == made
    again = await api.call("tasks.get_all_ex", {"size": 2, "order_by": ["name"], **scroll, "refresh_scroll": True})
    assert [task["id"] for task in again["tasks"]] == made


async def test_ex_calls_say_more_of_what_tasks_refer_to(api: Api) -> None:
    project = (await api.call("projects.create", {"name": "p", "tags": ["t"]}))["id"]
    parent = await make(api, name="the parent")
    task = await make(api, project=project, parent=parent)
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m"}))["id"]
    await api.call("tasks.add_or_update_model", {"task": task, "name": "in", "model": model, "type": "input"})
    user = (await api.call("users.get_current_user"))["user"]
    fields = [
        "project.name",
        "project.tags",
        "parent.name",
        "user.name",
        "models.input.model.name",
        "company",
        "status",
    ]

    calls = [("tasks.get_all_ex", [task]), ("tasks.get_by_id_ex", [task]), ("tasks.get_by_id_ex", task)]
    for endpoint, ids in calls:
        [found] = (await api.call(endpoint, {"id": ids, "only_fields": fields}))["tasks"]
        assert found == {
            "id": task,
            "project": {"id": project, "name": "p", "tags": ["t"]},
            "parent": {"id": parent, "name": "the parent"},
            "user": {"id": user["id"], "name": user["name"]},
            "models": {"input": [{"model": {"id": model, "name": "m"}}]},
            "company": {"id": api.company},
            "status": "created",
        }
    [whole] = (await api.call("tasks.get_all_ex", {"id": [task]}))["tasks"]
    assert whole["project"] == {"id": project}
    assert whole["models"]["input"][0]["name"] == "in"


async def test_a_reference_to_nothing_is_answered_still(api: Api) -> None:
    task = await make(api)
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"project": "gone"}))
    [found] = (await api.call("tasks.get_all_ex", {"only_fields": ["project.name"]}))["tasks"]
    assert found["project"] == {"id": "gone", "name": None}


async def test_tasks_and_types_of_projects_below(api: Api) -> None:
    await api.call("projects.create", {"name": "a/b/c"})
    ids = {p["name"]: p["id"] for p in (await api.call("projects.get_all"))["projects"]}
    await make(api, name="top", project=ids["a"], type="custom")
    await make(api, name="deep", project=ids["a/b/c"], type="qc")
    await make(api, name="elsewhere", type="testing")

    assert await names(api, project=[ids["a"]]) == ["top"]
    assert await names(api, project=[ids["a"]], include_subprojects=True) == ["top", "deep"]
    assert await names(api, project=[ids["a/b"]], include_subprojects=True) == ["deep"]
    assert await names(api, project=ids["a"], include_subprojects=True) == ["top", "deep"]
    assert (await api.call("tasks.get_types", {"projects": [ids["a"]]}))["types"] == ["custom", "qc"]
    assert (await api.call("tasks.get_types"))["types"] == ["custom", "qc", "testing"]


async def test_a_scroll_or_page_does_not_see_other_companies(api: Api) -> None:
    task = await make(api)
    await api.backend.documents.insert("tasks", [{"id": "theirs", "name": "theirs", "company": "other"}])
    assert await names(api, search_hidden=True) == ["a task"]
    assert await refused(api, "tasks.get_by_id", {"task": "theirs"}) == (400, 101)
    assert await refused(api, "tasks.edit", {"task": "theirs", "name": "ours", "force": True}) == (400, 101)
    assert await refused(api, "tasks.delete", {"task": "theirs", "force": True}) == (400, 101)
    assert (await get(api, task))["company"] == api.company
