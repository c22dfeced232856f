"""Making tasks and changing what they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness import Api
from tests.services.tasks.calls import get, make, refused

pytestmark = pytest.mark.anyio


async def batch(api: Api, *items: dict[str, Any]) -> dict[str, Any]:
    """The answer to tasks.update_batch."""
    answer: dict[str, Any] = (
        await api.raw("POST", "/tasks.update_batch", content="\n".join(map(json.dumps, items)))
    ).json()
    return answer


async def test_many_tasks_are_updated_at_once(api: Api) -> None:
    one, other = await make(api), await make(api)
    items: list[dict[str, Any]] = [
        {"task": one, "name": "x", "status": "failed"},
        {"task": other, "tags": ["t"]},
        {"task": one, "comment": "c"},
    ]
    assert (await batch(api, *items))["data"] == {"updated": 2}
    assert ((await get(api, one))["comment"], (await get(api, one))["name"]) == ("c", "a task")
    assert (await get(api, other))["tags"] == ["t"]

    for wrong, subcode in (({"task": "none"}, 101), ({"task": other, "project": "none"}, 401), ({"name": "y"}, 12)):
        refusal = await batch(api, {"task": one, "comment": "d"}, wrong)
        assert refusal["meta"]["result_subcode"] == subcode
    assert (await get(api, one))["comment"] == "c"


#: A task as the SDK sends it.
WHOLE: dict[str, Any] = {
    "name": "whole",
    "type": "inference",
    "comment": "c",
    "tags": ["t"],
    "system_tags": ["development"],
    "output_dest": "s3://bucket",
    "script": {"repository": "r", "requirements": {"pip": "numpy", "python.exe": "3"}},
    "execution": {"model_labels": {"cat": 1, "a.b": 2}, "artifacts": [{"key": "k", "type": "t"}]},
    "hyperparams": {
        "Args": {"lr.x": {"value": "1"}, "$cost": {"value": "2", "type": "str"}},
        "a.b": {"": {"value": "3"}},
    },
    "configuration": {"my.conf": {"value": "v"}},
    "runtime": {"a.b": {"$c": 1}, "": [{"d.e": None}]},
    "container": {"image": "i", "arguments": None},
}


async def test_a_new_task_has_no_null_where_clients_expect_something(api: Api) -> None:
    task = await get(api, await make(api))

    assert (task["name"], task["type"], task["status"]) == ("a task", "training", "created")
    assert task["last_metrics"] == task["hyperparams"] == task["configuration"] == task["runtime"] == {}
    assert task["execution"]["artifacts"] == []
    assert task["models"] == {"input": [], "output": []}
    assert task["script"]["requirements"] == {}
    assert task["last_iteration"] == 0
    assert task["company"] == api.company
    assert task["user"] == (await api.call("users.get_current_user"))["user"]["id"]
    assert task["created"] == task["last_update"] == task["last_change"]
    assert None not in task.values()


async def test_ids_are_unique(api: Api) -> None:
    assert await make(api) != await make(api)


async def test_what_a_task_is_made_with_comes_back(api: Api) -> None:
    task = await get(api, await make(api, **WHOLE))

    for field in ("name", "type", "comment", "tags", "system_tags", "runtime"):
        assert task[field] == WHOLE[field]
    assert task["output"] == {"destination": "s3://bucket"}
    assert task["script"]["requirements"] == {"pip": "numpy", "python.exe": "3"}
    assert task["container"] == {"image": "i"}
    assert task["execution"]["model_labels"] == {"cat": 1, "a.b": 2}
    assert task["hyperparams"]["Args"]["lr.x"] == {"section": "Args", "name": "lr.x", "value": "1"}
    assert task["hyperparams"]["a.b"][""] == {"section": "a.b", "name": "", "value": "3"}
    assert task["configuration"] == {"my.conf": {"name": "my.conf", "value": "v"}}


async def test_artifacts_are_outputs_unless_they_say_otherwise(api: Api) -> None:
    task = await get(api, await make(api, **WHOLE))
    assert task["execution"]["artifacts"] == [{"key": "k", "type": "t", "mode": "output", "display_data": []}]


async def test_validate_makes_nothing(api: Api) -> None:
    assert await api.call("tasks.validate", WHOLE) == {}
    assert (await api.call("tasks.get_all"))["tasks"] == []
    assert await refused(api, "tasks.validate", {**WHOLE, "project": "none"}) == (400, 401)


@pytest.mark.test
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"project": "no-such"}, (400, 401)),
        ({"parent": "no-such"}, (400, 101)),
        ({"type": "no-such"}, (400, 12)),
        ({"name": ""}, (400, 12)),
        ({"tags": "x"}, (400, 12)),
        ({"hyperparams": {"Args": {"lr": "1"}}}, (400, 12)),
        ({"execution": {"artifacts": [{"type": "t"}]}}, (400, 12)),
        ({"execution": {"model_labels": {"a": "x"}}}, (400, 12)),
    ],
)
async def test_bad_fields_are_refused(api: Api, fields: dict[str, Any], error: tuple[int, int]) -> None:
    task = await make(api)
    assert await refused(api, "tasks.create", {"name": "x", "type": "training", **fields}) == error
    assert await refused(api, "tasks.edit", {"task": task, **fields}) == error


async def test_no_project_and_no_parent_may_be_empty_texts(api: Api) -> None:
    task = await get(api, await make(api, project="", parent=""))
    assert "project" not in task
    assert "parent" not in task


async def test_edit_replaces_sections_and_merges_into_structures(api: Api) -> None:
    task = await make(api, **WHOLE)
    edit = {
        "task": task,
        "name": "new",
        "script": {"branch": "main"},
        "execution": {"framework": "torch"},
        "hyperparams": {"General": {"x": {"value": "1"}}},
        "runtime": {"host": "h"},
        "tags": [],
        "output_dest": "gs://b",
    }

    answer = await api.call("tasks.edit", edit)

    assert answer["updated"] == 1
    assert answer["fields"]["runtime"] == {"host": "h"}
    now = await get(api, task)
    assert (now["name"], now["tags"], now["runtime"]) == ("new", [], {"host": "h"})
    assert list(now["hyperparams"]) == ["General"]
    assert now["script"]["branch"] == "main"
    assert now["script"]["repository"] == "r"
    assert now["execution"]["framework"] == "torch"
    assert [artifact["key"] for artifact in now["execution"]["artifacts"]] == ["k"]
    assert now["output"] == {"destination": "gs://b"}
    assert now["last_change"] > now["created"]
    assert now["last_changed_by"] == now["user"]


async def test_edit_of_nothing_changes_nothing(api: Api) -> None:
    task = await make(api)
    before = await get(api, task)
    assert await api.call("tasks.edit", {"task": task, "comment": None}) == {"updated": 0, "fields": {}}
    assert await get(api, task) == before


async def test_only_a_new_task_is_edited_without_force(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})

    assert await refused(api, "tasks.edit", {"task": task, "comment": "x"}) == (400, 110)
    await api.call("tasks.edit", {"task": task, "comment": "y", "force": True})
    assert (await get(api, task))["comment"] == "y"


async def test_update_works_in_any_status(api: Api) -> None:
    task, project = await make(api), (await api.call("projects.create", {"name": "p"}))["id"]
    await api.call("tasks.publish", {"task": task, "force": True})

    change = {"name": "n", "comment": "c", "tags": ["x"], "project": project, "output__error": "e"}
    answer = await api.call("tasks.update", {"task": task, **change, "created": "2026-01-01T00:00:00Z"})

    assert answer["updated"] == 1
    now = await get(api, task)
    assert (now["name"], now["comment"], now["tags"], now["project"]) == ("n", "c", ["x"], project)
    assert now["output"]["error"] == "e"
    assert now["created"] == "2026-01-01T00:00:00.000000+00:00"
    assert await refused(api, "tasks.update", {"task": task, "created": "once"}) == (400, 12)
    assert await refused(api, "tasks.update", {"task": task, "project": "none"}) == (400, 401)
    assert (await api.call("tasks.update", {"task": task}))["updated"] == 0


async def test_requirements_are_set_while_a_task_runs(api: Api) -> None:
    task = await make(api, script={"repository": "r"})
    await api.call("tasks.started", {"task": task})

    requirements = {"pip": "numpy==2.1", "org.pip": "x"}
    answer = await api.call("tasks.set_requirements", {"task": task, "requirements": requirements})

    assert answer["updated"] == 1
    script = (await get(api, task))["script"]
    assert (script["requirements"], script["repository"]) == (requirements, "r")


async def test_runtime_is_changed_name_by_name(api: Api) -> None:
    task = await make(api, runtime={"a.b": "1", "c": "2"})
    change = {"add_or_update": {"a.b": "3", "$d": "4"}, "remove": ["c", "a.b", "none"]}
    assert await api.call("tasks.edit_runtime", {"task": task, **change}) == {"updated": 1}
    assert (await get(api, task))["runtime"] == {"a.b": "3", "$d": "4"}


async def test_a_status_may_be_told(api: Api) -> None:
    task = await make(api)
    answer = await api.call("tasks.edit", {"task": task, "status": "queued"})
    assert (answer["updated"], answer["fields"]["status"]) == (1, "queued")
    now = await get(api, task)
    assert (now["status"], now["status_changed"]) == ("queued", answer["fields"]["status_changed"])
    assert (await api.call("tasks.dequeue", {"task": task}))["fields"]["status"] == "created"
    assert await refused(api, "tasks.edit", {"task": task, "status": "none"}) == (400, 12)


async def test_tags_are_added_and_removed(api: Api) -> None:
    one, other = await make(api, tags=["a", "b"]), await make(api, tags=["b"])
    change = {"ids": [one, other], "add_tags": ["b", "c"], "remove_tags": ["a"]}
    assert await api.call("tasks.update_tags", change) == {"updated": 2}
    assert sorted((await get(api, one))["tags"]) == sorted((await get(api, other))["tags"]) == ["b", "c"]


async def test_tasks_move_to_projects_by_id_or_name(api: Api) -> None:
    task, project = await make(api), (await api.call("projects.create", {"name": "p"}))["id"]

    assert await api.call("tasks.move", {"ids": [task], "project": project}) == {"project_id": project}
    assert (await get(api, task))["project"] == project
    made = (await api.call("tasks.move", {"ids": [task], "project_name": "p/new"}))["project_id"]
    assert (await get(api, task))["project"] == made
    assert (await api.call("projects.get_by_id", {"project": made}))["project"]["parent"] == project
    assert await api.call("tasks.move", {"ids": [task], "project": None}) == {"project_id": None}
    assert "project" not in await get(api, task)
    assert await refused(api, "tasks.move", {"ids": [task]}) == (400, 12)
    assert await refused(api, "tasks.move", {"ids": [task], "project": "p"}) == (400, 401)
    assert await refused(api, "tasks.move", {"ids": [task, "none"], "project": project}) == (400, 101)


async def test_a_change_in_a_project_is_seen_on_it(api: Api) -> None:
    project = (await api.call("projects.create", {"name": "p"}))["id"]

    async def last_update() -> str:
        found: str = (await api.call("projects.get_by_id", {"project": project}))["project"]["last_update"]
        return found

    made = await last_update()
    task = await make(api, project=project)
    with_task = await last_update()
    await api.call("tasks.started", {"task": task})
    assert made < with_task < await last_update()
