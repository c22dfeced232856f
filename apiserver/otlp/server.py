"""Answers `POST /v1/metrics`: points become scalars of the tasks that they name.

Whoever may call `events.add_batch` may send points, and they are stored in the same way. Points that cannot be stored
cost only themselves: the answer, a partial success, counts them.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from starlette.types import Receive, Scope, Send

from apiserver.common.times import epoch_millis, now_ms
from apiserver.events.lines import never
from apiserver.otlp import json_form, protobuf
from apiserver.otlp.points import Malformed, Point, TooMuch
from apiserver.otlp.series import Series
from apiserver.rpc.auth import note_caller
from apiserver.rpc.body import REST_OF_BODY, Body, Limits
from apiserver.rpc.disconnects import ClientDisconnected
from apiserver.rpc.errors import ApiError, bad_request, method_not_allowed
from apiserver.rpc.in_flight import InFlight
from apiserver.rpc.parse import memory_of
from apiserver.rpc.reply import Reply
from apiserver.rpc.statuses import error_for
from apiserver.services.access.roles import check
from apiserver.services.backend import Backend, Call, documents
from apiserver.services.events.write import store
from apiserver.services.store_errors import STORE_ERRORS

logger = logging.getLogger("apiserver.otlp")

PATH = "/v1/metrics"

#: Whoever may call this endpoint may send points.
_ENDPOINT = "events.add_batch"
#: Larger bodies are read in a thread. Reading this takes some milliseconds.
_LONG = 16 * 2**10
#: Most characters of the message of a partial success.
_LONGEST_MESSAGE = 1000


class _Form(NamedTuple):
    """A form of bodies and answers."""

    content_type: str
    points: Callable[[bytes], Iterator[Point]]
    taken: Callable[[int, str], bytes]
    refused: Callable[[str], bytes]
    memory: Callable[[bytes], int]
    """About how many bytes of memory reading a body takes."""


_JSON = _Form("application/json", json_form.points, json_form.taken, json_form.refused, memory_of)
_PROTOBUF = _Form("application/x-protobuf", protobuf.points, protobuf.taken, protobuf.refused, protobuf.memory_of)
_FORMS = {form.content_type: form for form in (_JSON, _PROTOBUF)}


class Otlp:
    """The ASGI app. `in_flight` counts the bodies of all requests."""

    def __init__(self, backend: Backend, limits: Limits, in_flight: InFlight) -> None:
        self._backend = backend
        self._limits = limits
        self._in_flight = in_flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = Body(receive, headers, self._limits, self._in_flight, scope.get("extensions", {}).get(REST_OF_BODY))
        started = time.perf_counter()
        form = _FORMS.get(headers.get("content-type", "").partition(";")[0].strip().lower())
        try:
            reply = await self._reply(scope, headers, body, form)
            await reply.send(headers, body, send)
            self._backend.counters.request(PATH, reply.status, time.perf_counter() - started)
        except ClientDisconnected:
            logger.debug("the client left before its request was whole")
        finally:
            body.release()

    async def _reply(self, scope: Scope, headers: Mapping[str, str], body: Body, form: _Form | None) -> Reply:
        id = f"{random.getrandbits(128):032x}"
        try:
            if scope["method"] != "POST":
                raise method_not_allowed(scope["method"], "POST")
            client = (scope.get("client") or ("",))[0]
            caller = await self._backend.auth.authenticate(headers, client=client)
            note_caller(scope, caller)
            check(caller, _ENDPOINT, reads=False)
            body.known()
            if form is None:
                raise ApiError(415, 0, f"The Content-Type must be {' or '.join(_FORMS)}")
            call = Call(id, _ENDPOINT, "999.0", "999.0", caller, self._backend, headers)
            call.body, call.work = await body.read(), body.work
            return _answered(form, 200, form.taken(*await _take(call, form)))
        except ClientDisconnected:
            raise
        except Exception as error:
            return _refusal(error, form or _JSON, id)


async def _take(call: Call, form: _Form) -> tuple[int, str]:
    """Store the points of the body; how many were rejected, and why."""
    series = await _read(call, form)
    company, received = call.identity.company, now_ms()
    found = await documents(call).find_kept("tasks", series.tasks, ("created",)) if series.tasks else []
    made = {task["id"]: epoch_millis(task.get("created")) or 0 for task in found}
    make = partial(series.ingest, made, company=company, received=received, worker=call.worker)
    events = make() if len(call.body) <= _LONG else await call.work(make)
    stored = await store(call, events)
    # An engine may refuse events that are still in the batch.
    rejected = series.points - series.points_in(events) + events.accepted - stored
    return min(rejected, series.points), str(series.rejects)[:_LONGEST_MESSAGE]


async def _read(call: Call, form: _Form) -> Series:
    read = partial(Series, form.points(call.body))
    try:
        if len(call.body) <= _LONG:
            return read(never)
        given_up = threading.Event()
        try:
            return await call.work(partial(read, given_up.is_set), form.memory(call.body))
        finally:
            given_up.set()
    except Malformed as error:
        raise bad_request(str(error)) from None
    except TooMuch as error:
        raise ApiError(413, 0, str(error)) from None


def _answered(form: _Form, status: int, content: bytes) -> Reply:
    # An answer without content has a type, too.
    headers = [] if content else [("content-type", form.content_type)]
    return Reply(status, content, headers, form.content_type)


def _refusal(error: Exception, form: _Form, id: str) -> Reply:
    refused = error_for(error, STORE_ERRORS)
    if refused is None:
        logger.error("%s failed", PATH, exc_info=error, extra={"request": id})
        refused = ApiError(500, 0, f"Internal server error (request {id})")
    reply = _answered(form, refused.code, form.refused(refused.message))
    if refused.allow is not None:
        reply.headers.append(("allow", refused.allow))
    if refused.code == 401:
        reply.headers.append(("www-authenticate", 'Basic realm="access key and secret"'))
    if refused.retry_after is not None:
        reply.headers.append(("retry-after", str(refused.retry_after)))
    return reply
