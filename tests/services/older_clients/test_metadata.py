"""Clients of versions up to 2.16 get the metadata of models and queues as lists of items."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api

pytestmark = pytest.mark.anyio

OLD, NEW = "2.16", "2.17"
ITEM = {"key": "a.b", "type": "float", "value": "0.9"}
FIELDS: dict[str, dict[str, Any]] = {
    "models": {"name": "m", "uri": "file:///m", "labels": {"metadata": 1}, "design": {"metadata": {"x": {"y": 1}}}},
    "queues": {"name": "q"},
}
KINDS = pytest.mark.parametrize("service", FIELDS)


async def both(api: Api, endpoint: str, request: dict[str, Any]) -> list[dict[str, Any]]:
    """What is answered to an old client, and to a newer one."""
    return [await api.call(endpoint, request, version=version) for version in (OLD, NEW)]


async def make(api: Api, service: str, **fields: Any) -> str:
    id: str = (await api.call(f"{service}.create", {**FIELDS[service], **fields}))["id"]
    return id


def metadata_in(answer: dict[str, Any], service: str) -> list[Any]:
    found = answer[service] if service in answer else [answer[service.removesuffix("s")]]
    return [one["metadata"] for one in found]


@pytest.mark.test
@KINDS
@pytest.mark.parametrize("items", [[], [ITEM], [ITEM, {"key": "b", "type": None, "value": "x"}]])
async def test_metadata_is_a_list_for_older_clients(api: Api, service: str, items: list[dict[str, Any]]) -> None:
    kind = service.removesuffix("s")
    made = await make(api, service, metadata=items)
    calls: dict[str, dict[str, Any]] = {
        f"{service}.get_by_id": {kind: made},
        f"{service}.get_all": {"id": [made]},
        f"{service}.get_all_ex": {"id": [made], "only_fields": ["metadata"]},
    }
    if service == "models":
        calls["models.get_by_id_ex"] = {"id": [made]}
    for endpoint, request in calls.items():
        old, new = await both(api, endpoint, request)
        assert metadata_in(old, service) == [items], endpoint
        assert metadata_in(new, service) == [{item["key"]: item for item in items}], endpoint
    for action in ("update", "edit") if service == "models" else ("update",):
        old, new = await both(api, f"{service}.{action}", {kind: made, "metadata": items})
        assert (old["fields"]["metadata"], new["fields"]["metadata"]) == (items, {item["key"]: item for item in items})


@KINDS
async def test_older_clients_may_send_it_in_either_shape(api: Api, service: str) -> None:
    kind = service.removesuffix("s")
    for given in ([ITEM], {"a.b": ITEM}):
        made = (await api.call(f"{service}.create", {**FIELDS[service], "metadata": given}, version=OLD))["id"]
        assert metadata_in(await api.call(f"{service}.get_by_id", {kind: made}, version=OLD), service) == [[ITEM]]
        item = {"key": "c", "type": "str", "value": "1"}
        await api.call(f"{service}.add_or_update_metadata", {kind: made, "metadata": [item]}, version=OLD)
        found = await api.call(f"{service}.get_by_id", {kind: made})
        assert metadata_in(found, service) == [{"a.b": ITEM, "c": item}]
        await api.call(f"{service}.delete", {kind: made})


async def test_one_field_of_an_item_comes_with_its_key(api: Api) -> None:
    made = await make(api, "models", metadata=[ITEM])
    request = {"id": [made], "only_fields": ["metadata.a%2Eb.value"]}
    assert metadata_in(await api.call("models.get_all", request, version=OLD), "models") == [
        [{"key": "a.b", "value": "0.9"}]
    ]


async def test_what_others_refer_to_has_it_as_a_list_too(api: Api) -> None:
    parent = await make(api, "models", metadata=[ITEM])
    model = await make(api, "models", metadata=[ITEM], parent=parent)
    queue = await make(api, "queues", metadata=[ITEM])
    models = {side: [{"name": side, "model": model}] for side in ("input", "output")}
    task = {"name": "t", "type": "training", "models": models, "execution": {"queue": queue}}
    made = (await api.call("tasks.create", task))["id"]

    fields = ["models.input.model.metadata", "models.output.model.metadata", "execution.queue.metadata"]
    for endpoint in ("tasks.get_all_ex", "tasks.get_by_id_ex"):
        for version, expected in ((OLD, [ITEM]), (NEW, {"a.b": ITEM})):
            found = await api.call(endpoint, {"id": [made], "only_fields": fields}, version=version)
            (shown,) = found["tasks"]
            for model_or_queue in (
                *(shown["models"][side][0]["model"] for side in models),
                shown["execution"]["queue"],
            ):
                assert model_or_queue["metadata"] == expected, (endpoint, version)
    request = {"id": [model], "only_fields": ["parent.metadata"]}
    assert (await api.call("models.get_all_ex", request, version=OLD))["models"][0]["parent"]["metadata"] == [ITEM]


async def test_what_users_name_so_stays_as_it_is(api: Api) -> None:
    made = await make(api, "models")
    shown = (await api.call("models.get_by_id", {"model": made}, version=OLD))["model"]
    assert {name: shown[name] for name in ("labels", "design")} == {
        name: FIELDS["models"][name] for name in ("labels", "design")
    }
    configuration = {"metadata": {"name": "metadata", "value": "v"}}
    hyperparams = {"fields": {"metadata": {"section": "fields", "name": "metadata", "value": "1"}}}
    task = {"name": "t", "type": "training", "configuration": configuration, "hyperparams": hyperparams}
    task["runtime"] = {"metadata": {"a": {"b": 1}}}
    made = (await api.call("tasks.create", task))["id"]
    shown = (await api.call("tasks.get_by_id", {"task": made}, version=OLD))["task"]
    assert shown["runtime"] == task["runtime"]
    assert shown["hyperparams"]["fields"]["metadata"]["value"] == "1"
    assert shown["configuration"]["metadata"]["value"] == "v"
