"""What is public: read by every company, changed by none until its own makes it private. On both pairs of stores."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ADMIN_KEY, ADMIN_SECRET, Api, running_api

pytestmark = pytest.mark.anyio

OURS, OTHERS = (ADMIN_KEY, ADMIN_SECRET), ("OTHERKEYOFTHETESTS00", "another-secret-of-the-tests-0123456789")


@dataclass(frozen=True, slots=True)
class Two:
    """A server of two companies, ours and the other one."""

    api: Api

    async def ours(self, endpoint: str, expect: int = 200, /, **request: Any) -> dict[str, Any]:
        return await self.api.call(endpoint, request, expect=expect)

    async def theirs(self, endpoint: str, expect: int = 200, /, **request: Any) -> dict[str, Any]:
        return await self.api.call(endpoint, request, expect=expect, auth=OTHERS)

    async def refused(self, endpoint: str, /, **request: Any) -> set[tuple[int, int]]:
        """The codes that both companies get."""
        codes = set()
        for auth in (OURS, OTHERS):
            path = f"/v2.34/{endpoint}"
            meta = (await self.api.raw("POST", path, json=request, auth=auth)).json()["meta"]
            codes.add((meta["result_code"], meta["result_subcode"]))
        return codes


@pytest.fixture(params=["embedded", pytest.param("engines", marks=pytest.mark.check)])
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Two]:
    settings: dict[str, Any] = {} if request.param == "embedded" else request.getfixturevalue("shared_engines")
    other = {"company": "other", "admin_key": OTHERS[0], "admin_secret": OTHERS[1]}
    async with running_api(tmp_path / "data", **settings, **other):
        pass
    async with running_api(tmp_path / "data", **settings) as api:
        yield Two(api)


async def make(two: Two, kind: str, name: str, **fields: Any) -> str:
    """Something of ours; its id."""
    needed: dict[str, dict[str, Any]] = {"tasks": {"type": "training"}, "models": {"uri": "file:///m", "ready": False}}
    made: str = (await two.ours(f"{kind}.create", name=name, **needed.get(kind, {}), **fields))["id"]
    return made


async def found(two: Two, kind: str, **request: Any) -> tuple[list[str], list[str]]:
    """The names that get_all_ex finds for us and for the other company."""
    query = {"order_by": ["name"], **request}
    names = [
        [one["name"] for one in (await call(f"{kind}.get_all_ex", **query))[kind]] for call in (two.ours, two.theirs)
    ]
    return names[0], names[1]


@pytest.mark.test
@pytest.mark.parametrize(
    ("kind", "singular", "subcode"), [("tasks", "task", 101), ("models", "model", 201), ("projects", "project", 401)]
)
async def test_what_is_public_is_found_by_all_and_taken_back_by_its_company(
    two: Two, kind: str, singular: str, subcode: int
) -> None:
    a, b = await make(two, kind, "a"), await make(two, kind, "b")
    assert await found(two, kind) == (["a", "b"], [])
    assert await two.refused(f"{kind}.make_private", ids=[a]) == {(400, subcode)}
    assert (await two.theirs(f"{kind}.make_public", 400, ids=[a]))["meta"]["result_subcode"] == subcode
    assert (await two.ours(f"{kind}.make_public", 400, ids=[a, "unknown"]))["meta"]["result_subcode"] == subcode

    assert await two.ours(f"{kind}.make_public", ids=[a]) == {"updated": 1}
    assert await two.refused(f"{kind}.make_public", ids=[a]) == {(400, subcode)}
    assert await found(two, kind) == (["a", "b"], ["a"])
    assert await found(two, kind, id=[a, b]) == (["a", "b"], ["a"])
    assert await found(two, kind, allow_public=False) == (["b"], [])
    for call in (two.ours, two.theirs):
        one = (await call(f"{kind}.get_by_id", **{singular: a}))[singular]
        assert (one["name"], one["company"], "public" in one) == ("a", "", False)
        [one] = (await call(f"{kind}.get_all_ex", id=[a]))[kind]
        assert one["company"] == ""
        [one] = (await call(f"{kind}.get_all_ex", id=[a], only_fields=["company.name"]))[kind]
        assert one == {"id": a, "company": ""}
        assert [one["id"] for one in (await call(f"{kind}.get_all", id=[a, b], name="^a"))[kind]] == [a]
        assert (await call("organization.get_entities_count", **{kind: {"name": "a"}})) == {kind: 1}
        request: dict[str, Any] = {kind: {"name": "a"}, "allow_public": False}
        assert (await call("organization.get_entities_count", **request)) == {kind: 0}
    await two.theirs(f"{kind}.get_by_id", 400, **{singular: b})

    assert (await two.theirs(f"{kind}.make_private", 400, ids=[a]))["meta"]["result_subcode"] == subcode
    assert await two.ours(f"{kind}.make_private", ids=[a]) == {"updated": 1}
    assert await found(two, kind) == (["a", "b"], [])
    assert (await two.ours(f"{kind}.get_by_id", **{singular: a}))[singular]["company"] != ""
    assert (await two.ours(f"{kind}.update", **{singular: a, "name": "c"}))["updated"] == 1


@pytest.mark.test
async def test_a_public_task_is_changed_by_none(two: Two) -> None:
    task, queue = await make(two, "tasks", "t"), (await two.ours("queues.create", name="q"))["id"]
    before = (await two.ours("tasks.get_by_id", task=task))["task"]
    await two.ours("tasks.make_public", ids=[task])

    no_write = {(403, 21)}
    writes: dict[str, dict[str, Any]] = {
        "tasks.update": {"task": task, "name": "x"},
        "tasks.edit": {"task": task, "name": "x", "force": True},
        "tasks.started": {"task": task},
        "tasks.stopped": {"task": task, "force": True},
        "tasks.ping": {"task": task},
        "tasks.reset": {"task": task, "force": True},
        "tasks.delete": {"task": task, "force": True},
        "tasks.archive": {"tasks": [task]},
        "tasks.publish": {"task": task, "force": True},
        "tasks.move": {"ids": [task], "project_name": "p"},
        "tasks.edit_hyper_params": {"task": task, "hyperparams": [{"section": "a", "name": "b"}], "force": True},
        "tasks.edit_configuration": {"task": task, "configuration": [{"name": "b"}], "force": True},
        "tasks.edit_runtime": {"task": task, "add_or_update": {"a": "b"}},
        "tasks.set_requirements": {"task": task, "requirements": {}},
        "tasks.add_or_update_model": {"task": task, "name": "m", "model": "m", "type": "input"},
        "models.update_for_task": {"task": task, "uri": "file:///x"},
    }
    for endpoint, request in writes.items():
        assert await two.refused(endpoint, **request) == no_write, endpoint
    assert (await two.ours("tasks.enqueue", 403, task=task, queue=queue))["meta"]["result_subcode"] == 21
    for endpoint in ("tasks.archive_many", "tasks.delete_many", "tasks.reset_many"):
        done = await two.ours(endpoint, ids=[task], force=True)
        assert [one["error"]["codes"] for one in done["failed"]] == [[403, 21]], endpoint
    assert await two.ours("tasks.update_tags", ids=[task], add_tags=["x"]) == {"updated": 0}

    await two.ours("tasks.make_private", ids=[task])
    after = (await two.ours("tasks.get_by_id", task=task))["task"]
    stamps = ("last_change", "last_update")
    assert {**after, **{name: before[name] for name in stamps}} == before


async def test_a_public_task_is_read_by_all(two: Two) -> None:
    project = await make(two, "projects", "p")
    parent = await make(two, "tasks", "parent")
    task = await make(
        two,
        "tasks",
        "t",
        project=project,
        parent=parent,
        hyperparams={"Args": {"lr": {"value": "1"}}},
        configuration={"net": {"value": "deep"}},
    )
    await two.ours("tasks.make_public", ids=[task])

    assert (await two.theirs("tasks.get_hyper_params", tasks=[task]))["params"][0]["hyperparams"][0]["value"] == "1"
    [configured] = (await two.theirs("tasks.get_configurations", tasks=[task]))["configurations"]
    assert configured["configuration"][0]["value"] == "deep"
    assert (await two.theirs("tasks.get_configuration_names", tasks=[task]))["configurations"][0]["names"] == ["net"]
    assert (await two.theirs("tasks.get_types")) == {"types": ["training"]}
    [shown] = (await two.theirs("tasks.get_all_ex", id=[task], only_fields=["project.name", "parent.name"]))["tasks"]
    assert shown == {"id": task, "project": {"id": project, "name": None}, "parent": {"id": parent, "name": None}}
    [shown] = (await two.theirs("tasks.get_by_id_ex", id=[task]))["tasks"]
    assert shown["name"] == "t"

    clone = (await two.theirs("tasks.clone", task=task))["id"]
    cloned = (await two.theirs("tasks.get_by_id", task=clone))["task"]
    assert (cloned["company"], "project" in cloned) == ("other", False)
    await two.theirs("tasks.update", task=clone, name="mine now")
    await two.ours("tasks.get_by_id", 400, task=clone)


@pytest.mark.test
async def test_events_of_what_is_public_are_read_by_all_and_written_by_none(two: Two) -> None:
    ids = {"tasks": await make(two, "tasks", "t"), "models": await make(two, "models", "m")}
    for kind, id in ids.items():
        model = {"model_event": True} if kind == "models" else {}
        await send(two, {"type": "training_stats_scalar", "task": id, "iter": 3, "value": 5, **NAME, **model})
        await send(two, {"type": "training_stats_scalar", "task": id, "iter": SINGLE, "value": 7, **model})
        await send(two, {"type": "plot", "task": id, "iter": 1, "plot_str": "{}", **NAME, **model})
        await send(two, {"type": "training_debug_image", "task": id, "iter": 1, "url": "http://i", **NAME, **model})
    await send(two, {"type": "log", "task": ids["tasks"], "msg": "hello"})
    reads: dict[str, list[tuple[str, dict[str, Any]]]] = {
        kind: [
            ("scalar_metrics_iter_histogram", {"task": id}),
            ("scalar_metrics_iter_raw", {"task": id, "metric": {"metric": "m"}}),
            ("multi_task_scalar_metrics_iter_histogram", {"tasks": [id]}),
            ("get_task_plots", {"task": id}),
            ("get_multi_task_plots", {"tasks": [id]}),
            ("get_task_metrics", {"tasks": [id], "event_type": "training_stats_scalar"}),
            ("get_multi_task_metrics", {"tasks": [id]}),
            ("get_scalar_metrics_and_variants", {"task": id}),
            ("get_task_single_value_metrics", {"tasks": [id]}),
            ("debug_images", {"metrics": [{"task": id, "metric": "m"}], "iters": 1}),
            ("plots", {"metrics": [{"task": id, "metric": "m"}], "iters": 1}),
            ("get_debug_image_sample", {"task": id, "metric": "m", "variant": "v"}),
            ("get_plot_sample", {"task": id, "metric": "m"}),
            ("get_task_events", {"task": id, "event_type": "plot"}),
            *(
                [("get_task_log", {"task": id}), ("get_task_latest_scalar_values", {"task": id})]
                if kind == "tasks"
                else []
            ),
        ]
        for kind, id in ids.items()
    }
    for kind, cases in reads.items():
        for endpoint, request in cases:
            asked = {**request, "model_events": kind == "models"}
            await two.theirs(f"events.{endpoint}", 400, **asked)
        await two.ours(f"{kind}.make_public", ids=[ids[kind]])
        for endpoint, request in cases:
            asked = {**request, "model_events": kind == "models"}
            answer = without_scroll(await two.ours(f"events.{endpoint}", **asked))
            assert any(answer.values()), endpoint
            assert without_scroll(await two.theirs(f"events.{endpoint}", **asked)) == answer, endpoint
        [shown] = (await two.theirs(f"{kind}.get_all_ex", id=[ids[kind]], only_fields=["last_metrics"]))[kind]
        assert [one["value"] for by in shown["last_metrics"].values() for one in by.values()] in ([5, 7], [7, 5])

    line = {"type": "training_stats_scalar", "task": ids["tasks"], "iter": 4, "value": 6, **NAME}
    assert await two.refused("events.add", **line) == {(400, 131)}
    assert await two.refused("events.delete_for_task", task=ids["tasks"]) == {(400, 101)}
    assert await two.refused("events.clear_task_log", task=ids["tasks"]) == {(400, 101)}
    assert await two.refused("events.delete_for_model", model=ids["models"]) == {(400, 201)}
    assert (await two.ours("events.get_task_log", task=ids["tasks"]))["total"] == 1


async def test_a_public_task_is_compared_with_ones_own(two: Two) -> None:
    public = await make(two, "tasks", "public")
    own = (await two.theirs("tasks.create", name="own", type="training"))["id"]
    await send(two, {"type": "training_stats_scalar", "task": public, "iter": 1, "value": 5, **NAME})
    await send(two, {"type": "training_stats_scalar", "task": own, "iter": 1, "value": 6, **NAME}, auth=OTHERS)
    await two.ours("tasks.make_public", ids=[public])

    both = {"tasks": [public, own]}
    curves = (await two.theirs("events.multi_task_scalar_metrics_iter_histogram", **both))["metrics"]["m"]["v"]
    assert {id: (curve["name"], curve["y"]) for id, curve in curves.items()} == {
        public: ("public", [5.0]),
        own: ("own", [6.0]),
    }
    assert (await two.theirs("events.get_multi_task_metrics", **both))["metrics"] == [
        {"metric": "m", "variants": ["v"]}
    ]
    await two.ours("events.get_multi_task_metrics", 400, **both)


async def test_a_public_model_is_changed_by_none(two: Two) -> None:
    model = await make(two, "models", "m", metadata={"k": {"value": "v"}})
    await two.ours("models.make_public", ids=[model])
    writes: dict[str, dict[str, Any]] = {
        "models.update": {"model": model, "name": "x"},
        "models.edit": {"model": model, "name": "x"},
        "models.set_ready": {"model": model},
        "models.delete": {"model": model, "force": True},
        "models.move": {"ids": [model], "project_name": "p"},
        "models.add_or_update_metadata": {"model": model, "metadata": [{"key": "a", "value": "b"}]},
        "models.delete_metadata": {"model": model, "keys": ["k"]},
    }
    for endpoint, request in writes.items():
        assert await two.refused(endpoint, **request) == {(400, 201)}, endpoint
    assert (await two.theirs("projects.get_model_metadata_keys"))["keys"] == ["k"]
    assert (await two.theirs("projects.get_model_metadata_values", key="k"))["values"] == ["v"]
    private_only = await two.theirs("projects.get_model_metadata_values", key="k", allow_public=False)
    assert private_only["values"] == []


@pytest.mark.test
async def test_a_public_project_is_changed_by_none_and_nothing_is_put_into_it(two: Two) -> None:
    project, inside = await make(two, "projects", "top"), await make(two, "projects", "top/inside")
    task = await make(two, "tasks", "t", project=project)
    await two.ours("projects.make_public", ids=[inside])

    writes: dict[str, dict[str, Any]] = {
        "projects.update": {"project": inside, "name": "top/x"},
        "projects.move": {"project": inside, "new_location": "x"},
        "projects.merge": {"project": inside},
        "projects.delete": {"project": inside, "force": True},
        "projects.validate_delete": {"project": inside},
        "tasks.create": {"name": "t", "type": "training", "project": inside},
        "models.create": {"name": "m", "uri": "u", "project": inside},
    }
    for endpoint, request in writes.items():
        assert await two.refused(endpoint, **request) == {(403, 21)}, endpoint
    for call in (two.ours, two.theirs):
        for name in ("top/inside", "top/inside/more"):
            assert (await call("projects.create", 400, name=name))["meta"]["result_subcode"] == 414
    assert (await two.ours("tasks.move", 400, ids=[task], project_name="top/inside"))["meta"]["result_subcode"] == 414

    # Those above a public project would change it with themselves.
    above: dict[str, dict[str, Any]] = {
        "update": {"name": "new"},
        "move": {"new_location": "x"},
        "delete": {"force": True},
    }
    for endpoint, request in above.items():
        meta = (await two.ours(f"projects.{endpoint}", 403, project=project, **request))["meta"]
        assert meta["result_subcode"] == 21
    assert await found(two, "projects") == (["top", "top/inside"], ["top/inside"])

    await two.ours("projects.make_private", ids=[inside])
    await two.ours("tasks.make_public", ids=[task])
    assert (await two.ours("projects.delete", 403, project=project, force=True))["meta"]["result_subcode"] == 21
    assert (await two.theirs("projects.create", name="top/inside"))["id"]


async def test_a_name_is_taken_only_where_there_is_none_of_ones_own(two: Two) -> None:
    ours = await make(two, "projects", "same")
    theirs = (await two.theirs("projects.create", name="same"))["id"]
    await two.ours("projects.make_public", ids=[ours])
    assert (await two.theirs("projects.create", name="same/below"))["id"]
    await two.theirs("projects.make_public", ids=[theirs])
    assert (await found(two, "projects", name="^same$"))[0] == ["same", "same"]


NAME = {"metric": "m", "variant": "v"}
#: The iteration of values that are no curve.
SINGLE = -(2**31)


async def send(two: Two, event: dict[str, Any], auth: tuple[str, str] = OURS) -> None:
    body = json.dumps(event).encode()
    assert (await two.api.raw("POST", "/v2.34/events.add_batch", content=body, auth=auth)).status_code == 200


def without_scroll(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "scroll_id"}
