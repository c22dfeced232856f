"""Finding projects, and what is in them."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from apiserver.stores.documents.query import Update
from tests.harness import Api

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ids(api: Api) -> dict[str, str]:
    """Projects, by name."""
    await api.call("projects.create", {"name": "a/b/c", "tags": ["deep"], "description": "Below"})
    await api.call("projects.create", {"name": "z.x", "tags": ["flat"]})
    await api.call("projects.create", {"name": "a/.hidden", "system_tags": ["hidden"]})
    found = (await api.call("projects.get_all", {"search_hidden": True}))["projects"]
    return {project["name"]: project["id"] for project in found}


async def make_task(api: Api, **fields: Any) -> str:
    made: str = (await api.call("tasks.create", {"name": "t", "type": "training", **fields}))["id"]
    return made


async def names(api: Api, **request: Any) -> list[str]:
    return [project["name"] for project in (await api.call("projects.get_all", request))["projects"]]


async def test_a_name_tried_as_an_id_is_an_error_as_the_sdk_expects(api: Api, ids: dict[str, str]) -> None:
    meta = (await api.call("projects.get_by_id", {"project": "z.x"}, expect=400))["meta"]
    assert (meta["result_code"], meta["result_subcode"]) == (400, 401)
    assert meta["result_msg"].startswith("Invalid project id")


async def test_each_filter(api: Api, ids: dict[str, str]) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["a", "a/b", "a/b/c", "z.x"]),
        ({"search_hidden": True, "name": "hidden"}, ["a/.hidden"]),
        ({"id": [ids["a/.hidden"]]}, ["a/.hidden"]),
        ({"name": "^a/b$"}, ["a/b"]),
        ({"name": r"^z\.x$"}, ["z.x"]),
        ({"name": r"^zax$"}, []),
        ({"name": "^A$"}, []),
        ({"name": "b"}, ["a/b", "a/b/c"]),
        ({"basename": "^b$"}, ["a/b"]),
        ({"description": "Be"}, ["a/b/c"]),
        ({"tags": ["deep", "flat"]}, ["a/b/c", "z.x"]),
        ({"tags": ["-deep"]}, ["a", "a/b", "z.x"]),
        ({"shallow_search": True}, ["a", "z.x"]),
        ({"parent": [ids["a"]]}, ["a/b", "a/b/c"]),
        ({"parent": [ids["a"]], "shallow_search": True}, ["a/b"]),
        ({"id": [ids["a/b"]], "shallow_search": True}, ["a/b"]),
        ({"search_text": "BELOW c"}, ["a/b/c"]),
        ({"_any_": {"fields": ["name"], "pattern": "Z"}}, ["z.x"]),
        ({"order_by": ["-name"], "page": 0, "page_size": 2}, ["z.x", "a/b/c"]),
        ({"order_by": ["-name"], "page": 2, "page_size": 2}, []),
        ({"last_update": ["<2026-01-01"]}, []),
    ]
    for request, wanted in cases:
        assert await names(api, **request) == wanted, request
    [found] = (await api.call("projects.get_all", {"name": "^a$", "only_fields": ["name"]}))["projects"]
    assert found == {"id": ids["a"], "name": "a"}


async def test_the_stats_of_a_project_count_what_is_below_it(api: Api, ids: dict[str, str]) -> None:
    done = await make_task(api, project=ids["a/b/c"])
    await api.call("tasks.started", {"task": done})
    await api.call("tasks.completed", {"task": done})
    await api.backend.documents.update("tasks", {"id": done}, Update(set={"active_duration": 60}))
    await make_task(api, project=ids["a"], type="testing")
    archived = await make_task(api, project=ids["a"])
    await api.call("tasks.archive", {"tasks": [archived]})

    async def stats(**request: Any) -> dict[str, Any]:
        answer = await api.call("projects.get_all_ex", {"include_stats": True, "only_fields": ["name"], **request})
        return {project["name"]: project["stats"] for project in answer["projects"]}

    found = await stats()
    a = found["a"]["active"]
    assert (a["total_tasks"], a["completed_tasks_24h"], a["total_runtime"]) == (2, 1, 60)
    assert {status: n for status, n in a["status_count"].items() if n} == {"created": 1, "completed": 1}
    assert found["a"].keys() == {"active"}
    assert found["a/b"]["active"]["total_tasks"] == 1
    assert found["z.x"]["active"]["total_tasks"] == 0
    assert (await stats(stats_with_children=False))["a"]["active"]["total_tasks"] == 1
    assert (await stats(include_stats_filter={"type": ["testing"]}))["a"]["active"]["total_tasks"] == 1
    [archived_stats] = (await stats(stats_for_state="archived", id=[ids["a"]])).values()
    assert archived_stats.keys() == {"archived"}
    assert archived_stats["archived"]["total_tasks"] == 1
    assert (await stats(stats_for_state=None))["a"].keys() == {"active", "archived"}


async def test_ex_says_more_of_projects(api: Api, ids: dict[str, str]) -> None:
    await make_task(api, project=ids["a"])
    await make_task(api, project=ids["a/b"])
    await api.call("models.create", {"name": "m", "uri": "file:///m", "project": ids["a"]})
    request = {"id": [ids["a"]], "include_stats": True, "check_own_contents": True}
    [found] = (await api.call("projects.get_all_ex", request))["projects"]
    assert (found["own_tasks"], found["own_models"]) == (1, 1)
    assert [inside["name"] for inside in found["sub_projects"]] == ["a/b", "a/b/c"]
    assert found["user"] == {"id": found["user"]["id"]}

    [child] = (await api.call("projects.get_all_ex", {"id": [ids["a/b"]], "only_fields": ["parent.name"]}))["projects"]
    assert child == {"id": ids["a/b"], "parent": {"id": ids["a"], "name": "a"}}
    [alone] = (await api.call("projects.get_all_ex", {"id": [ids["a"]], "only_fields": ["stats"]}))["projects"]
    assert alone == {"id": ids["a"]}


async def test_projects_of_active_users(api: Api, ids: dict[str, str]) -> None:
    user = (await api.call("users.get_current_user"))["user"]["id"]
    await api.backend.documents.update("projects", {}, Update(set={"user": "other"}), many=True)
    await make_task(api, project=ids["a/b"])
    found = (await api.call("projects.get_all_ex", {"active_users": [user]}))["projects"]
    assert [project["name"] for project in found] == ["a", "a/b"]


async def test_tags(api: Api, ids: dict[str, str]) -> None:
    await make_task(api, project=ids["a/b"], tags=["x", "y"], system_tags=["s"])
    await make_task(api, tags=["z"])
    await api.call("models.create", {"name": "m", "uri": "file:///m", "tags": ["m"]})

    assert await api.call("projects.get_task_tags") == {"tags": ["x", "y", "z"]}
    inside = await api.call("projects.get_task_tags", {"projects": [ids["a"]], "include_system": True})
    assert inside == {"tags": ["x", "y"], "system_tags": ["s"]}
    assert await api.call("projects.get_task_tags", {"filter": {"system_tags": ["-s"]}}) == {"tags": ["z"]}
    assert await api.call("projects.get_model_tags") == {"tags": ["m"]}
    assert await api.call("projects.get_project_tags", {"projects": [ids["a"]]}) == {"tags": ["deep"]}


async def test_metrics_and_variants(api: Api, ids: dict[str, str]) -> None:
    inside, outside = await make_task(api, project=ids["a/b"]), await make_task(api)
    for task, metric, variant in [(inside, "loss", "val"), (inside, "loss", "a.$b"), (outside, "acc", "v")]:
        event = {"type": "training_stats_scalar", "task": task, "metric": metric, "variant": variant, "iter": 1}
        await api.call("events.add", {**event, "value": 1})

    async def found(**request: Any) -> list[tuple[str, str]]:
        metrics = (await api.call("projects.get_unique_metric_variants", request))["metrics"]
        for one in metrics:
            assert one["metric_hash"] == hashlib.md5(one["metric"].encode()).hexdigest()
            assert one["variant_hash"] == hashlib.md5(one["variant"].encode()).hexdigest()
        return [(one["metric"], one["variant"]) for one in metrics]

    assert await found() == [("acc", "v"), ("loss", "a.$b"), ("loss", "val")]
    assert await found(project=ids["a"]) == [("loss", "a.$b"), ("loss", "val")]
    assert await found(project=ids["a"], include_subprojects=False) == []
    assert await found(ids=[outside]) == [("acc", "v")]
    assert await found(model_metrics=True) == []
    nameless = {"last_metrics": {"m": {"v": {"value": 1}}}}
    await api.backend.documents.update("tasks", {"id": outside}, Update(set=nameless))
    assert await found(ids=[outside]) == []


async def test_hyperparameters_and_their_values(api: Api, ids: dict[str, str]) -> None:
    for value in ("0.1", "0.2", "0.1"):
        params = {"Args": {"l.r": {"value": value}}, "$g": {"x": {"value": "1"}}}
        await make_task(api, project=ids["a/b"], hyperparams=params)

    request = {"project": ids["a"], "page": 0, "page_size": 1}
    assert await api.call("projects.get_hyper_parameters", request) == {
        "parameters": [{"section": "$g", "name": "x"}],
        "total": 2,
        "remaining": 1,
    }
    last = await api.call("projects.get_hyper_parameters", {**request, "page": 1})
    assert last == {"parameters": [{"section": "Args", "name": "l.r"}], "total": 2, "remaining": 0}
    assert (await api.call("projects.get_hyper_parameters", {**request, "page": 9}))["parameters"] == []

    values = {"section": "Args", "name": "l.r", "projects": [ids["a"]]}
    assert await api.call("projects.get_hyperparam_values", values) == {"total": 2, "values": ["0.1", "0.2"]}
    found = await api.call("projects.get_hyperparam_values", {**values, "pattern": "2$"})
    assert found == {"total": 1, "values": ["0.2"]}
    meta = (await api.call("projects.get_hyperparam_values", {**values, "pattern": "("}, expect=400))["meta"]
    assert meta["error_data"] == {"field": "pattern"}


async def test_metadata_of_models(api: Api, ids: dict[str, str]) -> None:
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "project": ids["a/b"]}))["id"]
    metadata = [{"key": "a.b", "type": "s", "value": "1"}, {"key": "$c", "value": "2"}]
    await api.call("models.add_or_update_metadata", {"model": model, "metadata": metadata})
    found = await api.call("projects.get_model_metadata_keys", {"project": ids["a"]})
    assert found == {"keys": ["$c", "a.b"], "total": 2, "remaining": 0}
    await api.call("models.create", {"name": "n", "uri": "file:///n", "metadata": {"free": {"value": "3"}}})
    assert (await api.call("projects.get_model_metadata_keys"))["keys"] == ["$c", "a.b", "free"]
    assert (await api.call("projects.get_model_metadata_keys", {"include_subprojects": False}))["keys"] == ["free"]
    values = await api.call("projects.get_model_metadata_values", {"key": "a.b"})
    assert values == {"total": 1, "values": ["1"]}


async def test_parents_and_users(api: Api, ids: dict[str, str]) -> None:
    parent = await make_task(api, name="The parent", project=ids["a"])
    child = await make_task(api, project=ids["a/b"], parent=parent)
    shown = {"id": parent, "name": "The parent", "project": {"id": ids["a"], "name": "a"}}

    assert (await api.call("projects.get_task_parents"))["parents"] == [shown]
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({"projects": [ids["a"]]}, [shown]),
        ({"projects": [ids["a"]], "include_subprojects": False}, []),
        ({"task_name": "PAR"}, [shown]),
        ({"task_name": "x"}, []),
        ({"tasks_state": "archived"}, []),
    ]
    for request, wanted in cases:
        assert (await api.call("projects.get_task_parents", request))["parents"] == wanted
    await api.call("tasks.archive", {"tasks": [child]})
    assert (await api.call("projects.get_task_parents"))["parents"] == [shown]
    assert (await api.call("projects.get_task_parents", {"tasks_state": "active"}))["parents"] == []
    assert (await api.call("projects.get_task_parents", {"tasks_state": "archived"}))["parents"] == [shown]

    user = (await api.call("users.get_current_user"))["user"]
    who = [{"id": user["id"], "name": user["name"]}]
    assert (await api.call("projects.get_user_names", {"projects": [ids["a"]], "entity": "task"}))["users"] == who
    assert (await api.call("projects.get_user_names", {"entity": "model"}))["users"] == []


async def test_the_size_of_a_dataset_is_that_of_its_newest_version(api: Api, ids: dict[str, str]) -> None:
    async def size() -> Any:
        [found] = (await api.call("projects.get_all_ex", {"id": [ids["a"]], "include_dataset_stats": True}))["projects"]
        return found["dataset_stats"]

    first = await make_task(api, project=ids["a"])
    assert await size() is None
    await api.call("tasks.edit", {"task": first, "runtime": {"ds_file_count": 1, "ds_total_size": 10}})
    assert await size() == {"file_count": 1, "total_size": 10}
    second = await make_task(api, project=ids["a"])
    await api.call("tasks.edit", {"task": second, "runtime": {"ds_file_count": 2, "ds_total_size": 30}})
    assert await size() == {"file_count": 2, "total_size": 30}


async def test_values_with_numbers_are_sorted_by_these(api: Api) -> None:
    texts = ["10", "9", "v10", "v9", "a", "", "²", "0" * 5000 + "11"]
    for text in texts:
        await make_task(api, hyperparams={"Args": {"n": {"value": text}}})
    found = await api.call("projects.get_hyperparam_values", {"section": "Args", "name": "n"})
    assert found["values"] == ["", "9", "10", texts[-1], "a", "v9", "v10", "²"]
    page = {"section": "Args", "name": "n", "page": 1, "page_size": 3}
    assert await api.call("projects.get_hyperparam_values", page) == {"total": 8, "values": [texts[-1], "a", "v9"]}
