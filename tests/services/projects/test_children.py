"""Projects by what they hold, and whose it is: datasets, pipelines, reports, users."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api, new_user

pytestmark = pytest.mark.anyio


async def project(api: Api, name: str, **fields: Any) -> str:
    made: str = (await api.call("projects.create", {"name": name, **fields}))["id"]
    return made


async def task(api: Api, project: str, auth: tuple[str, str] | None = None, **fields: Any) -> str:
    request = {"name": "t", "type": "training", "project": project, **fields}
    made: str = (await api.call("tasks.create", request, auth=auth or api.auth))["id"]
    return made


async def found(api: Api, **request: Any) -> dict[str, dict[str, Any]]:
    """Projects right below `root`, or as the request has it, by basename."""
    answer = await api.call("projects.get_all_ex", {"include_stats": True, "check_own_contents": True, **request})
    return {one["name"].rpartition("/")[2]: one for one in answer["projects"]}


@pytest.fixture
async def root(api: Api) -> str:
    """A project with a dataset (two, with SDK's hidden gathering project), a pipeline and two projects of reports."""
    root = await project(api, "root")
    await project(api, "root/d/.datasets", system_tags=["hidden", "dataset"])
    data = await project(api, "root/d/.datasets/one", system_tags=["hidden", "dataset"], tags=["world", "hello"])
    await task(api, data, type="data_processing", system_tags=["dataset"])
    await project(api, "root/d/two", system_tags=["dataset"], tags=["hello"])
    pipe = await project(api, "root/p/pipe", system_tags=["pipeline"])
    await task(api, pipe, type="controller", system_tags=["pipeline"])
    await task(api, pipe)
    r1, r2 = await project(api, "root/r1"), await project(api, "root/r2")
    await api.call("reports.create", {"name": "r", "project": r1})
    for tags in (["a", "b"], ["a"]):
        await api.call("reports.create", {"name": "r", "project": r2, "tags": tags})
    await task(api, r2)
    return root


@pytest.mark.test
async def test_projects_hold_kinds_of_children(api: Api, root: str) -> None:
    below = {"parent": [root], "shallow_search": True}
    everything = await found(api, **below)
    assert {name: one["stats"]["active"]["total_tasks"] for name, one in everything.items()} == {
        **{"d": 0, "p": 2},  # what is hidden is not counted
        **{"r1": 0, "r2": 1},
    }

    [(name, holder)] = (await found(api, children_type="dataset", **below)).items()
    assert (name, holder["own_datasets"], "own_tasks" in holder) == ("d", 1, False)
    assert holder["stats"] == {"datasets": {"count": 2, "tags": ["hello", "world"]}}
    assert [one["name"] for one in holder["sub_projects"]] == ["root/d/.datasets", "root/d/.datasets/one", "root/d/two"]

    [(name, holder)] = (await found(api, children_type="pipeline", **below)).items()
    assert (name, holder["own_tasks"], "own_datasets" in holder) == ("p", 0, False)
    assert holder["stats"]["active"]["total_tasks"] == 1

    reports = await found(api, children_type="report", **below)
    assert {name: one["stats"]["active"]["total_tasks"] for name, one in reports.items()} == {"r1": 1, "r2": 2}
    assert list(await found(api, children_type="report", id=[root])) == ["root"]
    assert (await found(api, children_type="dataset", name="nothing")) == {}


@pytest.mark.test
async def test_children_are_chosen_by_tags(api: Api, root: str) -> None:
    cases: list[tuple[dict[str, Any], dict[str, int]]] = [
        ({"children_tags": ["a", "b"]}, {"r2": 2}),
        ({"children_tags": ["__$all", "a", "b"]}, {"r2": 1}),
        ({"children_tags": ["-a", "-b"]}, {"r1": 1}),
        ({"children_tags": ["__$any", "__$not", "a", "b"]}, {"r1": 1, "r2": 1}),
        ({"children_tags_filter": {"any": {"include": ["a", "b"]}}}, {"r2": 2}),
        ({"children_tags_filter": {"all": {"include": ["a", "b"]}}}, {"r2": 1}),
        ({"children_tags_filter": {"all": {"exclude": ["a", "b"]}}}, {"r1": 1}),
    ]
    for request, counts in cases:
        holders = await found(api, parent=[root], shallow_search=True, children_type="report", **request)
        assert {name: one["stats"]["active"]["total_tasks"] for name, one in holders.items()} == counts, request
    request = {"children_type": "dataset", "children_tags": ["world"], "parent": [root], "shallow_search": True}
    assert (await found(api, **request))["d"]["stats"]["datasets"] == {"count": 1, "tags": ["hello", "world"]}
    bad = {"children_type": "report", "children_tags_filter": {"some": 1}}
    await api.call("projects.get_all_ex", bad, expect=400)


async def test_counted_tasks_are_chosen_by_lists_and_by_filters(api: Api, root: str) -> None:
    pipelines = {"any": {"include": ["pipeline"]}}
    named = {"fields": ["type"], "pattern": "^contr"}
    for narrowed in (
        *({"type": ["controller"]}, {"system_tags": pipelines}, {"filters": {"system_tags": pipelines}}),
        *({"_any_": named}, {"_any_": named, "system_tags": pipelines}),
    ):
        holders = await found(api, parent=[root], shallow_search=True, include_stats_filter=narrowed)
        assert {name: one["stats"]["active"]["total_tasks"] for name, one in holders.items()} == {
            **{"d": 0, "p": 1},
            **{"r1": 0, "r2": 0},
        }


@pytest.mark.test
@pytest.mark.parametrize(
    "narrowed",
    [{"name": 5}, {"_any_": 5}, {"search_text": ["x"]}, {"type": {"some": 1}}, {"type": [5]}, {"created": "x"}],
)
async def test_conditions_that_are_none_are_refused(api: Api, narrowed: dict[str, Any]) -> None:
    request = {"include_stats": True, "include_stats_filter": narrowed}
    await api.call("projects.create", {"name": "p"})
    assert (await api.call("projects.get_all_ex", request, expect=400))["meta"]["result_subcode"] == 12


async def test_hidden_projects_say_so_to_those_who_look_for_them(api: Api, root: str) -> None:
    request = {"name": "^root/d/", "search_hidden": True, "only_fields": ["name"]}
    projects = (await api.call("projects.get_all_ex", {**request, "order_by": ["name"]}))["projects"]
    assert [(one["name"], one.get("hidden")) for one in projects] == [
        ("root/d/.datasets", True),
        ("root/d/.datasets/one", True),
        ("root/d/two", None),
    ]
    assert "system_tags" not in projects[0]


@pytest.mark.test
async def test_what_is_in_a_project_is_told_with_what_is_below_it(api: Api) -> None:
    eve, eves = await new_user(api, "eve")
    admin = (await api.call("users.get_current_user"))["user"]["id"]
    top = await project(api, "top")
    child = (await api.call("projects.create", {"name": "top/child"}, auth=eves))["id"]

    async def answers() -> dict[str, Any]:
        inside = {"projects": [top]}
        return {
            "active": [u["id"] for u in (await api.call("users.get_all_ex", {"active_in_projects": [child]}))["users"]],
            "projects": {
                user: [
                    one["stats"]["active"]["total_tasks"]
                    for one in (await found(api, id=[child], active_users=[user])).values()
                ]
                for user in (admin, eve)
            },
            "types": (await api.call("tasks.get_types", inside))["types"],
            "frameworks": (await api.call("models.get_frameworks", inside))["frameworks"],
            "parents": [one["id"] for one in (await api.call("projects.get_task_parents", inside))["parents"]],
            "names": [one["name"] for one in (await api.call("projects.get_user_names", inside))["users"]],
            "count": await api.call(
                "organization.get_entities_count", {"projects": {"id": [child]}, "active_users": [admin]}
            ),
        }

    assert await answers() == {
        **{"active": [eve], "projects": {admin: [], eve: [0]}, "types": [], "frameworks": [], "parents": []},
        **{"names": [], "count": {"projects": 0}},
    }
    parent = await task(api, child, type="testing")
    await task(api, child, type="testing", parent=parent)
    await task(api, child, auth=eves, type="testing")
    await api.call("models.create", {"name": "m", "uri": "u", "project": child, "framework": "PyTorch"})
    after = await answers()
    assert sorted(after.pop("active")) == sorted([admin, eve])
    assert after == {
        "projects": {admin: [2], eve: [1]},
        "types": ["testing"],
        "frameworks": ["PyTorch"],
        "parents": [parent],
        "names": ["admin", "eve"],
        "count": {"projects": 1},
    }
    assert [one["stats"]["active"]["total_tasks"] for one in (await found(api, id=[top])).values()] == [3]
    [shown] = (await found(api, id=[top], active_users=[eve])).values()
    assert shown["stats"]["active"]["total_tasks"] == 1


async def test_the_last_start_of_a_task_is_told(api: Api) -> None:
    top, child = await project(api, "top"), await project(api, "top/child")
    first, last = await task(api, top), await task(api, child)
    assert (await found(api, id=[top]))["top"]["stats"]["active"]["last_task_run"] is None
    for id in (first, last):
        await api.call("tasks.started", {"task": id})
    started = (await api.call("tasks.get_by_id", {"task": last}))["task"]["started"]
    assert (await found(api, id=[top]))["top"]["stats"]["active"]["last_task_run"] == started
