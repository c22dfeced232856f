"""How many of each kind there are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api, new_user

pytestmark = pytest.mark.anyio


@pytest.mark.test
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
