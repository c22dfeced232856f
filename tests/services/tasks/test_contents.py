"""What tasks hold: artifacts, models, hyperparameters, configurations."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chance import examples
from tests.harness import Api
from tests.services.tasks.calls import get, make, refused

pytestmark = pytest.mark.anyio


async def artifacts(api: Api, task: str) -> list[tuple[str, str, str]]:
    found = (await get(api, task))["execution"]["artifacts"]
    return [(artifact["key"], artifact["mode"], artifact["type"]) for artifact in found]


async def new_model(api: Api) -> str:
    made: str = (await api.call("models.create", {"name": "m", "uri": "file:///m"}))["id"]
    return made


def param(section: str, name: str, value: str = "1", **more: str) -> dict[str, str]:
    return {"section": section, "name": name, "value": value, **more}


async def params(api: Api, task: str) -> list[tuple[str, str, str]]:
    [found] = (await api.call("tasks.get_hyper_params", {"tasks": [task]}))["params"]
    assert found["task"] == task
    return [(item["section"], item["name"], item["value"]) for item in found["hyperparams"]]


# --- artifacts ---------------------------------------------------------------------------------------


async def test_artifacts_are_added_and_updated_by_key_and_mode(api: Api) -> None:
    task = await make(api)
    whole = {
        "key": "a.$b",
        "type": "pickle",
        "uri": "s3://x",
        "content_size": 5,
        "hash": "h",
        "timestamp": 7,
        "type_data": {"preview": "p", "content_type": None},
        "display_data": [["rows", "2"]],
    }
    assert await api.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [whole]}) == {"updated": 1}
    [stored] = (await get(api, task))["execution"]["artifacts"]
    assert stored == {**whole, "mode": "output", "type_data": {"preview": "p"}}

    more = [{"key": "b", "type": "t"}, {"key": "a.$b", "type": "new"}, {"key": "b", "type": "in", "mode": "input"}]
    await api.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": more})
    assert await artifacts(api, task) == [("a.$b", "output", "new"), ("b", "input", "in"), ("b", "output", "t")]

    doomed = {"task": task, "artifacts": [{"key": "b"}, {"key": "none"}]}
    assert await api.call("tasks.delete_artifacts", doomed) == {"deleted": 1}
    assert await artifacts(api, task) == [("a.$b", "output", "new"), ("b", "input", "in")]
    assert await api.call("tasks.delete_artifacts", doomed) == {"deleted": 0}


@pytest.mark.test
async def test_artifacts_sent_at_the_same_time_are_all_kept(api: Api) -> None:
    task = await make(api)
    keys = [f"k{n}" for n in range(12)]
    await asyncio.gather(
        *(
            api.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [{"key": key, "type": "t"}]})
            for key in keys
        )
    )
    assert sorted(key for key, _, _ in await artifacts(api, task)) == sorted(keys)


# --- models ------------------------------------------------------------------------------------------


async def test_models_are_linked_by_name(api: Api) -> None:
    task, one, other = await make(api), await new_model(api), await new_model(api)

    async def linked(kind: str) -> list[tuple[str, str]]:
        return [(item["name"], item["model"]) for item in (await get(api, task))["models"][kind]]

    for name, model, kind in [("x", one, "output"), ("y", one, "output"), ("x", other, "output"), ("x", one, "input")]:
        link = {"task": task, "name": name, "model": model, "type": kind, "iteration": 9}
        assert await api.call("tasks.add_or_update_model", link) == {"updated": 1}
    assert await linked("output") == [("x", other), ("y", one)]
    assert await linked("input") == [("x", one)]
    assert (await get(api, task))["last_iteration"] == 9

    gone = {"task": task, "models": [{"name": "x", "type": "output"}]}
    assert await api.call("tasks.delete_models", gone) == {"updated": 1}
    assert await linked("output") == [("y", one)]
    assert await linked("input") == [("x", one)]
    assert await api.call("tasks.delete_models", gone) == {"updated": 0}
    link = {"task": task, "name": "x", "model": "of another server", "type": "input"}
    assert await api.call("tasks.add_or_update_model", link) == {"updated": 1}
    assert await linked("input") == [("x", "of another server")]


# --- hyperparameters ---------------------------------------------------------------------------------


async def test_hyperparameters_are_added_replaced_and_deleted(api: Api) -> None:
    task = await make(api)

    async def edit(*items: dict[str, str], replace: str = "none") -> None:
        request = {"task": task, "hyperparams": items, "replace_hyperparams": replace}
        assert await api.call("tasks.edit_hyper_params", request) == {"updated": 1}

    await edit(param("Args", "lr.x", "1", type="float", description="rate"), param("$b", "n"))
    assert await params(api, task) == [("$b", "n", "1"), ("Args", "lr.x", "1")]
    assert (await get(api, task))["hyperparams"]["Args"]["lr.x"] == param(
        "Args", "lr.x", type="float", description="rate"
    )
    await edit(param("Args", "new", "2"))
    assert await params(api, task) == [("$b", "n", "1"), ("Args", "lr.x", "1"), ("Args", "new", "2")]
    await edit(param("Args", "only", "3"), replace="section")
    assert await params(api, task) == [("$b", "n", "1"), ("Args", "only", "3")]
    await edit(param("C", "c"), param("D", "d.d"), replace="all")
    assert await params(api, task) == [("C", "c", "1"), ("D", "d.d", "1")]

    gone = [{"section": "C"}, {"section": "D", "name": "d.d"}, {"section": "E", "name": "e"}]
    assert await api.call("tasks.delete_hyper_params", {"task": task, "hyperparams": gone}) == {"deleted": 1}
    assert await params(api, task) == []


async def test_a_parameter_without_a_value_has_the_empty_text(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.edit_hyper_params", {"task": task, "hyperparams": [{"section": "s", "name": "n"}]})
    assert await params(api, task) == [("s", "n", "")]


@pytest.mark.parametrize(
    ("endpoint", "items", "field"),
    [
        ("edit_hyper_params", [{"name": "n"}], "hyperparams[0].section"),
        ("edit_hyper_params", [param("s", "n"), {"section": "s", "name": ""}], "hyperparams[1].name"),
        ("edit_hyper_params", [{"section": "s", "name": "n", "value": 1}], "hyperparams[0].value"),
        ("delete_hyper_params", [{"name": "n"}], "hyperparams[0].section"),
    ],
)
async def test_bad_parameters_name_the_field(api: Api, endpoint: str, items: list[Any], field: str) -> None:
    request = {"task": await make(api), "hyperparams": items}
    meta = (await api.call(f"tasks.{endpoint}", request, expect=400))["meta"]
    assert (meta["result_subcode"], meta["error_data"]) == (12, {"field": field})


async def test_properties_are_written_in_any_status_and_in_one_section(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.publish", {"task": task, "force": True})
    note, other = param("Properties", "note"), param("Args", "x")

    await api.call("tasks.edit_hyper_params", {"task": task, "hyperparams": [note]})
    assert await params(api, task) == [("properties", "note", "1")]
    both = {"task": task, "hyperparams": [note, other], "force": True}
    assert await refused(api, "tasks.edit_hyper_params", both) == (400, 110)
    await api.call(
        "tasks.delete_hyper_params", {"task": task, "hyperparams": [{"section": "PROPERTIES", "name": "note"}]}
    )
    assert await params(api, task) == []


name = st.text(alphabet=st.sampled_from("ab.$%E2 é/\0"), min_size=1, max_size=4)


@pytest.mark.test
async def test_any_name_comes_back_as_it_was(api: Api) -> None:
    task = await make(api)

    @examples(25)
    @given(st.dictionaries(st.tuples(name, name), st.text(max_size=3), max_size=4), name)
    def collect(values: dict[tuple[str, str], str], extra: str) -> None:
        cases.append((values, extra))

    cases: list[tuple[dict[tuple[str, str], str], str]] = []
    collect()
    for values, extra in cases:
        items = [param(section, name, value) for (section, name), value in values.items()]
        replace = {"task": task, "hyperparams": items, "replace_hyperparams": "all"}
        await api.call("tasks.edit_hyper_params", replace)
        configuration = [{"name": extra, "value": "v"}]
        await api.call(
            "tasks.edit_configuration", {"task": task, "configuration": configuration, "replace_configuration": True}
        )
        await api.call("tasks.edit", {"task": task, "runtime": {extra: {extra: extra}}})
        assert await params(api, task) == [(section, name, values[section, name]) for section, name in sorted(values)]
        now = await get(api, task)
        assert now["configuration"] == {extra: {"name": extra, "value": "v"}}
        assert now["runtime"] == {extra: {extra: extra}}
        assert {(s, n) for s, inside in now["hyperparams"].items() for n in inside} == set(values)


# --- configurations ----------------------------------------------------------------------------------


async def test_configurations_are_added_replaced_and_deleted(api: Api) -> None:
    task = await make(api)

    async def edit(*items: dict[str, str], replace: bool = False) -> None:
        request = {"task": task, "configuration": items, "replace_configuration": replace}
        assert await api.call("tasks.edit_configuration", request) == {"updated": 1}

    async def found(**more: Any) -> list[str]:
        [one] = (await api.call("tasks.get_configurations", {"tasks": [task], **more}))["configurations"]
        assert one["task"] == task
        return [f"{item['name']}={item.get('value')}" for item in one["configuration"]]

    async def listed(**more: Any) -> list[str]:
        [one] = (await api.call("tasks.get_configuration_names", {"tasks": [task], **more}))["configurations"]
        return list(one["names"])

    await edit({"name": "b.yaml", "value": "1", "type": "yaml", "description": "d"}, {"name": "$a", "value": ""})
    assert await found() == ["$a=", "b.yaml=1"]
    assert await found(names=["b.yaml", "none"]) == ["b.yaml=1"]
    assert await listed() == ["b.yaml"]
    assert await listed(skip_empty=False) == ["$a", "b.yaml"]
    await edit({"name": "c", "value": "3"}, {"name": "$a", "value": "2"})
    assert await found() == ["$a=2", "b.yaml=1", "c=3"]
    gone = {"task": task, "configuration": ["b.yaml", "none"]}
    assert await api.call("tasks.delete_configuration", gone) == {"deleted": 1}
    assert await found() == ["$a=2", "c=3"]
    await edit({"name": "d", "value": "4"}, replace=True)
    assert await found() == ["d=4"]
    meta = (await api.call("tasks.edit_configuration", {"task": task, "configuration": [{}]}, expect=400))["meta"]
    assert meta["error_data"] == {"field": "configuration[0].name"}


# --- all of them -------------------------------------------------------------------------------------

#: What runs do as they go, without force.
REPORTS: list[tuple[str, dict[str, Any]]] = [
    ("tasks.add_or_update_artifacts", {"artifacts": [{"key": "k", "type": "t"}]}),
    ("tasks.delete_artifacts", {"artifacts": [{"key": "k"}]}),
]
EDITS: list[tuple[str, dict[str, Any]]] = [
    ("tasks.edit_hyper_params", {"hyperparams": [param("s", "n")]}),
    ("tasks.delete_hyper_params", {"hyperparams": [{"section": "s", "name": "n"}]}),
    ("tasks.edit_configuration", {"configuration": [{"name": "n"}]}),
    ("tasks.delete_configuration", {"configuration": ["n"]}),
]


async def test_only_a_new_task_is_changed_without_force_and_a_published_one_never(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    for endpoint, request in EDITS:
        assert await refused(api, endpoint, {"task": task, **request}) == (400, 110)
    for endpoint, request in [*EDITS, *REPORTS]:
        forced = {"force": True} if (endpoint, request) in EDITS else {}
        before = (await get(api, task))["last_change"]
        await api.call(endpoint, {"task": task, **request, **forced})
        assert (await get(api, task))["last_change"] > before
        assert await refused(api, endpoint, {"task": "none", **request}) == (400, 101)
    await api.call("tasks.publish", {"task": task, "force": True})
    for endpoint, request in [*EDITS, *REPORTS]:
        assert await refused(api, endpoint, {"task": task, **request, "force": True}) == (400, 110)


async def test_unknown_tasks_are_named(api: Api) -> None:
    task = await make(api)
    for endpoint in ("get_hyper_params", "get_configurations", "get_configuration_names"):
        meta = (await api.call(f"tasks.{endpoint}", {"tasks": [task, "none", "nil"]}, expect=400))["meta"]
        assert (meta["result_subcode"], meta["result_msg"]) == (101, "Invalid task id: ids=(none, nil)")
