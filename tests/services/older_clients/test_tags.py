"""Clients of versions before 2.3 see and give the system's tags among the users' own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api

pytestmark = pytest.mark.anyio

OLD = "2.2"
KINDS = {
    "tasks": ({"type": "training"}, ["development", "Annotation x"]),
    "models": ({"uri": "file:///m"}, ["archived"]),
    "projects": ({"description": ""}, ["public"]),
    "queues": ({}, ["default"]),
}


async def get(api: Api, service: str, id: str, version: str = "2.34") -> dict[str, Any]:
    kind = service.removesuffix("s")
    found: dict[str, Any] = (await api.call(f"{service}.get_by_id", {kind: id}, version=version))[kind]
    return found


@pytest.mark.test
@pytest.mark.parametrize("service", KINDS)
async def test_tags_are_split_and_joined(api: Api, service: str) -> None:
    fields, system = KINDS[service]
    request = {"name": "tagged", **fields, "tags": ["test", *system]}
    made = (await api.call(f"{service}.create", request, version=OLD))["id"]

    new = await get(api, service, made)
    assert (new["tags"], new["system_tags"]) == (["test"], system)
    assert (await get(api, service, made, OLD))["tags"] == sorted(["test", *system])
    for tags, expected in ((["test"], [made]), ([system[0]], [made]), ([f"-{system[0]}"], []), (["other"], [])):
        found = await api.call(f"{service}.get_all", {"name": "tagged", "tags": tags}, version=OLD)
        assert [one["id"] for one in found[service]] == expected, tags

    kind = service.removesuffix("s")
    await api.call(f"{service}.update", {kind: made, "tags": ["test"]}, version=OLD)
    assert (await get(api, service, made))["system_tags"] == []
    await api.call(f"{service}.update", {kind: made, "tags": [system[0]], "system_tags": ["x"]}, version=OLD)
    new = await get(api, service, made)
    assert (new["tags"], new["system_tags"]) == ([system[0]], ["x"])


async def test_newer_clients_call_tags_what_they_like(api: Api) -> None:
    made = (await api.call("projects.create", {"name": "p", "tags": ["public"]}, version="2.3"))["id"]
    found = await get(api, "projects", made, "2.3")
    assert (found["tags"], found["system_tags"]) == (["public"], [])
