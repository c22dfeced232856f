"""Routes of vendors' APIs: they check the caller, then the parameters, then answer. Errors have the vendor's form."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

import anyio.to_thread
import orjson
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Message

from apiserver.rpc.auth import note_caller
from apiserver.rpc.body import Body, Limits
from apiserver.rpc.call import Identity
from apiserver.rpc.disconnects import ClientDisconnected
from apiserver.rpc.reply import SAFE_HEADERS, compressed
from apiserver.rpc.statuses import known_error
from apiserver.services.access.roles import check
from apiserver.services.backend import Backend
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.vendors.refusals import Problem, Refused, of_api_error, of_invalid

logger = logging.getLogger("apiserver.vendors")


@dataclass(slots=True, frozen=True)
class VendorCall:
    """An authenticated request of a vendor's API."""

    backend: Backend
    caller: Identity
    request: Request
    id: str
    """The id by which answers and logs name the request: a UUID in upper case."""

    async def answer(self, make: Callable[[], Any]) -> Response:
        """200 with what `make` returns as JSON. It is made in a thread, because it may be large, and compressed."""
        content = await anyio.to_thread.run_sync(lambda: orjson.dumps(make(), option=orjson.OPT_SERIALIZE_NUMPY))
        content, headers = await compressed(content, self.request.headers)
        return Response(content, headers=dict(headers))


class ErrorAnswer(NamedTuple):
    """The answer to a refused request, in a vendor's form."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}


#: Turns the vendor's credentials of a request into an Authorization header of this server; None if it has none.
Authorization = Callable[[Request], str | None]
#: Makes a vendor's answer to a refused request with this id.
ToErrorAnswer = Callable[[Refused, Request, str], ErrorAnswer]

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_JSON = "application/json"
_BODIES = Limits(body=64 * 2**10)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def vendor_route(
    authorization: Authorization, to_error_answer: ToErrorAnswer, *, id_header: str | None = None
) -> type[APIRoute]:
    """The class of a vendor's routes. With `id_header`, answers have the request's id in that header."""

    class VendorRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            answer, has_body = super().get_route_handler(), self.body_field is not None

            async def handle(request: Request) -> Response:
                id = str(uuid4()).upper()
                try:
                    if "\n" in request.scope["path"]:  # the end of a path's pattern matches before a line feed
                        raise Refused(Problem.NO_PATH, "there is a line feed in the path")
                    backend: Backend = request.app.state.backend
                    client = request.client.host if request.client else ""
                    headers = _headers(request, authorization(request))
                    caller = await backend.auth.authenticate(headers, changes=False, client=client)
                    note_caller(request.scope, caller)
                    check(caller, "vendors.get_metrics", reads=True)
                    request.state.call = VendorCall(backend, caller, request, id)
                    response = await answer(await _with_body(request) if has_body else request)
                except ClientDisconnected:
                    return Response(status_code=400)
                except Exception as error:
                    refused = _refused(error, request, id)
                    status, body, more_headers = to_error_answer(refused, request, id)
                    response = Response(orjson.dumps(body), status, more_headers, _JSON)
                    if refused.retry_after is not None:
                        response.headers["retry-after"] = str(refused.retry_after)
                if id_header is not None:
                    response.headers[id_header] = id
                response.raw_headers += SAFE_HEADERS
                return response

            return handle

    return VendorRoute


def _call_of(request: Request) -> VendorCall:
    """The call, whose caller the route has authenticated before."""
    call: VendorCall = request.state.call
    return call


#: A parameter of handlers: the call that they answer.
TheCall = Annotated[VendorCall, Depends(_call_of)]


def refuse_other_paths(router: APIRouter, path: str) -> None:
    """Refuse all other paths and methods below this path in the vendor's form. Call it after adding the routes."""

    @router.api_route(path, methods=list(_METHODS), include_in_schema=False)
    async def no_such_path() -> None:
        raise Refused(Problem.NO_PATH, "no API has this path and method")


def authorization_for(credentials: str) -> str:
    """The Authorization header for `key:secret` or for a token; "" for empty credentials."""
    credentials = credentials.strip()
    if not credentials:
        return ""
    if ":" in credentials:
        return f"Basic {b64encode(credentials.encode()).decode()}"
    return f"Bearer {credentials}"


def _headers(request: Request, authorization: str | None) -> Mapping[str, str]:
    """The request's headers, with this Authorization header unless it is None.

    They are a dict, because each lookup in Starlette's `Headers` searches all of them.
    """
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.scope["headers"]}
    return headers if authorization is None else {**headers, "authorization": authorization}


async def _with_body(request: Request) -> Request:
    """The request with its body read, as JSON whatever its Content-Type. Raises what `Body.read` raises.

    The curl example in Baseten's document sends the type of a form. Call it for authenticated callers only.
    """
    body = Body(request.receive, request.headers, _BODIES)
    body.known()
    content = await body.read()
    headers = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]

    async def receive() -> Message:
        return {"type": "http.request", "body": content}

    return Request({**request.scope, "headers": [*headers, (b"content-type", _JSON.encode())]}, receive)


def _refused(error: Exception, request: Request, id: str) -> Refused:
    match error:
        case Refused():
            return error
        case RequestValidationError():
            return of_invalid(error)
        case HTTPException():
            return Refused(Problem.INVALID, str(error.detail))
    known = known_error(error, STORE_ERRORS)
    if known is not None:
        return of_api_error(known)
    logger.error("%s failed", request.url.path, exc_info=error, extra={"request": id})
    return Refused(Problem.INTERNAL, f"Internal server error (request {id})")
