"""A route of a vendor's API: caller first, then parameters, then the answer; what is refused, in its vendor's shape."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

import anyio.to_thread
import orjson
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from apiserver.rpc.call import Identity
from apiserver.rpc.disconnects import ClientDisconnected
from apiserver.rpc.errors import ApiError, known_error
from apiserver.rpc.reply import SAFE_HEADERS, compressed
from apiserver.services.access.roles import check
from apiserver.services.backend import Backend
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.vendors.bodies import whole
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
                    if "\n" in request.scope["path"]:  # patterns see the end of the path in it
                        raise Refused(Problem.NO_PATH, "there is a line feed in the path")
                    backend: Backend = request.app.state.backend
                    headers = headers_with(request, authorization)
                    client = request.client.host if request.client else ""
                    request.state.caller = await backend.auth.authenticate(headers, changes=False, client=client)
                    check(request.state.caller, "vendors.get_metrics", reads=True)
                    response = await answer(await whole(request) if has_body else request)
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
                response.raw_headers += SAFE_HEADERS
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


async def json_answer(request: Request, make: Callable[[], Any]) -> Response:
    """200 and what is made, in a thread as it may be much, compressed as the client takes it."""
    content = await anyio.to_thread.run_sync(lambda: orjson.dumps(make(), option=orjson.OPT_SERIALIZE_NUMPY))
    content, headers = await compressed(content, request.headers)
    return Response(content, headers=dict(headers))


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
    known = known_error(error, STORE_ERRORS)
    if known is not None:
        return of_api_error(known)
    logger.error("%s failed", request.url.path, exc_info=error, extra={"request": request.state.id})
    return Refused(Problem.INTERNAL, f"Internal server error (request {request.state.id})")
