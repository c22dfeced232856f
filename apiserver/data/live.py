"""Live streams: what changes in tasks is told as server-sent events, or as the answer to a long poll.

A stream says what changed, not the new points: its reader asks for what it shows. `live/` knows what there is to tell;
here it becomes an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple

import orjson
from fastapi import Query, Response
from starlette.types import Receive, Scope, Send

from apiserver.common.errors import Refusal, overloaded, unavailable
from apiserver.data.calls import DataCall, TheCall, bad_parameter, not_found
from apiserver.data.places import find_owner, find_project
from apiserver.data.routes import ENDPOINT, caller_of, router
from apiserver.live.follower import NothingToFollow, TooManyTasks
from apiserver.live.hub import Hub, Reader, TooManyStreams
from apiserver.live.reach import Closed
from apiserver.live.telling import Chunk
from apiserver.live.watchers import Subscription, Watcher
from apiserver.reading.scroll import InvalidScroll
from apiserver.rpc.auth import TOKEN_COOKIE, cookie
from apiserver.rpc.disconnects import ClientDisconnected, while_connected
from apiserver.rpc.errors import ApiError
from apiserver.rpc.reply import SAFE_HEADERS
from apiserver.rpc.sending import pieces_of
from apiserver.services.access.roles import check
from apiserver.services.projects.tree import PROJECTS
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.documents.query import In

routes = router()

#: The most tasks that an address names, and the most tasks that it names by path, and projects: each takes a search.
_MOST_NAMED, _MOST_PATHS = 1000, 20
#: The longest wait of a long poll, in seconds: proxies give up after 60.
_LONGEST_WAIT = 50
#: Bytes that are sent before the client has to take some, and that may be unsent then: a client that takes nothing
#: holds no more.
_PIECE = 8 * 2**10
#: A stream begins with the milliseconds after which a browser comes back when it has ended.
_BEGIN = b"retry: 1000\n\n"
#: Request headers that matter beside those that say who calls. They are kept while a stream is open, up to so many
#: characters of each.
_BESIDE = (
    *("x-clearml-impersonate-as", "x-trains-impersonate-as"),
    *("host", "x-forwarded-host", "origin", "referer", "sec-fetch-site"),
)
_LONGEST_KEPT = 2048
#: What the server itself puts into the scope of a request. What others put there is not kept while a stream goes on.
_OF_SERVER = frozenset(
    {
        *("type", "asgi", "http_version", "server", "client", "scheme", "method", "root_path", "path", "raw_path"),
        *("query_string", "headers", "extensions"),
    }
)
#: The name among the scope's extensions of a function that limits what may be unsent.
_LIMIT_UNSENT = "limit_unsent"
#: The name of a stream in the scope of the request that has opened it.
_STREAM = "live stream"
_HEADERS = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"), *SAFE_HEADERS]

Tasks = Annotated[
    list[str], Query(alias="task", max_length=_MOST_NAMED, description="May repeat: a task's id or path.")
]
Projects = Annotated[
    list[str],
    Query(
        alias="project",
        max_length=_MOST_PATHS,
        description="May repeat: a project's id or path. All tasks that lie directly in it are followed, new ones too.",
    ),
]
Since = Annotated[
    str | None,
    Query(
        max_length=16_384,
        description="The id of the last event that was read, or the cursor of an answer: what changed since is told "
        "first. The header Last-Event-ID, which browsers send when they come back, goes before it.",
    ),
]
Wait = Annotated[
    float | None,
    Query(
        ge=0,
        le=_LONGEST_WAIT,
        description="Seconds for a long poll: the answer is JSON, as soon as something changed since the cursor, or "
        "when the time is over.",
    ),
]

_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A stream of events; with `wait`, an object with `cursor` and `events`",
        "content": {"text/event-stream": {}, "application/json": {}},
    }
}


@routes.get("/live", operation_id="data.live", response_class=Response, responses=_RESPONSES)
async def live(
    call: TheCall,
    tasks: Tasks = [],  # noqa: B006
    projects: Projects = [],  # noqa: B006
    since: Since = None,
    wait: Wait = None,
) -> Response:
    """Tells what changes in tasks. One stream follows many."""
    if not tasks and not projects:
        raise bad_parameter("task", "name at least one task or project")
    named = [(await find_project(call, address))["id"] for address in dict.fromkeys(projects)]
    return await _answer(call, Subscription(await _ids(call, tasks), frozenset(named)), since, wait)


@routes.get("/tasks/{task:path}/live", operation_id="data.task.live", response_class=Response, responses=_RESPONSES)
async def live_of_task(call: TheCall, task: str, since: Since = None, wait: Wait = None) -> Response:
    """Tells what changes in a task."""
    owner = await find_owner(call, task)
    return await _answer(call, Subscription(frozenset([owner.id])), since, wait)


async def _ids(call: DataCall, tasks: Sequence[str]) -> frozenset[str]:
    """The ids of the tasks. Ids need not be those of tasks, unless a link says which may be read."""
    one_by_one = {task for task in tasks if "/" in task or call.link is not None}
    if len(one_by_one) > _MOST_PATHS:
        raise bad_parameter("task", f"at most {_MOST_PATHS} may be paths: name others by id")
    ids = {(await find_owner(call, address)).id for address in one_by_one}
    ids.update(set(tasks) - one_by_one)
    if call.caller.grant.project is not None:
        ids = set(await call.backend.visible_to(call.caller).distinct(TASKS, "id", {"id": In(list(ids))}))
        if tasks and not ids:
            raise not_found("task", tasks[0])
    return frozenset(ids)


async def _answer(call: DataCall, asked: Subscription, since: str | None, wait: float | None) -> Response:
    parameter = "Last-Event-ID" if call.headers.get("last-event-id") else "since"
    hub = call.backend.live
    try:
        watcher = await hub.join(_reader(call, asked), asked, call.headers.get("last-event-id") or since)
    except InvalidScroll:
        raise bad_parameter(parameter, "it is none that this server gave; leave it out to begin anew") from None
    except NothingToFollow:
        raise not_found("task", next(iter([*asked.tasks, *asked.projects]))) from None
    except TooManyTasks:
        raise bad_parameter("project", f"there are more than {hub.bounds.tasks} tasks to follow") from None
    except TooManyStreams as error:
        whose = "You have" if error.of_user else "The server has"
        raise (overloaded if error.of_user else unavailable)(f"{whose} too many live streams already", 10) from None
    except Closed:
        raise unavailable("The server is stopping", 2) from None
    return StreamResponse(hub, watcher) if wait is None else PollResponse(hub, watcher, wait)


def _reader(call: DataCall, asked: Subscription) -> Reader:
    parts, company = call.parts, call.caller.company
    token = call.request.query_params.get("token")
    proxy_header = call.backend.settings.proxy_user_header.lower()
    kept = _credentials(call.headers, proxy_header) if token is None else {}

    async def may_go_on() -> bool:
        """Whether the credentials of the request are valid still, for all that it asks for."""
        try:
            caller, _ = await caller_of(parts, kept, token)
            check(caller, ENDPOINT, reads=True)
        except (ApiError, Refusal):
            return False
        if caller.grant.project is not None:
            seen = parts.backend.visible_to(caller)
            for kind, ids in ((TASKS, asked.tasks), (PROJECTS, asked.projects)):
                if ids and await seen.count(kind, {"id": In(list(ids))}) < len(ids):
                    return False
        return caller.company == company

    return Reader(company, call.reader.user, may_go_on)


def _credentials(headers: Mapping[str, str], proxy_header: str) -> dict[str, str]:
    """The headers that say who calls; a trusted proxy says so in `proxy_header`."""
    kept = {name: headers[name][:_LONGEST_KEPT] for name in _BESIDE if name in headers}
    if authorization := headers.get("authorization"):
        kept["authorization"] = authorization
    elif named := headers.get(proxy_header):
        kept[proxy_header] = named[:_LONGEST_KEPT]
    elif login := cookie(headers.get("cookie", ""), TOKEN_COOKIE):
        kept["cookie"] = f"{TOKEN_COOKIE}={login}"
    return kept


class PollResponse(Response):
    """The events that there are, or that come within so many seconds, up to a cursor. At its end, the watcher leaves.

    It waits while it is sent, because calls that are not answered yet keep others of their user waiting.
    """

    def __init__(self, hub: Hub, watcher: Watcher, wait: float) -> None:
        super().__init__(media_type="application/json")
        self._hub = hub
        self._watcher = watcher
        self._wait = wait

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with while_connected(receive):
                self.body = await self._content()
        except ClientDisconnected:
            return
        finally:
            self._hub.leave(self._watcher)
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)

    async def _content(self) -> bytes:
        told = Chunk([], None)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait):
                async for chunk in self._watcher:
                    told = Chunk([*told.events, *chunk.events], chunk.cursor or told.cursor)
                    if told.events and chunk.cursor is not None:
                        break
        return b'{"cursor":%b,"events":%b}' % (orjson.dumps(told.cursor), told.json())


class StreamResponse(Response):
    """A stream of server-sent events, which `go_on` sends. At its end, the watcher leaves."""

    def __init__(self, hub: Hub, watcher: Watcher) -> None:
        super().__init__()
        self._stream = _Stream(hub, watcher)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Leave the stream in the scope. So the functions that handled the request end, and all that they hold goes."""
        kept = {name: scope[name] for name in (*_OF_SERVER, "route") if name in scope}
        scope.clear()  # a dict whose keys are deleted one by one stays as large as it was
        scope.update({**kept, "headers": [], _STREAM: self._stream})


class _Stream(NamedTuple):
    """A stream that goes on."""

    hub: Hub
    watcher: Watcher

    async def send(self, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await _send(send, _BEGIN)
            async with while_connected(receive):
                async for chunk in self.watcher:
                    content = chunk.stream()
                    if len(content) <= _PIECE:
                        await _send(send, content)
                    else:
                        for piece in pieces_of(content, _PIECE):
                            await _send(send, bytes(piece))
                            await asyncio.sleep(0)  # what is sent in a turn is written at its end
            await send({"type": "http.response.body", "body": b""})
        except ClientDisconnected:
            pass
        finally:
            self.hub.leave(self.watcher)


async def go_on(scope: Scope, receive: Receive, send: Send) -> None:
    """Send the stream that a request has opened, if it has opened one."""
    stream: _Stream | None = scope.pop(_STREAM, None)
    if stream is not None:
        if limit_unsent := scope.get("extensions", {}).get(_LIMIT_UNSENT):
            limit_unsent(high=_PIECE)
        await stream.send(receive, send)


async def _send(send: Send, content: bytes) -> None:
    await send({"type": "http.response.body", "body": content, "more_body": True})
