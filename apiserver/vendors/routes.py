"""Routes of vendors' APIs: they check the caller, then the parameters, then answer. Errors have the vendor's form."""

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
from apiserver.vendors.bodies import with_body
from apiserver.vendors.callers import Authorization, headers_with
from apiserver.vendors.refusals import Problem, Refused, of_api_error, of_invalid

logger = logging.getLogger("apiserver.vendors")


class ErrorAnswer(NamedTuple):
    """The answer to a refused request, in a vendor's form."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}


#: Makes a vendor's answer to a refused request.
ToErrorAnswer = Callable[[Refused, Request], ErrorAnswer]

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_JSON = "application/json"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def vendor_route(
    authorization: Authorization, to_error_answer: ToErrorAnswer, *, id_header: str | None = None
) -> type[APIRoute]:
    """The class of a vendor's routes. With `id_header`, answers have the request's id in that header."""

    class VendorRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            answer, has_body = super().get_route_handler(), self.body_field is not None

            async def handle(request: Request) -> Response:
                request.state.id = str(uuid4()).upper()
                try:
                    if "\n" in request.scope["path"]:  # the end of a path's pattern matches before a line feed
                        raise Refused(Problem.NO_PATH, "there is a line feed in the path")
                    backend: Backend = request.app.state.backend
                    headers = headers_with(request, authorization)
                    client = request.client.host if request.client else ""
                    request.state.caller = await backend.auth.authenticate(headers, changes=False, client=client)
                    check(request.state.caller, "vendors.get_metrics", reads=True)
                    response = await answer(await with_body(request) if has_body else request)
                except ClientDisconnected:
                    return Response(status_code=400)
                except Exception as error:
                    refused = _refused(error, request)
                    status, body, more_headers = to_error_answer(refused, request)
                    response = Response(orjson.dumps(body), status, more_headers, _JSON)
                    if refused.retry_after is not None:
                        response.headers["retry-after"] = str(refused.retry_after)
                if id_header is not None:
                    response.headers[id_header] = request.state.id
                response.raw_headers += SAFE_HEADERS
                return response

            return handle

    return VendorRoute


def backend_of(request: Request) -> Backend:
    """The server's backend."""
    backend: Backend = request.app.state.backend
    return backend


def caller_of(request: Request) -> Identity:
    """The caller, whom the route has authenticated before."""
    caller: Identity = request.state.caller
    return caller


def id_of(request: Request) -> str:
    """The request's id: a UUID in upper case."""
    id: str = request.state.id
    return id


TheBackend = Annotated[Backend, Depends(backend_of)]
TheCaller = Annotated[Identity, Depends(caller_of)]
TheId = Annotated[str, Depends(id_of)]


def refuse_other_paths(router: APIRouter, path: str) -> None:
    """Refuse all other paths and methods below this path in the vendor's form. Call it after adding the routes."""

    @router.api_route(path, methods=list(_METHODS), include_in_schema=False)
    async def no_such_path() -> None:
        raise Refused(Problem.NO_PATH, "no API has this path and method")


async def json_answer(request: Request, make: Callable[[], Any]) -> Response:
    """200 with what `make` returns as JSON. It is made in a thread, because it may be large, and compressed."""
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
