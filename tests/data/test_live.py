"""Live streams and long polls over HTTP: what they answer, to whom, and how they end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from apiserver.data.addresses import ROUTES
from apiserver.data.links import DataLinks
from apiserver.live import hub
from apiserver.live.bounds import LiveBounds
from apiserver.live.telling import ALIVE
from apiserver.rpc.call import Identity
from apiserver.server.bounds import Bounds
from apiserver.services.access import credentials
from tests.data.conftest import ON_EACH, Data, scalar
from tests.data.streams import events_of, stream
from tests.harness import PATIENCE, Served, basic, bearer, new_user, served

pytestmark = pytest.mark.anyio

LINE = {"type": "log", "msg": "a line"}


@ON_EACH
async def test_a_stream_says_what_changes(data_anywhere: Data) -> None:
    data = data_anywhere
    async with stream(data.api, f"/data/tasks/{data.task}/live") as told:
        ((name, status),) = await told.next()
        assert (name, status["task"], status["status"]) == ("status", data.task, "created")
        assert told.status == 200
        assert told.headers["content-type"] == "text/event-stream"
        assert (told.headers["cache-control"], told.headers["x-accel-buffering"]) == ("no-store", "no")
        assert "content-length" not in told.headers
        await data.add(scalar("loss", "train", 3, 0.5), LINE)
        changes = await told.next()
        while len({name for name, _ in changes}) < 2:  # engines may show points before lines, or lines before points
            changes += await told.next()
        assert sorted({name for name, _ in changes}) == ["log", "scalars"]
        for name, change in changes:  # engines may say it again
            series = {"series": [["loss", "train", 3, 3]]} if name == "scalars" else {}
            assert change == {"task": data.task, **series, "count": 1}
        await data.api.call("tasks.started", {"task": data.task})
        ((name, status),) = await told.next()
        assert (name, status["status"]) == ("status", "in_progress")
    await data.add(LINE)
    for address, headers in (
        (f"/data/live?task={data.task}&since={told.cursor}", {}),
        ("/data/live?task=ex/amples/first%20try&since=old", {"last_event_id": told.cursor}),
    ):
        async with stream(data.api, address, **headers) as again:
            assert await again.next() == [("log", {"task": data.task, "count": 1})]


@ON_EACH
async def test_a_long_poll_answers_as_soon_as_something_changed(data_anywhere: Data) -> None:
    data = data_anywhere
    first = (await data.get("live?wait=20")).json()
    assert [one["event"] for one in first["events"]] == ["status"]
    nothing = (await data.get(f"live?wait=0.1&since={first['cursor']}")).json()
    assert nothing["events"] == []
    waiting = asyncio.create_task(data.get(f"live?wait=50&since={nothing['cursor']}"))
    await data.add(scalar("loss", "train", 3, 0.5))
    answer = (await waiting).json()
    expected = {"event": "scalars", "task": data.task, "series": [["loss", "train", 3, 3]], "count": 1}
    assert answer["events"] == [expected]
    changes = await data.api.call("events.get_changes", {"tasks": [data.task], "cursor": first["cursor"]})
    assert [one["metric"] for one in changes["changes"][0]["series"]] == ["loss"]
    answer = (await data.get(f"live?wait=20&since={changes['cursor']}")).json()
    assert [one["event"] for one in answer["events"]] == ["status"], "a cursor of the API says nothing of statuses"


async def test_a_project_is_followed(data: Data) -> None:
    async with stream(data.api, f"/data/live?project={data.project}") as told:
        assert [(name, one["task"]) for name, one in await told.next()] == [("status", data.task)]
        made = await data.api.call("tasks.create", {"name": "new", "type": "training", "project": data.project})
        assert [(name, one["task"]) for name, one in await told.next()] == [("status", made["id"])]
        await data.add(scalar("loss", "train", 3, 0.5), task=made["id"])
        assert [(name, one["task"]) for name, one in await told.next()] == [("scalars", made["id"])]


@pytest.mark.test
@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "task"),
        ("task={task}&since=forged", "since"),
        ("task={task}&since=é.1", "since"),
        (f"task={{task}}&since={'x' * 20_000}", "since"),
        ("task={task}&wait=51", "wait"),
        ("task={task}&wait=nan", "wait"),
        ("task={task}&wait=soon", "wait"),
        ("task={task}&every=1", "every"),
        ("task=x&" * 1001, "task"),
        ("project=x&" * 21, "project"),
        ("task=a/b&" + "&".join(f"task=a/{n}" for n in range(21)), "task"),
    ],
)
async def test_bad_parameters_are_named(data: Data, query: str, parameter: str) -> None:
    error = await data.error(f"/live?{query.format(task=data.task)}")
    assert error["parameter"] == parameter


@pytest.mark.test
@pytest.mark.own_api
async def test_who_may_follow_what(data: Data) -> None:
    assert (await data.error(f"/live?task={data.task}", auth=None, expect=401))["code"] == 401
    await data.error("live", auth=("nobody", "nothing-that-anybody-knows"), expect=401)
    _, made = await credentials.create_user(data.api.backend.documents, "another company", "eve", "admin")
    theirs = (made.key, made.secret)
    first = (await data.get("live?wait=0")).json()
    await data.error("live", auth=theirs, expect=404)
    await data.error(f"/live?task={data.task}&task=nobody", auth=theirs, expect=404)
    await data.error(f"/live?project={data.project}", auth=theirs, expect=404)
    await data.error("/live?task=nobody", expect=404)
    await data.error("/live?project=nobody", expect=404)
    await data.api.call("tasks.make_public", {"ids": [data.task]})
    assert (await data.get("live?wait=0", auth=theirs)).json()["events"][0]["task"] == data.task
    error = await data.error(f"live?since={first['cursor']}", auth=theirs)
    assert error["parameter"] == "since"


@pytest.mark.bounds(Bounds(live=LiveBounds(turn_seconds=0.05)))
async def test_a_link_follows_what_it_covers_and_ends(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    other = (await data.api.call("tasks.create", {"name": "other", "type": "training"}))["id"]
    me = (await data.api.call("users.get_current_user"))["user"]
    links = DataLinks(data.api.backend.settings.token_secret)
    token, ended = (
        links.token(Identity(me["id"], data.api.company), f"tasks/{data.task}", seconds) for seconds in (3600, -1)
    )
    read = DataLinks.read
    await data.error(f"/live?task={other}&token={token}", auth=None, expect=404)
    await data.error(f"/live?project={data.project}&token={token}", auth=None, expect=404)
    await data.error(f"/live?task={data.task}&task={other}&token={token}", auth=None, expect=404)
    async with stream(data.api, f"/data/live?task={data.task}&token={token}", authorization="") as told:
        assert {one["task"] for _, one in await told.next()} == {data.task}
        assert await told.piece() == ALIVE.decode()
        monkeypatch.setattr(DataLinks, "read", lambda links, _: read(links, ended))  # as if the time were over
        while "event: end" not in (said := await told.piece() or "event: end"):
            assert said == ALIVE.decode()
    await data.error(f"live?token={token}", auth=None, expect=401)


@pytest.mark.bounds(Bounds(live=LiveBounds(turn_seconds=0.05)))
async def test_streams_end_when_their_key_is_revoked(data: Data) -> None:
    _, (key, secret) = await new_user(data.api, "leaver")
    async with stream(data.api, f"/data/tasks/{data.task}/live", authorization=basic(key, secret)) as told:
        await told.next()
        assert await told.piece() == ALIVE.decode()
        await data.api.call("auth.revoke_credentials", {"access_key": key}, auth=(key, secret))
        while (said := await told.piece()) == ALIVE.decode():
            pass
        assert said == f'event: end\ndata: {{"reason":"{hub.CREDENTIALS}"}}\n\n'
        assert await told.piece() == ""
        assert await told.piece() is None


@pytest.mark.bounds(Bounds(live=LiveBounds(turn_seconds=0.05)))
async def test_a_stream_by_cookie_goes_on_until_its_login_ends(data: Data) -> None:
    token = (await data.api.call("auth.login"))["token"]
    page = {"authorization": "", "cookie": f"other=1; clearml_token_basic={token}", "sec_fetch_site": "same-origin"}
    async with stream(data.api, f"/data/tasks/{data.task}/live", **page) as told:
        await told.next()
        for _ in range(3):
            assert await told.piece() == ALIVE.decode()
        await data.api.call("auth.logout", auth=None, headers=bearer(token))
        while (said := await told.piece()) == ALIVE.decode():
            pass
        assert said is not None
        assert hub.CREDENTIALS in said


@pytest.mark.own_api
async def test_a_user_has_a_bounded_number_of_streams(data: Data) -> None:
    data.api.backend.live._streams._most = 4
    _, other = await new_user(data.api, "other")
    address = f"/data/tasks/{data.task}/live"
    async with stream(data.api, address), stream(data.api, address), stream(data.api, address) as last:
        await last.next()
        answer = await data.get("live", expect=429)
        assert int(answer.headers["retry-after"]) > 0
        async with stream(data.api, address, authorization=basic(*other)) as fourth:
            await fourth.next()
            answer = await data.get("live", auth=other, expect=503)
            assert int(answer.headers["retry-after"]) > 0
    assert (await data.get("live?wait=0")).json()["events"]


def following(server: Served, task: str, since: str | None = None) -> Any:
    """A stream of a task from the server."""
    return httpx.stream(
        "GET",
        f"{server.api_url}/data/live",
        params={"task": task, **({"since": since} if since else {})},
        auth=(server.key, server.secret),
        timeout=PATIENCE,
    )


def test_nothing_is_missed_when_the_server_is_killed(server: Served) -> None:
    task = server.call("tasks.create", {"name": "t", "type": "training"})["id"]
    cursor = None
    seen: set[int] = set()
    for start in (0, 5):
        with following(server, task, cursor) as answer:
            told = events_of(answer.iter_lines())
            for n in range(start, start + 5):
                server.call("events.add", {**scalar("m", "v", n, 1.0), "task": task})
                while n not in seen:
                    one = next(told)
                    if one.event == "scalars":
                        ((_, _, least, greatest),) = one.data["series"]
                        seen.update(range(least, greatest + 1))
                    cursor = one.id or cursor
        server.call("events.add", {**scalar("m", "v", 100 + start, 1.0), "task": task})
        server.kill()
        server.start()
    with following(server, task, cursor) as answer:
        told = events_of(answer.iter_lines())
        while (one := next(told)).event not in ("scalars", "reset"):
            pass
        assert one.event == "reset" or one.data["series"][0][3] == 105


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Served]:
    """A server that gives requests under way more time to end than tests wait for anything."""
    with served(tmp_path / "data", shutdown_seconds=2 * PATIENCE) as running:
        yield running


@pytest.mark.test
def test_a_server_that_stops_ends_its_streams_and_does_not_wait_for_them(patient: Served) -> None:
    server = patient
    task = server.call("tasks.create", {"name": "t", "type": "training"})["id"]
    with following(server, task) as answer:
        told = events_of(answer.iter_lines())
        assert [next(told).event for _ in range(2)] == ["", "status"]
        assert server.stop() == 0
        one = next(told)
        assert (one.event, one.data) == ("end", {"reason": hub.STOPPING})
        assert one.id
        assert list(told) == []
    server.start()
    with following(server, task, one.id) as answer:
        told = events_of(answer.iter_lines())
        assert next(told).event == ""
        assert next(told).event in ("", "reset"), "of a task without events, a new process cannot tell"


def test_no_address_waits_for_a_thread() -> None:
    """FastAPI runs functions that are no coroutines in threads, and many requests are in memory meanwhile."""
    asking = [route.dependant for route in ROUTES if isinstance(route, APIRoute)]
    asked = [one.call for dependant in asking for one in (dependant, *dependant.dependencies)]
    assert asked
    assert all(inspect.iscoroutinefunction(call) for call in asked)
