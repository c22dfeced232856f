"""Inputs as clients of older API versions send and read them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.tasks.calls import get, make, refused

pytestmark = pytest.mark.anyio

OLD = {"parameters": {"l.r": 1, "TF_DEFINE/$b": "2"}, "model_desc": {"design": "net"}}


def param(section: str, name: str, value: str) -> dict[str, str]:
    return {"section": section, "name": name, "value": value, "type": "legacy"}


async def seen_by(api: Api, version: str, task: str) -> dict[str, Any]:
    """The execution section as clients of that version see it."""
    [found] = (await api.call("tasks.get_all_ex", {"id": [task]}, version=version))["tasks"]
    execution: dict[str, Any] = found["execution"]
    return execution


async def test_older_inputs_become_hyperparameters_and_configurations(api: Api) -> None:
    new = {"section": "s", "name": "n", "value": "v"}
    task = await make(api, execution=OLD, hyperparams={"s": {"n": new}}, configuration={"c": {"value": "w"}})

    now = await get(api, task)
    assert now["hyperparams"] == {
        "s": {"n": new},
        "Args": {"l.r": param("Args", "l.r", "1")},
        "TF_DEFINE": {"$b": param("TF_DEFINE", "$b", "2")},
    }
    assert now["configuration"] == {
        "c": {"name": "c", "value": "w"},
        "design": {"name": "design", "value": "net", "type": "legacy"},
    }
    assert now["execution"]["parameters"] == now["execution"]["model_desc"] == {}


async def test_older_clients_read_them_where_they_look(api: Api) -> None:
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m"}))["id"]
    task = await make(api, execution={**OLD, "model": model}, hyperparams={"s": {"n": {"value": "v"}}})

    old, newer, new = [await seen_by(api, version, task) for version in ("2.8", "2.12", "2.13")]
    assert old["parameters"] == {"l.r": "1", "TF_DEFINE/$b": "2"}
    assert (old["model_desc"], old["model"]) == ({"design": "net"}, model)
    assert (newer["parameters"], newer["model_desc"], newer["model"]) == ({}, {}, model)
    assert "model" not in new
    assert [item["model"] for item in (await get(api, task))["models"]["input"]] == [model]


async def test_containers_and_output_models_of_older_clients(api: Api) -> None:
    task = await make(api, execution={"docker_cmd": "image:1 -e A=b -v /x"})
    assert (await get(api, task))["container"] == {"image": "image:1", "arguments": "-e A=b -v /x"}
    assert (await seen_by(api, "2.12", task))["docker_cmd"] == "image:1 -e A=b -v /x"
    assert "docker_cmd" not in await seen_by(api, "2.13", task)
    both = await make(api, execution={"docker_cmd": "image:1"}, container={"image": "other"})
    assert (await get(api, both))["container"] == {"image": "other", "arguments": ""}
    cloned = await api.call("tasks.clone", {"task": task, "execution_overrides": {"docker_cmd": "new"}})
    assert (await seen_by(api, "2.12", cloned["id"]))["docker_cmd"] == "new"

    for name, model in (("first", "1"), ("last", "2")):
        put = {"task": task, "name": name, "model": model, "type": "output"}
        await api.call("tasks.add_or_update_model", put)
    for version, shown in (("2.12", "2"), ("2.13", None)):
        found = (await api.call("tasks.get_by_id", {"task": task}, version=version))["task"]
        assert found["output"].get("model") == shown


async def test_an_edit_replaces_older_inputs_alone(api: Api) -> None:
    kept = {"section": "Args", "name": "kept", "value": "v"}
    task = await make(api, execution=OLD, hyperparams={"Args": {"kept": kept}}, comment="c")
    edit = {"task": task, "comment": "d", "execution": {"parameters": {"x": "3"}, "framework": "f"}}
    await api.call("tasks.edit", edit)

    now = await get(api, task)
    assert now["hyperparams"]["Args"] == {"kept": kept, "x": param("Args", "x", "3")}
    assert not now["hyperparams"].get("TF_DEFINE")
    assert list(now["configuration"]) == ["design"]
    assert (now["comment"], now["execution"]["framework"]) == ("d", "f")
    assert (await seen_by(api, "2.8", task))["parameters"] == {"x": "3"}

    await api.call("tasks.edit", {"task": task, "execution": {"parameters": {}, "model_desc": {}}})
    assert (await get(api, task))["hyperparams"] == now["hyperparams"]


async def test_a_section_alone_is_no_name(api: Api) -> None:
    request = {"name": "t", "type": "testing", "execution": {"parameters": {"TF_DEFINE/": "1"}}}
    assert await refused(api, "tasks.create", request) == (400, 12)


async def test_a_clone_takes_older_inputs(api: Api) -> None:
    task = await make(api, hyperparams={"Args": {"a": {"value": "1"}}, "s": {}})
    answer = await api.call("tasks.clone", {"task": task, "execution_overrides": {"parameters": {"TF_DEFINE/b": "2"}}})
    now = await get(api, answer["id"])
    assert list(now["hyperparams"]["Args"]) == ["a"]
    assert now["hyperparams"]["TF_DEFINE"] == {"b": param("TF_DEFINE", "b", "2")}
