"""A route of a vendor's API: caller first, then parameters, then the answer; what is refused, in its vendor's shape.

Bodies are read as the API reads its own, within limits, and are JSON whatever their Content-Type says: the example of
Baseten's document has curl say that it is a form.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

import orjson
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from apiserver.rpc.body import Body, ClientDisconnected, Limits
from apiserver.rpc.call import Identity
from apiserver.rpc.errors import ApiError
from apiserver.rpc.in_flight import InFlight
from apiserver.rpc.reply import compressed
from apiserver.services.backend import Backend
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.vendors.callers import Authorization, headers_with
from apiserver.vendors.refusals import Problem, Refused, of_api_error, of_invalid

logger = logging.getLogger("apiserver.vendors")


class Refusal(NamedTuple):
    """The answer to a refused request."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}


#: What a vendor answers a request that is refused.
ToRefusal = Callable[[Refused, Request], Refusal]

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_JSON = "application/json"
_LIMITS = Limits(body=64 * 2**10)
_in_flight = InFlight(_LIMITS.in_flight)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def vendor_route(
    authorization: Authorization, to_refusal: ToRefusal, *, id_header: str | None = None
) -> type[APIRoute]:
    """The class of a vendor's routes; with `id_header`, answers have the request's id there."""

    class VendorRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            answer, has_body = super().get_route_handler(), self.body_field is not None

            async def handle(request: Request) -> Response:
                request.state.id = str(uuid4()).upper()
                try:
                    backend: Backend = request.app.state.backend
                    request.state.caller = await backend.auth.authenticate(headers_with(request, authorization))
                    response = await answer(await _whole(request) if has_body else request)
                except ClientDisconnected:
                    return Response(status_code=400)
                except Exception as error:
                    refused = _refused(error, request)
                    refusal = to_refusal(refused, request)
                    response = Response(orjson.dumps(refusal.body), refusal.status, refusal.headers, _JSON)
                    if refused.retry_after is not None:
                        response.headers["retry-after"] = str(refused.retry_after)
                if id_header is not None:
                    response.headers[id_header] = request.state.id
                return response

            return handle

    return VendorRoute


def backend_of(request: Request) -> Backend:
    """What the server works with."""
    backend: Backend = request.app.state.backend
    return backend


def caller_of(request: Request) -> Identity:
    """Who calls: a route knows before anything else."""
    caller: Identity = request.state.caller
    return caller


def id_of(request: Request) -> str:
    """The request's id, a UUID in capitals."""
    id: str = request.state.id
    return id


TheBackend = Annotated[Backend, Depends(backend_of)]
TheCaller = Annotated[Identity, Depends(caller_of)]
TheId = Annotated[str, Depends(id_of)]


def refuse_other_paths(router: APIRouter, path: str) -> None:
    """Have the vendor answer for what is none of the paths and methods before, too."""

    @router.api_route(path, methods=list(_METHODS), include_in_schema=False)
    async def no_such_path() -> None:
        raise Refused(Problem.NO_PATH, "there is no such API, or not by this method")


async def json_answer(request: Request, answer: Any) -> Response:
    """200, compressed as the client takes it."""
    content, headers = await compressed(orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY), request.headers)
    return Response(content, headers=dict(headers))


class _WholeRequest(Request):
    """A request whose body has been read, and is JSON."""

    def __init__(self, request: Request, content: bytes) -> None:
        headers = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
        super().__init__({**request.scope, "headers": [*headers, (b"content-type", b"application/json")]})
        self._content = content

    async def body(self) -> bytes:
        return self._content


async def _whole(request: Request) -> Request:
    body = Body(request.receive, request.headers, _LIMITS, _in_flight)
    try:
        return _WholeRequest(request, await body.read())
    finally:
        body.release()


def _refused(error: Exception, request: Request) -> Refused:
    match error:
        case Refused():
            return error
        case RequestValidationError():
            return of_invalid(error)
        case ApiError():
            return of_api_error(error)
        case HTTPException():
            return Refused(Problem.INVALID, str(error.detail))
    known = next((STORE_ERRORS[kind] for kind in type(error).__mro__ if kind in STORE_ERRORS), None)
    if known is not None:
        return of_api_error(known(error))
    logger.error("%s failed", request.url.path, exc_info=error, extra={"request": request.state.id})
    return Refused(Problem.INTERNAL, f"Internal server error (request {request.state.id})")
