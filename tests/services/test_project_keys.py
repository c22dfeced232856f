"""Access keys that are limited to a project: they see and change what is in it, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apiserver.data.addresses import ROUTERS
from apiserver.rpc.call import Grant, Identity
from apiserver.services.access import credentials
from apiserver.services.projects.files import may_use_file
from tests.harness import Api, bearer, running_api
from tests.services.generated import ENDPOINTS, Requests, send
from tests.services.test_authorization import assert_no_word, events_of, kept, populated, summary

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class World:
    """A server with things of another project (`others`), and a key of an admin for the project `mine`."""

    api: Api
    others: dict[str, str]
    mine: str
    below: str
    task: str
    key: tuple[str, str]

    async def call(self, endpoint: str, request: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """A call with the limited key."""
        return await self.api.call(endpoint, request, auth=self.key, **options)

    async def raw(self, method: str, path: str, **options: Any) -> Any:
        return await self.api.raw(method, path, auth=self.key, **options)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with made(tmp_path_factory.mktemp("project keys") / "data") as world:
        yield world


@asynccontextmanager
async def made(data: Path) -> AsyncIterator[World]:
    async with running_api(data) as api:
        others = await populated(api)
    async with running_api(data) as api:
        mine = (await api.call("projects.create", {"name": "mine", "description": ""}))["id"]
        below = (await api.call("projects.create", {"name": "mine/below", "description": ""}))["id"]
        documents, company = api.backend.documents, api.company
        grant = Grant(project=mine)
        _, access = await credentials.create_user(documents, company, "limited", "admin", grant=grant)
        key = (access.key, access.secret)
        request = {"name": "a task", "type": "training", "project": below}
        task = (await api.call("tasks.create", request, auth=key))["id"]
        yield World(api, others, mine, below, task, key)


@pytest.mark.test
async def test_things_of_other_projects_are_like_things_that_are_not_there(world: World) -> None:
    api, company = world.api, world.others["company"]
    before, events = await kept(api, company), await events_of(api, world.others["task"])
    made_up = {kind: f"{uuid4().hex}{kind}" for kind in world.others}
    for endpoint in ENDPOINTS:
        pairs = zip(
            Requests(world.others, "first").naming(endpoint), Requests(made_up, "second").naming(endpoint), strict=True
        )
        if endpoint.name.startswith("auth."):
            continue  # they are refused, or sign in
        for pair in pairs:
            theirs, nothing = [await send(api, endpoint, request, auth=world.key) for request in pair]
            assert theirs.status_code in (200, 400, 403), (endpoint.name, theirs.request.content, theirs.text)
            # Which queues there are may be learned: tasks are put into them.
            if endpoint.name not in ("tasks.enqueue", "tasks.enqueue_many"):
                assert summary(theirs) == summary(nothing), (endpoint.name, theirs.request.content, theirs.text)
            assert_no_word(theirs, world.others)
    assert await kept(api, company) == before
    assert await events_of(api, world.others["task"]) == events


@pytest.mark.test
async def test_lists_have_only_what_is_in_the_project(tmp_path: Path) -> None:
    async with made(tmp_path / "data") as world:  # other tests add to the project
        await assert_lists_have_only_what_is_in_the_project(world)


async def assert_lists_have_only_what_is_in_the_project(world: World) -> None:
    assert [task["id"] for task in (await world.call("tasks.get_all"))["tasks"]] == [world.task]
    assert [task["id"] for task in (await world.call("tasks.get_all_ex"))["tasks"]] == [world.task]
    projects = (await world.call("projects.get_all_ex"))["projects"]
    assert {project["id"] for project in projects} == {world.mine, world.below}
    assert (await world.call("models.get_all"))["models"] == []
    assert (await world.call("reports.get_all_ex"))["tasks"] == []
    user = (await world.call("users.get_current_user"))["user"]
    assert user["name"] == "limited"
    rows = [json.loads(line) for line in (await world.raw("GET", "/data/projects.ndjson")).text.splitlines()]
    assert {row["name"] for row in rows} == {"mine", "mine/below"}
    rows = [json.loads(line) for line in (await world.raw("GET", "/data/projects/*/tasks.ndjson")).text.splitlines()]
    assert [row["id"] for row in rows] == [world.task]


@pytest.mark.test
async def test_work_in_the_project_goes_on_as_ever(world: World) -> None:
    request = {"name": "a run", "type": "training", "project": world.mine}
    task = (await world.call("tasks.create", request))["id"]
    event = {"task": task, "type": "training_stats_scalar", "metric": "m", "variant": "v", "value": 1, "iter": 1}
    assert (await world.call("events.add", event))["added"] == 1
    found = await world.call("events.scalar_metrics_iter_histogram", {"task": task})
    assert found["m"]["v"]["y"] == [1]
    point = {"name": "x", "gauge": {"dataPoints": [{"asDouble": 1, "timeUnixNano": str(time.time_ns())}]}}
    resource = {"attributes": [{"key": "clearml.task", "value": {"stringValue": task}}]}
    body = {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": [point]}]}]}
    assert (await world.raw("POST", "/v1/metrics", json=body)).status_code == 200
    await world.call("tasks.edit", {"task": task, "comment": "mine"})
    await world.call("tasks.started", {"task": task})
    await world.call("tasks.completed", {"task": task})
    model = {"name": "m", "uri": "file:///m", "project": world.mine, "task": task}
    made = (await world.call("models.create", model))["id"]
    await world.call("models.delete", {"model": made})
    deeper = (await world.call("projects.create", {"name": "mine/below/deeper", "description": ""}))["id"]
    await world.call("tasks.move", {"ids": [task], "project": deeper})
    queue = world.others["queue"]
    assert (await world.call("tasks.enqueue", {"task": world.task, "queue": queue}))["queued"] == 1
    await world.call("tasks.dequeue", {"task": world.task})
    await world.call("tasks.delete", {"task": task, "force": True})
    await world.call("projects.delete", {"project": deeper})


@pytest.mark.parametrize(
    ("endpoint", "request_"), [("dequeue_many", {}), ("archive_many", {}), ("delete_many", {"force": True})]
)
async def test_waiting_tasks_of_other_projects_stay_in_their_queue(
    world: World, endpoint: str, request_: dict[str, Any]
) -> None:
    waiting = world.others["waiting task"]
    before = await kept(world.api, world.others["company"])
    answer = await world.call(f"tasks.{endpoint}", {"ids": [waiting], **request_})
    assert [failed["id"] for failed in answer["failed"]] == [waiting]
    assert await kept(world.api, world.others["company"]) == before


async def test_nothing_tells_which_tasks_of_other_projects_wait(world: World) -> None:
    queue = world.others["queue"]
    await world.call("tasks.enqueue", {"task": world.task, "queue": queue})
    fields = ["execution.queue.name", "execution.queue.entries", "execution.queue.entries.task"]
    for endpoint in ("tasks.get_all_ex", "tasks.get_by_id_ex"):
        [task] = (await world.call(endpoint, {"id": [world.task], "only_fields": fields}))["tasks"]
        assert task["execution"]["queue"] == {"id": queue, "name": "onlyours queue"}
    await world.call("tasks.dequeue", {"task": world.task})


@pytest.mark.test
@pytest.mark.parametrize(
    ("endpoint", "request_"),
    [
        ("tasks.create", {"name": "x", "type": "training"}),
        ("tasks.create", {"name": "x", "type": "training", "project": "other"}),
        ("models.create", {"name": "x", "uri": "file:///x"}),
        ("projects.create", {"name": "elsewhere", "description": ""}),
        ("projects.create", {"name": "onlyours project/x", "description": ""}),
        ("projects.move", {"project": "below", "new_location": ""}),
        ("projects.move", {"project": "mine", "new_location": "elsewhere"}),
        ("projects.move", {"project": "below", "new_location": "onlyours project"}),
        ("projects.update", {"project": "mine", "name": "renamed"}),
        ("projects.merge", {"project": "below", "destination_project": "other"}),
        ("tasks.move", {"ids": ["task"], "project": "other"}),
        ("tasks.move", {"ids": ["task"], "project_name": "elsewhere"}),
        ("tasks.move", {"ids": ["task"], "project": None}),
        ("tasks.edit", {"task": "task", "project": "other"}),
        ("tasks.clone", {"task": "task", "new_task_project": "other"}),
        ("tasks.make_public", {"ids": ["task"]}),
    ],
)
async def test_nothing_leaves_the_project(world: World, endpoint: str, request_: dict[str, Any]) -> None:
    names = {"other": world.others["project"], "mine": world.mine, "below": world.below, "task": world.task}

    def named(value: Any) -> Any:
        return [names.get(one, one) for one in value] if isinstance(value, list) else names.get(value, value)

    before = await kept(world.api, world.others["company"])
    request = {name: value if name in ("name", "new_location") else named(value) for name, value in request_.items()}
    response = await world.raw("POST", f"/v2.34/{endpoint}", json=request)
    assert response.status_code in (400, 403), response.text
    assert await kept(world.api, world.others["company"]) == before


async def test_files_belong_to_the_tasks_that_their_paths_name(world: World) -> None:
    api, theirs = world.api, f"/files/onlyours project/x.{world.others['task']}/artifacts/a"
    await api.raw("PUT", theirs, content=b"theirs")
    own = f"/files/mine/below/a task.{world.task}/artifacts/a"
    assert (await world.raw("PUT", own, content=b"own")).status_code == 200
    assert (await world.raw("GET", own)).content == b"own"
    hidden = f"/files/p/x.{world.others['task']}/y.{world.task}/a"
    for path in (theirs, "/files/anything", hidden, f"/files/a.{world.task}"):
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            content = {"content": b"x"} if method == "PUT" else {}
            assert (await world.raw(method, path, **content)).status_code == 403, (method, path)
    for name, status in ((theirs.removeprefix("/files"), 403), (own.removeprefix("/files"), 200)):
        assert (await world.raw("POST", "/files", files={name: ("file", b"again")})).status_code == status
    assert (await api.raw("GET", theirs)).content == b"theirs"
    assert (await world.raw("DELETE", own)).status_code == 200


async def test_a_long_path_holds_up_nobody(world: World) -> None:
    """A search that began again at each dot would take hours."""
    caller = Identity(world.others["user"], world.others["company"], grant=Grant(project=world.mine))
    assert not await may_use_file(world.api.backend, caller, "/" + "." * 2**21)
    assert await may_use_file(world.api.backend, caller, f"/{'.' * 2**21}.{world.task}/a")


async def test_deleting_a_task_deletes_no_files_of_others(world: World) -> None:
    api, theirs = world.api, f"/files/onlyours project/x.{world.others['task']}/artifacts/b"
    await api.raw("PUT", theirs, content=b"theirs")
    request = {"name": "a run", "type": "training", "project": world.mine}
    task = (await world.call("tasks.create", request))["id"]
    own = f"/files/mine/a run.{task}/artifacts/b"
    await api.raw("PUT", own, content=b"own")
    for path in (theirs, own, "no path"):
        url = "http://[x" if path == "no path" else f"http://testserver{path}".replace(" ", "%20")
        artifact = {"key": path[-40:], "type": "custom", "uri": url}
        await world.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [artifact], "force": True})
    await world.call("tasks.delete", {"task": task, "force": True, "delete_external_artifacts": True})
    await api.backend.file_deletions.work()
    assert (await api.raw("GET", own)).status_code == 404
    assert (await api.raw("GET", theirs)).content == b"theirs"


async def test_files_that_are_made_for_others_are_not_answered(world: World) -> None:
    path = "/data/projects/*/tasks.parquet?columns=name"
    whole = await world.api.raw("GET", path)
    part = await world.raw("GET", path, headers={"range": "bytes=0-100000"})
    assert b"onlyours" in whole.content
    assert b"onlyours" not in part.content


@pytest.mark.test
async def test_no_address_of_data_tells_of_other_projects(world: World) -> None:
    others = {"{task:path}": world.others["task"], "{project:path}": world.others["project"], "{id}": "x"}
    paths = {str(getattr(route, "path", "")) for router in ROUTERS for route in router.routes}
    assert len(paths) > 20
    for path in paths:
        if "{ending}" in path or path == "/data/links":
            continue
        for names in (others, dict.fromkeys(others, "*")):
            address = path
            for name, value in names.items():
                address = address.replace(name, value)
            query = {"/data/live": f"?task={world.others['task']}&wait=0", "/data/views": "?project=*"}.get(path, "")
            query = "?wait=0" if path.endswith("/live") and not query else query
            response = await world.raw("GET", address + query)
            assert "onlyours" not in response.text, (address, response.text)
            assert response.status_code != 500, address


async def test_live_streams_follow_tasks_of_the_project_alone(world: World) -> None:
    theirs, own = world.others["task"], world.task
    for path in (f"/data/live?task={theirs}", f"/data/tasks/{theirs}/live", f"/data/live?project=*&task={theirs}"):
        separator = "&" if "?" in path else "?"
        assert (await world.raw("GET", f"{path}{separator}wait=0")).status_code == 404, path
    both = await world.raw("GET", f"/data/live?task={own}&task={theirs}&wait=0.5")
    assert both.status_code == 200
    assert theirs not in both.text
    assert (await world.raw("GET", f"/data/live?project={world.others['project']}&wait=0")).status_code == 404


async def test_tokens_links_and_acting_for_others_stay_in_the_project(world: World) -> None:
    api, theirs = world.api, world.others["task"]
    token = (await world.call("auth.login"))["token"]
    api.client.cookies.clear()
    await api.call("tasks.get_by_id", {"task": theirs}, auth=None, headers=bearer(token), expect=400)
    other = {"x-clearml-impersonate-as": world.others["user"]}
    await world.call("tasks.get_by_id", {"task": theirs}, headers=other, expect=400)
    link = await world.raw("POST", "/data/links", json={"address": f"/data/tasks/{world.task}/log"})
    assert link.status_code == 200
    link = await world.raw("POST", "/data/links", json={"address": f"/data/tasks/{theirs}/log"})
    assert link.status_code == 404
    for endpoint in ("auth.create_credentials", "queues.get_all", "workers.get_all", "users.get_all", "server.config"):
        await world.call(endpoint, {}, expect=403)
    for path in ("/metrics", "/data/audit"):
        assert (await world.raw("GET", path)).status_code == 403


async def test_a_key_is_made_for_a_project_that_there_is(world: World) -> None:
    api = world.api
    await api.call("auth.create_credentials", {"project": "nothing"}, expect=400)
    alone = (await api.call("projects.create", {"name": "mine/alone", "description": ""}))["id"]
    made = (await api.call("auth.create_credentials", {"project": alone, "scopes": ["read"]}))["credentials"]
    assert made["project"] == alone
    key = (made["access_key"], made["secret_key"])
    assert [project["id"] for project in (await api.call("projects.get_all", auth=key))["projects"]] == [alone]
    await api.call("tasks.edit", {"task": world.task, "comment": "x"}, auth=key, expect=403)
