"""The ASGI application of the API: path → endpoint → caller → body → validated request → handler → envelope."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Container, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple, Protocol

from starlette.types import Receive, Scope, Send

from apiserver.common.errors import Errors, Refusal
from apiserver.rpc.admission import Admission
from apiserver.rpc.auth import Authenticator, note_caller
from apiserver.rpc.body import REST_OF_BODY, SMALL, Body, Limits
from apiserver.rpc.call import ANONYMOUS, Answer, Call, Encoded, Identity, Rules, Streamed
from apiserver.rpc.disconnects import ClientDisconnected
from apiserver.rpc.encode import encode_many, size_of
from apiserver.rpc.envelope import Heard, Meta, success
from apiserver.rpc.errors import ApiError, method_not_allowed
from apiserver.rpc.in_flight import InFlight
from apiserver.rpc.parse import memory_of, parse_json, parse_lines, parse_query
from apiserver.rpc.reply import Reply, StreamReply, refusal
from apiserver.rpc.routes import Route, Routes, newest_at_most
from apiserver.rpc.sending import pieces_of
from apiserver.rpc.statuses import answer_to, error_for
from apiserver.rpc.versions import not_found, split_path

logger = logging.getLogger("apiserver.rpc")

METHODS = ("GET", "POST", "PUT")
_ALLOW = ", ".join((*METHODS, "OPTIONS"))


#: The key, in the scope of a request, of what answered it: the name of an endpoint, or the pattern of a path. Clients
#: write neither.
ANSWERED_AS = "apiserver.answered_as"

#: Told of each answer: the endpoint, the HTTP status, and the seconds that it took.
Answered = Callable[[str, int, float], None]


class Told(Protocol):
    """Is told of calls that matter for long: those of some endpoints, and those that are refused."""

    @property
    def endpoints(self) -> Container[str]:
        """Endpoints whose calls are told, with the fields of their requests."""

    def call(self, scope: Scope, headers: Mapping[str, str], meta: Meta, status: int) -> None:
        """A call was answered."""


#: Statuses of answers to calls that are refused.
_REFUSED = (401, 403)
#: The endpoint that is told of if a request names none that there is.
UNKNOWN = "unknown"
#: How many paths are remembered, with what they lead to.
_MOST_PATHS = 4096


class _Asked(NamedTuple):
    """What a path leads to: an endpoint, the version that it names, the route, and the version that answers."""

    endpoint: str
    requested_version: str
    route: Route
    actual_version: str


class Dispatcher:
    """Serves the endpoints that have routes.

    Handlers get `backend` in their call. `rules` say which roles may call what. `errors` says which answer an exception
    of a lower layer becomes, by its class or a base class. Any other exception is logged, and answered 500 without its
    cause. `in_flight` counts the bodies of others, too. `told` hears of calls that matter for long.
    So many `paths` are remembered, with what they lead to.
    """

    def __init__(
        self,
        routes: Routes,
        auth: Authenticator,
        backend: Any,
        *,
        rules: Rules | None = None,
        limits: Limits | None = None,
        in_flight: InFlight | None = None,
        errors: Errors | None = None,
        admission: Admission | None = None,
        answered: Answered | None = None,
        told: Told | None = None,
        paths: int = _MOST_PATHS,
    ) -> None:
        self._routes = routes
        self._auth = auth
        self._backend = backend
        self._rules = rules
        self._limits = limits or Limits()
        self._in_flight = in_flight or InFlight(self._limits.in_flight)
        self._answered = answered
        self._told = told
        self._heard = () if told is None else told.endpoints
        self._admission = admission or Admission(self._limits.answers)
        self._errors = errors or {}
        self._paths: dict[str, _Asked] = {}
        self._most_paths = paths

    def serves(self, path: str) -> bool:
        """Whether the path is that of an endpoint, such as `/events.add` or `/v2.13/events.add`."""
        if path in self._paths:
            return True
        version, _, name = path[1:].rpartition("/")
        return name in self._routes and (
            not version or (version[:1] == "v" and version[1:].replace(".", "").isdecimal())
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close"})
        started = time.perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = Body(receive, headers, self._limits, self._in_flight, scope.get("extensions", {}).get(REST_OF_BODY))
        meta = Meta()
        try:
            reply = await self._reply(scope, headers, body, meta)
            if isinstance(reply, StreamReply):
                await reply.send(scope, receive, headers, send)
            else:
                await reply.send(headers, body, send)
        except ClientDisconnected:
            logger.debug("the client left before its request was whole", extra={"request": meta.id})
        else:
            if self._answered is not None:
                endpoint = meta.endpoint if meta.actual_version is not None else UNKNOWN
                scope[ANSWERED_AS] = endpoint
                self._answered(endpoint, reply.status, time.perf_counter() - started)
            if self._told is not None and (meta.heard is not None or reply.status in _REFUSED):
                self._told.call(scope, headers, meta, reply.status)
            _log(meta, reply, started)
        finally:
            body.release()
            if meta.reading is not None:
                meta.reading.end()

    async def _reply(self, scope: Scope, headers: dict[str, str], body: Body, meta: Meta) -> Reply | StreamReply:
        try:
            return await self._serve(scope, headers, body, meta)
        except ClientDisconnected:
            raise
        except Exception as error:
            return self._refusal(error, meta)

    def _refusal(self, error: Exception, meta: Meta) -> Reply:
        # Not in `_reply`: an error that a variable of its own traceback names stays in memory for long, with the body.
        known = self._api_error(error, meta)
        if known.code == 405:  # endpoints answer it, too, where ClearML's clients expect it
            known.allow = _ALLOW
        return refusal(meta, known)

    async def _serve(self, scope: Scope, headers: dict[str, str], body: Body, meta: Meta) -> Reply | StreamReply:
        if scope["method"] == "OPTIONS":
            return Reply(204, b"", [("allow", _ALLOW)])
        if scope["method"] not in METHODS:
            raise method_not_allowed(scope["method"], _ALLOW)
        route = self._route(scope["path"], meta)
        client = (scope.get("client") or ("",))[0]
        identity = await self._identity(route, meta, scope["method"], headers, client)
        if identity is not ANONYMOUS:
            note_caller(scope, identity)
            body.known()
        content = await body.read()
        query = parse_query(scope.get("query_string", b""), route.arrays)
        call = Call(
            id=meta.id,
            endpoint=meta.endpoint,
            requested_version=str(meta.requested_version),
            actual_version=str(meta.actual_version),
            identity=identity,
            backend=self._backend,
            headers=headers,
            method=scope["method"],
            client=client,
            body=content,
            work=body.work,
        )
        return await _answer(meta, call, await self._handle(meta, route, call, query, body))

    async def _handle(self, meta: Meta, route: Route, call: Call[Any], query: dict[str, Any], body: Body) -> Answer:
        """The handler's answer. A handler that reads, and finds no room for what it reads, is run again later."""

        async def make() -> Answer:
            request = await _request(route, call, query)
            if meta.endpoint not in self._heard:
                return await _begun(await route.handler(call, request))
            meta.heard = Heard(request)
            try:
                return await _begun(await route.handler(call, request))
            finally:
                meta.caller, meta.heard.tried = call.identity, call.tried

        def again() -> None:
            call.response_headers.clear()
            call.afterwards.clear()

        if not route.reads:
            return await make()
        meta.reading = self._admission.reading()
        return await meta.reading.run(make, call.identity, body.while_connected, again)

    def _route(self, path: str, meta: Meta) -> Route:
        asked = self._paths.get(path)
        if asked is None:
            requested, name = split_path(path)
            meta.endpoint, meta.requested_version = name, str(requested)
            newest = newest_at_most(self._routes.get(name, ()), requested)
            if newest is None:
                raise not_found(name, requested)
            if len(self._paths) >= self._most_paths:
                self._paths.clear()
            asked = self._paths[path] = _Asked(name, str(requested), newest, str(newest.since))
        meta.endpoint, meta.requested_version, route, meta.actual_version = asked
        return route

    async def _identity(self, route: Route, meta: Meta, method: str, headers: dict[str, str], client: str) -> Identity:
        """The caller. An endpoint for anyone takes wrong credentials for none."""
        try:
            identity = await self._auth.authenticate(headers, method=method, changes=not route.reads, client=client)
        except Refusal as error:
            if route.anonymous and answer_to(error).code in (401, 403):
                return ANONYMOUS
            raise
        meta.caller = identity
        if self._rules is not None:
            self._rules.check(identity, meta.endpoint, reads=route.reads)
        return identity

    def _api_error(self, error: Exception, meta: Meta) -> ApiError:
        known = error_for(error, self._errors)
        if known is None:
            logger.error("%s failed", meta.endpoint, exc_info=error, extra={"request": meta.id})
        return known or ApiError(500, 0, f"Internal server error (request {meta.id})")


async def _request(route: Route, call: Call[Any], query: dict[str, Any]) -> dict[str, Any]:
    """The fields of the request, validated unless the handler is raw."""
    if route.raw:
        return query
    parse = partial(_parsed, route, query, call.body)
    return parse() if len(call.body) <= SMALL else await call.work(parse, memory_of(call.body))


def _parsed(route: Route, query: dict[str, Any], body: bytes) -> dict[str, Any]:
    if route.batch:
        return {"items": [route.validate(line) for line in parse_lines(body, route.most_items)]}
    return route.validate({**query, **parse_json(body)})


async def _answer(meta: Meta, call: Call[Any], answer: Answer) -> Reply | StreamReply:
    if isinstance(answer, Streamed):
        return StreamReply(answer.chunks, [("content-type", answer.content_type), *call.response_headers])
    content = success(meta, answer.json if isinstance(answer, Encoded) else await encode_many(answer))
    del answer
    if meta.reading is not None:
        meta.reading.held.settle(size_of(content))
    for keep in call.afterwards:
        await keep()
    return Reply(200, content, call.response_headers)


async def _begun(answer: Answer) -> Answer:
    """The answer. If it is sent while it is made, its first chunk has been made without an error."""
    if not isinstance(answer, Streamed):
        return answer
    chunks = answer.chunks
    chunk = await anext(chunks, None)

    async def pieces(chunk: bytes | None) -> AsyncGenerator[bytes, None]:
        async with aclosing(chunks):
            while chunk is not None:
                cut = deque(pieces_of(chunk))
                chunk = None  # free it before the next one is made
                while cut:
                    # Once the client has left, sending never waits; without this, no other task would get its turn.
                    await asyncio.sleep(0)
                    yield bytes(cut.popleft())  # a view would keep the whole chunk in memory
                chunk = await anext(chunks, None)

    return Streamed(pieces(chunk), answer.content_type)


def _log(meta: Meta, reply: Reply | StreamReply, started: float) -> None:
    if not logger.isEnabledFor(logging.DEBUG):
        return
    fields = {
        "request": meta.id,
        "endpoint": meta.endpoint,
        "version": meta.actual_version,
        "status": reply.status,
        "ms": round((time.perf_counter() - started) * 1000, 1),
        "bytes": size_of(reply.content) if isinstance(reply, Reply) else None,
    }
    logger.debug("answered", extra=fields)
