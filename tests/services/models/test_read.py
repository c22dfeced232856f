"""Finding models."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.models.conftest import Create

pytestmark = pytest.mark.anyio


async def names(api: Api, endpoint: str = "get_all", **request: Any) -> list[str]:
    return [found["name"] for found in (await api.call(f"models.{endpoint}", request))["models"]]


@pytest.mark.test
async def test_models_are_found_as_the_sdk_looks_for_them(api: Api, model: Create, task: Create) -> None:
    maker = await task()
    first = await model(name="first", uri="file:///1", task=maker, tags=["a", "b"], framework="ONNX")
    await model(name="second", uri="file:///2", tags=["b"], ready=True)
    await model(name="third", uri="file:///3", system_tags=["archived"], metadata=[{"key": "k", "value": "v"}])

    assert await names(api) == ["first", "second", "third"]
    assert await names(api, uri=["file:///2", "file:///9"], only_fields=["id", "name", "created"]) == ["second"]
    assert await names(api, task=[maker]) == ["first"]
    assert await names(api, id=[first]) == ["first"]
    assert await names(api, name="^second$") == ["second"]
    assert await names(api, framework=["ONNX"]) == ["first"]
    assert await names(api, ready=True) == ["second"]
    assert await names(api, tags=["__$all", "a", "b"]) == ["first"]
    assert await names(api, tags=["-a"], system_tags=["-archived"]) == ["second"]
    assert await names(api, search_text="file:///3") == ["third"]
    assert await names(api, order_by=["-created"], page=0, page_size=2) == ["third", "second"]
    assert await names(api, order_by=["-created"], page=2, page_size=2) == []
    assert await names(api, **{"metadata.k.value": "v"}) == ["third"]
    assert await names(api, **{"metadata.k.value": "w"}) == []
    await model(name="fourth", metadata=[{"key": "a.b", "value": "v"}])
    assert await names(api, **{"metadata.a.b.value": "v"}) == ["fourth"]
    assert await names(api, **{"metadata.a%2Eb.value": "v"}) == ["fourth"]
    assert await names(api, id=[], tags=[], user=None, ready=None) == ["first", "second", "third", "fourth"]


async def test_models_are_found_in_a_project_and_below_it(api: Api, model: Create) -> None:
    outer = (await api.call("projects.create", {"name": "p", "description": ""}))["id"]
    inner = (await api.call("projects.create", {"name": "p/q", "description": ""}))["id"]
    await model(name="in p", project=outer)
    await model(name="in q", project=inner)

    assert await names(api, project=[outer]) == ["in p"]
    assert await names(api, project=[outer], include_subprojects=True) == ["in p", "in q"]
    assert await names(api, project=[inner]) == ["in q"]


async def test_only_fields_narrow_the_answer(api: Api, model: Create) -> None:
    id = await model()
    answer = await api.call("models.get_all", {"only_fields": ["name"]})
    assert answer["models"] == [{"id": id, "name": "a model"}]


async def test_ex_answers_what_references_lead_to(api: Api, model: Create, task: Create) -> None:
    project = (await api.call("projects.create", {"name": "p", "description": ""}))["id"]
    maker, parent = await task(), await model(name="parent")
    id = await model(task=maker, project=project, parent=parent)

    [found] = (await api.call("models.get_all_ex", {"id": [id]}))["models"]
    assert found["task"] == {"id": maker, "name": "a task"}
    assert found["project"] == {"id": project, "name": "p"}
    assert found["parent"] == {"id": parent, "name": "parent"}
    assert found["user"]["name"] == "admin"
    assert found["company"]["id"] == api.company

    [same] = (await api.call("models.get_by_id_ex", {"id": [id]}))["models"]
    assert same == found
    only = {"id": [id], "only_fields": ["project.name", "name"]}
    [narrow] = (await api.call("models.get_by_id_ex", only))["models"]
    assert narrow == {"id": id, "name": "a model", "project": {"id": project, "name": "p"}}


async def test_by_id_ex_keeps_the_order_and_names_the_unknown(api: Api, model: Create) -> None:
    ids = [await model(name=f"model {n}") for n in range(3)]
    assert await names(api, "get_by_id_ex", id=[ids[2], ids[0]]) == ["model 2", "model 0"]
    answer = await api.call("models.get_by_id_ex", {"id": [ids[0], "nothing"]}, expect=400)
    assert answer["meta"]["result_subcode"] == 201
    assert "nothing" in answer["meta"]["result_msg"]
    assert ids[0] not in answer["meta"]["result_msg"]


async def test_scrolling_visits_each_model_once(api: Api, model: Create) -> None:
    for n in range(5):
        await model(name=f"model {n}")
    seen: list[str] = []
    request: dict[str, Any] = {"size": 2, "order_by": ["name"]}
    while found := (answer := await api.call("models.get_all_ex", request))["models"]:
        seen += [model["name"] for model in found]
        request["scroll_id"] = answer["scroll_id"]
    assert seen == [f"model {n}" for n in range(5)]


async def test_a_tasks_model_is_its_latest_output(api: Api, model: Create, task: Create) -> None:
    maker = await task()
    answer = await api.call("models.get_by_task_id", {"task": maker}, expect=400)
    assert answer["meta"]["result_subcode"] == 201
    for name in ("first", "second"):
        output = {"task": maker, "name": name, "model": await model(name=name), "type": "output"}
        await api.call("tasks.add_or_update_model", output)
    assert (await api.call("models.get_by_task_id", {"task": maker}))["model"]["name"] == "second"


async def test_frameworks_are_those_of_the_models(api: Api, model: Create) -> None:
    project = (await api.call("projects.create", {"name": "p", "description": ""}))["id"]
    await model(framework="PyTorch")
    await model(framework="ONNX", project=project)
    await model()

    assert await api.call("models.get_frameworks") == {"frameworks": ["ONNX", "PyTorch"]}
    assert await api.call("models.get_frameworks", {"projects": [project]}) == {"frameworks": ["ONNX"]}


@pytest.mark.own_api
async def test_models_of_another_company_are_not_there(api: Api, model: Create) -> None:
    from apiserver.services.access import credentials

    id = await model()
    _, made = await credentials.create_user(api.backend.documents, "another company", "eve")
    key = (made.key, made.secret)

    assert await api.call("models.get_all", auth=key) == {"models": []}
    for action in ("get_by_id", "delete", "edit", "set_ready"):
        answer = await api.call(f"models.{action}", {"model": id, "force": True}, auth=key, expect=400)
        assert answer["meta"]["result_subcode"] == 201
    foreign = {"name": "m", "uri": "u", "parent": id}
    await api.call("models.create", foreign, auth=key, expect=400)
    assert await names(api) == ["a model"]


async def test_labels_are_counted_when_asked_for(api: Api, model: Create) -> None:
    labelled, plain = await model(labels={"cat": 1, "dog.x": 2}), await model()

    counted = (await api.call("models.get_all_ex", {"include_stats": True, "only_fields": ["name"]}))["models"]

    assert {one["id"]: one["stats"] for one in counted} == {labelled: {"labels_count": 2}, plain: {"labels_count": 0}}
    assert all("labels" not in one for one in counted)
    assert ["stats" in one for one in (await api.call("models.get_all_ex"))["models"]] == [False, False]


@pytest.mark.parametrize("service", ["tasks", "projects", "queues"])
async def test_other_services_leave_fields_out_too(api: Api, service: str) -> None:
    new = {"name": "n", **({"type": "testing"} if service == "tasks" else {})}
    id = (await api.call(f"{service}.create", new))["id"]
    for action in ("get_all", "get_all_ex"):
        [found] = (await api.call(f"{service}.{action}", {"id": [id], "only_fields": ["-name"]}))[service]
        assert found["id"] == id
        assert "name" not in found
        assert "created" in found


async def test_fields_are_left_out(api: Api, model: Create) -> None:
    id = await model(labels={"a.b": 1, "c": 2}, metadata=[{"key": "k", "type": "int", "value": "1"}])
    request = {"only_fields": ["-comment", "-labels.a%2Eb", "-metadata.k.type", "-id", "-nothing.at.all"]}
    for found in (
        (await api.call("models.get_all", request))["models"],
        (await api.call("models.get_all_ex", request))["models"],
        (await api.call("models.get_by_id_ex", {**request, "id": [id]}))["models"],
    ):
        [one] = found
        assert "comment" not in one
        assert (one["id"], one["name"], one["labels"]) == (id, "a model", {"c": 2})
        assert one["metadata"] == {"k": {"key": "k", "value": "1"}}
