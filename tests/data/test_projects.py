"""Tables of projects and tasks, and curves of many tasks."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apiserver.common import answers
from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from tests.data.conftest import ON_EACH, Data, scalar
from tests.data.test_scalars import cells

pytestmark = pytest.mark.anyio


@pytest.fixture
async def runs(data_anywhere: Data) -> list[str]:
    """Four tasks beside the first; each has a curve around its number, and a learning rate of 0.1 or 0.2."""
    data, found = data_anywhere, []
    for n in range(4):
        lr = {"section": "Args", "name": "lr", "value": f"0.{1 + n % 2}", "type": "float"}
        task = {"name": f"run {n}", "type": "training", "project": data.project, "hyperparams": {"Args": {"lr": lr}}}
        found.append((await data.api.call("tasks.create", task))["id"])
        await data.add(*(scalar("loss", "train", i, n + i % 2) for i in range(100)), task=found[-1])
    return found


@pytest.mark.test
@pytest.mark.bounds(Bounds(calls=CallBounds(listed=2)))
async def test_table_of_tasks(data_anywhere: Data, runs: list[str]) -> None:
    data = data_anywhere
    columns = "name,hyperparams.Args/lr,last:loss/train,max:loss/train,max_iter:loss/train,created,status,runtime.none"
    found = (await data.get(f"/projects/ex/amples/tasks?sort=-last:loss/train,name&columns={columns}")).json()
    assert [row["name"] for row in found] == ["run 3", "run 2", "run 1", "run 0", "first try"]
    first = found[0]
    assert (first["hyperparams.Args/lr"], first["last:loss/train"], first["max_iter:loss/train"]) == ("0.2", 4.0, 1)
    assert (first["status"], first["runtime.none"], found[4]["max:loss/train"]) == ("created", None, None)
    assert first["created"].endswith("Z")
    where = orjson.dumps({"name": "[13]$"}).decode()
    assert len((await data.get(f"/projects/{data.project}/tasks", params={"where": where})).json()) == 2
    assert len((await data.get("/projects/ex/tasks")).json()) == 0
    assert len((await data.get("/projects/ex/tasks?recursive=1")).json()) == 5
    assert cells((await data.get("/projects/ex/amples/tasks.csv?columns=id,name&sort=created")).text)[2] == [
        runs[0],
        "run 0",
    ]
    usual, *unnamed = [
        (await data.get(f"/projects/ex/amples/tasks{query}")).json() for query in ("", "?columns=", "?columns=,")
    ]
    assert unnamed == [usual, usual]
    projects = {row["name"]: row["tasks"] for row in (await data.get("/projects")).json()}
    assert projects == {"ex": 0, "ex/amples": 5}


@pytest.mark.test
@ON_EACH
async def test_curves_of_many_tasks(data_anywhere: Data, runs: list[str]) -> None:
    data = data_anywhere
    chosen = f"task={runs[2]}&task={runs[0]}"
    found = (await data.get(f"/projects/ex/amples/scalars?{chosen}&points=2")).json()
    assert [(row["task"], row["x"], row["mean"]) for row in found] == [
        *[(runs[2], 0, 2.5), (runs[2], 50, 2.5)],
        *[(runs[0], 0, 0.5), (runs[0], 50, 0.5)],
    ]
    assert len((await data.get("/projects/ex/amples/scalars")).json()) == 400
    group = "group=hyperparams.Args/lr&metric=loss&variant=train&points=4"
    curves = (await data.get(f"/projects/ex/amples/scalars?{group}")).json()
    first = [row for row in curves if row["x"] == 0]
    assert {row["group"]: (row["runs"], row["mean"], row["min"], row["max"], row["q50"]) for row in first} == {
        "0.1": (2, 1.5, 0, 3, 1.5),
        "0.2": (2, 2.5, 1, 4, 2.5),
    }
    content = (await data.get(f"/projects/ex/amples/scalars.bin?{group}")).content
    head = orjson.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])
    assert head["columns"] == ["runs", "mean", "std", "min", "max", "q25", "q50", "q75"]
    assert head["series"] == [{"group": "0.2", "metric": "loss", "variant": "train", "rows": 4, "x": [0, 32]}]
    zoomed = (await data.get(f"/projects/ex/amples/scalars?{group}&from=10&to=12")).json()
    assert [(row["group"], row["x"], row["runs"]) for row in zoomed if row["group"] == "0.1"] == [
        ("0.1", x, 2) for x in (10, 11, 12)
    ]
    together = (await data.get("/projects/ex/amples/scalars?group=*&points=4&metric=l*")).json()
    assert {(row["group"], row["runs"], row["mean"]) for row in together} == {("*", 4, 2.0)}


@pytest.mark.test
async def test_tasks_are_grouped_by_ranges_of_a_parameter(data_anywhere: Data) -> None:
    data = data_anywhere
    for rate in ("0.01", "1e-5", "auto", "0.001", "1e-4", None):
        lr = {"lr": {"section": "Args", "name": "lr", "value": rate}} if rate else {}
        task = {"name": f"run {rate}", "type": "training", "project": data.project, "hyperparams": {"Args": lr}}
        made = (await data.api.call("tasks.create", task))["id"]
        await data.add(scalar("loss", "train", 0, float(rate) if rate and rate != "auto" else 9), task=made)
    query = "group=hyperparams.Args/lr&bins=2&metric=loss&points=4"
    curves = (await data.get(f"/projects/ex/amples/scalars?{query}")).json()
    assert {row["group"]: (row["runs"], row["min"], row["max"]) for row in curves} == {
        "1e-05 … 0.0001": (2, pytest.approx(1e-5), pytest.approx(1e-4)),
        "0.001 … 0.01": (2, pytest.approx(1e-3), pytest.approx(0.01)),
        "auto": (1, 9, 9),
        "": (1, 9, 9),
    }


@pytest.mark.test
async def test_wrong_parameters(data: Data) -> None:
    other = (await data.api.call("tasks.create", {"name": "other", "type": "training"}))["id"]
    for query, parameter in (
        ("tasks?where=[1]", "where"),
        ("tasks?where={", "where"),
        ('tasks?where={"status": 5}', "where"),
        ('tasks?where={"name": "("}', "where"),
        ('tasks?where={"bogus": ["x"]}', "where"),
        (f'tasks?where={{"project": ["{data.project}"]}}', "where"),
        ("tasks?columns=last:loss", "columns"),
        ("tasks?columns=bogus", "columns"),
        ("tasks?columns=avg:loss/train", "columns"),
        ("tasks?sort=bogus", "sort"),
        ("scalars?group=Args/lr", "group"),
        ("tasks?sort=min:loss", "sort"),
        (f"tasks?sort={','.join('abcdefghijk')}", "sort"),
        (f"scalars?task={other}", "task"),
        ("scalars?group=*&points=2", "points"),
        ("scalars?bins=5", "bins"),
        ("scalars?group=hyperparams.Args/lr&bins=1", "bins"),
        ("scalars?group=*&from=2&to=1", "from"),
        ("scalars?group=last:loss", "group"),
    ):
        assert (await data.error(f"/projects/ex/amples/{query}"))["parameter"] == parameter, query
    await data.error("/projects/none/tasks", expect=404)


async def test_names_of_tasks(data: Data) -> None:
    await data.add(scalar("m", "v", 1, 1))
    assert len((await data.get("/tasks/ex/amples/first try/scalars")).json()) == 1
    newer = {"name": "first try", "type": "training", "project": data.project}
    await data.api.call("tasks.create", newer)
    assert (await data.get("/tasks/ex/amples/first try/scalars")).json() == []
    slashed = (await data.api.call("tasks.create", {**newer, "name": "a/b"}))["id"]
    await data.add(scalar("m", "v", 1, 5), task=slashed)
    assert (await data.get("/tasks/ex/amples/a/b/scalars")).json()[0]["value"] == 5
    await data.error(f"/tasks/{'/'.join('x' * 50)}/scalars", expect=404)


@pytest.mark.test
async def test_windows_into_a_table(data_anywhere: Data, runs: list[str]) -> None:
    """Windows put together are the whole table, in any order, and each says how long it is."""
    data = data_anywhere
    for sort in ("-created", "name", "-last:loss/train", "hyperparams.Args/lr,-name", "-status,id"):
        for project in ("*", data.project):
            columns = f"/projects/{project}/tasks?columns=name&sort={sort}"
            whole = (await data.get(columns)).json()
            assert len(whole) == 5
            for size in (1, 2, 5, 7):
                windows = [await data.get(f"{columns}&offset={start}&limit={size}") for start in range(0, 6, size)]
                assert [row for window in windows for row in window.json()] == whole
                assert {window.headers["x-total-count"] for window in windows} == {"5"}
    assert "x-total-count" not in (await data.get(f"/projects/{data.project}/tasks")).headers
    behind = await data.get(f"/projects/{data.project}/tasks?offset=9&limit=3")
    assert (behind.json(), behind.headers["x-total-count"]) == ([], "5")


@pytest.mark.test
@ON_EACH
async def test_groups(data_anywhere: Data, runs: list[str]) -> None:
    data = data_anywhere
    await data.api.call("tasks.edit", {"task": runs[0], "tags": ["a", "b"]})
    await data.api.call("tasks.edit", {"task": runs[1], "tags": ["a"]})

    async def groups(query: str, project: str = data.project) -> dict[object, int]:
        rows = (await data.get(f"/projects/{project}/groups?{query}")).json()
        return {row["value"]: row["tasks"] for row in rows}

    assert await groups("by=hyperparams.Args/lr") == {"0.1": 2, "0.2": 2, None: 1}
    assert await groups("by=tags") == {"a": 2, "b": 1, None: 3}
    assert await groups("by=status", "*") == {"created": 5}
    assert await groups('by=tags&where={"conditions": [["hyperparams.Args/lr", "is", "0.2"]]}') == {"a": 1, None: 1}
    assert await groups("by=last:loss/train") == {1.0: 1, 2.0: 1, 3.0: 1, 4.0: 1, None: 1}
    assert (await data.error(f"/projects/{data.project}/groups?by=bogus"))["parameter"] == "by"
    await data.api.call("tasks.edit", {"task": runs[0], "script": {"diff": "d" * 1001}})
    assert (await data.error(f"/projects/{data.project}/groups?by=script.diff"))["parameter"] == "by"


@pytest.mark.test
async def test_conditions(data_anywhere: Data, runs: list[str]) -> None:
    data = data_anywhere
    await data.api.call("tasks.edit", {"task": runs[0], "tags": ["a", "b"]})

    async def names(*conditions: list[object]) -> list[str]:
        query = {"columns": "name", "sort": "name", "where": orjson.dumps({"conditions": conditions}).decode()}
        found = await data.get(f"/projects/{data.project}/tasks", params=query)
        return [row["name"].removeprefix("run ") for row in found.json()]

    lr, last = "hyperparams.Args/lr", "last:loss/train"
    assert await names([lr, "<", 0.15]) == ["0", "2"]
    assert await names([lr, ">=", 0.1], [lr, "<=", 2e-1]) == ["0", "1", "2", "3"]
    assert await names([lr, "is", "0.2", None]) == ["first try", "1", "3"]
    assert await names([lr, "is not", "0.2", None]) == ["0", "2"]
    assert await names([last, ">", 2], [last, "<=", 3]) == ["2"]
    assert await names([last, "is", None]) == ["first try"]
    assert await names(["tags", "is", "a", "x"]) == ["0"]
    assert await names(["tags", "is not", "b"], ["name", "contains", "RUN"]) == ["1", "2", "3"]
    assert await names(["tags", "is", None], [lr, "is", "0.1"]) == ["2"]
    assert await names(["name", "contains not", "1", "2"]) == ["first try", "0", "3"]
    assert await names(["created", "<", "2020-01-01"]) == []
    assert len(await names(["created", ">=", "2020-01-01T00:00:00Z"])) == 5
    for wrong in (
        *(
            "x",
            [["name", "contains"]],
            [["name", "like", "x"]],
            [["bogus", "is", 1]],
            [[lr, "<", "1"]],
            [[lr, "<", True]],
        ),
        *([["created", ">", "soon"]], [["name", "contains", ""]], [["name", "is", {}]], [["name", "is", 1]] * 51),
        *([["name", "contains", *("x" * 11)]], [[lr, "<", 1, 2]], [["name"]], [5]),
    ):
        where = orjson.dumps({"conditions": wrong}).decode()
        address = f"/projects/{data.project}/tasks"
        assert (await data.error(address, params={"where": where}))["parameter"] == "where", wrong


@pytest.mark.test
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"conditions": 5}, "where: conditions: expected a list of up to 50 conditions"),
        (
            {"conditions": [["id", "is", "x"], ["last:a/b", "<", "x"]]},
            "where: conditions.1: '<' compares with a num…",
        ),
        ({"conditions": [["created", ">", "soon"]]}, "where: conditions.0: not an ISO-8601 time: 'soon'"),
        (
            {"conditions": [["last:a", ">", 1]]},
            "where: conditions.0: 'last:a' names no curve: it should be last:me…",
        ),
        ({"conditions": [["name"]]}, "where: conditions.0: expected [column, test, value, …]"),
        ({"status": 5}, "where: status: expected text, not int"),
    ],
)
async def test_an_error_names_the_filter_or_condition_once(data: Data, where: object, said: str) -> None:
    error = await data.error("/projects/ex/amples/tasks", params={"where": orjson.dumps(where).decode()})
    assert error["message"].startswith(said.removesuffix("…"))


@pytest.fixture
async def slashes(data_anywhere: Data) -> list[str]:
    """Four tasks whose curves have the same name: the last slash counts first, and then those before it."""
    data, found = data_anywhere, []
    curves = {
        "last": [("loss/train", "top1", 5), ("loss", "train/top1", 0)],
        "first": [("loss", "train/top1", 2)],
        "middle": [("loss/train/top1", "", 1)],
        "none": [("loss", "train", 3)],
    }
    for name, ones in curves.items():
        task = {"name": name, "type": "training", "project": data.project}
        found.append((await data.api.call("tasks.create", task))["id"])
        points = [scalar(metric, variant, i, value + i) for metric, variant, value in ones for i in range(3)]
        await data.add(*points, task=found[-1])
    return found


@pytest.mark.test
@ON_EACH
async def test_metrics_and_variants_may_have_slashes(data_anywhere: Data, slashes: list[str]) -> None:
    data, curve = data_anywhere, "loss/train/top1"

    async def table(**query: str) -> dict[str, Any]:
        columns = f"name,last:{curve},min_iter:{curve}"
        rows = (await data.get("/projects/ex/amples/tasks", params={"columns": columns, **query})).json()
        return {row["name"]: (row[f"last:{curve}"], row[f"min_iter:{curve}"]) for row in rows}

    async def names(*conditions: list[object]) -> list[str]:
        return [*await table(sort="name", where=orjson.dumps({"conditions": conditions}).decode())]

    found = await table(sort=f"-last:{curve}")
    assert list(found)[:2] == ["last", "first"]
    assert (found["last"], found["first"], found["middle"]) == ((7, 0), (4, 0), (None, None))
    assert list(await table(sort=f"min:{curve},name"))[:2] == ["first", "last"]
    assert next(iter(await table(sort=f"last:{curve}/,name"))) == "middle"
    assert await names([f"last:{curve}", "<", 5]) == ["first"]
    assert await names([f"last:{curve}", "is", 7, 4]) == ["first", "last"]
    assert await names([f"min:{curve}", "is", None]) == ["first try", "middle", "none"]
    assert await names([f"min:{curve}", "is not", None, 2], [f"max:{curve}", "<=", 7]) == ["last"]
    groups = (await data.get(f"/projects/ex/amples/groups?by=last:{curve}")).json()
    assert {row["value"]: row["tasks"] for row in groups} == {7: 1, 4: 1, None: 3}
    assert groups[0]["value"] is None
    curves = (await data.get(f"/projects/ex/amples/scalars?metric=loss&points=4&group=min:{curve}")).json()
    assert {row["group"] for row in curves} == {"2.0", "5.0", ""}


async def test_a_metric_ends_at_one_of_the_last_eight_slashes(data: Data) -> None:
    names = [f"n{n}" for n in range(11)]
    for end in (2, 3):
        await data.add(scalar("/".join(names[:end]), "/".join(names[end:]), 1, end))
    curve = f"last:{'/'.join(names)}"
    (row,) = (await data.get(f"/projects/ex/amples/tasks?columns={curve}")).json()
    assert row == {curve: 3}
    conditions = [[curve, ">", n] for n in range(50)]
    where = orjson.dumps({"conditions": [[curve, ">", -1]] * 50}).decode()
    assert len((await data.get("/projects/ex/amples/tasks", params={"where": where})).json()) == 1
    where = orjson.dumps({"conditions": conditions}).decode()
    assert (await data.get("/projects/ex/amples/tasks", params={"where": where})).json() == []


async def test_durations(data_anywhere: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_anywhere
    times = {"started": "2026-11-21T08:00:00Z", "completed": "2026-11-21T08:01:30Z"}
    for name, about in (
        ("done", {"status": "completed", **times}),
        ("longer", {"status": "failed", **times, "completed": "2026-11-21T09:00:00Z"}),
        ("running", {"status": "in_progress", "started": times["started"]}),
    ):
        run = {"source": name, "name": name, "project": data.project, **about}
        await data.api.call("tasks.import_run", run)
    monkeypatch.setattr("apiserver.data.fields.utc_now", lambda: "2026-11-21T08:00:40.000000+00:00")

    async def durations(query: str) -> dict[str, int | None]:
        rows = (await data.get(f"/projects/{data.project}/tasks?columns=name,duration&{query}")).json()
        return {row["name"]: row["duration"] for row in rows}

    assert await durations("") == {"first try": None, "done": 90, "longer": 3600, "running": 40}
    assert list(await durations("sort=-duration"))[:2] == ["longer", "done"]
    assert await durations('where={"conditions": [["duration", "<", 100]]}') == {"done": 90}
    assert await durations('where={"active_duration": [100, null]}') == {"longer": 3600}


async def test_no_link_opens_all_projects(data: Data) -> None:
    link = await data.api.raw("POST", "/data/links", json={"address": f"/data/projects/{data.project}/tasks"})
    token = link.json()["token"]
    await data.get(f"/projects/{data.project}/groups?by=status&token={token}", auth=None)
    await data.error(f"/projects/*/tasks?token={token}", auth=None, expect=404)


@pytest.mark.test
@pytest.mark.own_api
async def test_tasks_with_very_many_series_are_read_one_at_a_time(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [
        (await data.api.call("tasks.create", {"name": f"{n}", "type": "training", "project": data.project}))["id"]
        for n in range(3)
    ]
    for n, task in enumerate(tasks):
        await data.add(scalar("loss", "train", 1, n), task=task)
    events, asked = data.api.backend.events, []
    monkeypatch.setattr(events, "bounds", EmbeddedBounds(series_bytes=answers.LARGEST))
    read = events.scalar_buckets_of_each

    async def noted(queries: Any, buckets: Any) -> Any:
        asked.append(len(queries))
        return await read(queries, buckets)

    monkeypatch.setattr(events, "scalar_buckets_of_each", noted)
    address = f"/projects/{data.project}/scalars?points=9&" + "&".join(f"task={task}" for task in tasks)
    rows = (await data.get(address)).json()
    assert [(row["task"], row["mean"]) for row in rows] == [(task, n) for n, task in enumerate(tasks)]
    assert asked == [3, 1, 1, 1]
    histograms = await data.api.call("events.multi_task_scalar_metrics_iter_histogram", {"tasks": tasks})
    assert len(histograms["metrics"]["loss"]["train"]) == 3
    assert asked[4:] == [3, 1, 1, 1]


async def test_a_group_without_tasks_has_no_more_series_than_others(data: Data) -> None:
    empty = (await data.api.call("projects.create", {"name": "empty"}))["id"]
    names = "&".join(f"metric={n}&variant={n}" for n in range(101))
    assert (await data.error(f"/projects/{empty}/scalars?group=*&{names}"))["parameter"] == "metric"
