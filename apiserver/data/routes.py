"""Routes of data: each checks who calls and which parameters there are, waits for its turn, and answers errors as JSON.

An error is `{"error": {"code": 400, "message": "points: …", "parameter": "points", "request": "<id>"}}`.
"""

from __future__ import annotations

import inspect
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Message

from apiserver.data.calls import DataCall, bad_parameter
from apiserver.data.parts import DataParts
from apiserver.data.sending import DataResponse
from apiserver.rpc.auth import TOKEN_COOKIE, cookie, note_caller
from apiserver.rpc.body import Body, Limits
from apiserver.rpc.call import Identity
from apiserver.rpc.disconnects import ClientDisconnected
from apiserver.rpc.errors import ApiError
from apiserver.rpc.origins import SAFE_METHODS
from apiserver.rpc.reply import SAFE_HEADERS
from apiserver.rpc.statuses import error_for
from apiserver.services.access.roles import check
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.tables.formats import TABLES, Format

logger = logging.getLogger("apiserver.data")

#: The name by which roles know all addresses of data.
ENDPOINT = "data.get"
#: Parameters of every address.
_COMMON = frozenset({"token"})
_BODIES = Limits(body=64 * 2**10)
_LONGEST_QUERY = 64 * 2**10
_OF_ENDING = "the ending of the address says the format, such as .csv"

_SAID = {"code": {"type": "integer"}, "message": {"type": "string"}, "request": {"type": "string"}}
_WRONG = {"parameter": {"type": "string", "description": "Which parameter is wrong"}}
_ERROR: dict[str, Any] = {
    "description": "An error, such as 400 for a wrong parameter, 404 for an unknown task, 406 for an impossible format",
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"error": {"type": "object", "properties": {**_SAID, **_WRONG}}}}
        }
    },
}
_TOKEN = {
    "name": "token",
    "in": "query",
    "schema": {"type": "string"},
    "description": "The token of a link, in place of other credentials.",
}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class DataRoute(APIRoute):
    """An address of data. Parameters that it does not know are refused: a typing error must not answer everything."""

    checks_parameters: ClassVar[bool] = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if "GET" in (options.get("methods") or ()):
            options["openapi_extra"] = {"parameters": [_TOKEN]}
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handler:
        answer = super().get_route_handler()
        asking = (self.dependant, *self.dependant.dependencies)
        parameters = _COMMON | {parameter.alias for dependant in asking for parameter in dependant.query_params}
        has_body = self.body_field is not None

        async def handle(request: Request) -> Response:
            parts = DataParts.of(request.app)
            reading = parts.admission.reading()
            id = f"{random.getrandbits(128):032x}"
            handed_over = False
            try:
                _check_address(request)
                if self.checks_parameters:
                    _check_parameters(request, parameters)
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.scope["headers"]}
                client = request.client.host if request.client else ""
                token = request.query_params.get("token")
                caller, link = await caller_of(parts, headers, token, method=request.method, client=client)
                note_caller(request.scope, caller)
                check(caller, ENDPOINT, reads=request.method in SAFE_METHODS)
                call = DataCall(parts, caller, request, headers, id, reading, link)
                request.state.call = call
                asked = await _with_body(request, headers) if has_body else request
                response = await reading.run(lambda: answer(asked), call.reader, call.while_connected)
                handed_over = isinstance(response, DataResponse)
            except ClientDisconnected:
                return Response(status_code=400)
            except Exception as error:
                return _refusal(error, request, id)
            finally:
                if not handed_over:
                    reading.end()
            response.raw_headers += SAFE_HEADERS if "cache-control" not in response.headers else SAFE_HEADERS[:1]
            return response

        return handle


def router() -> APIRouter:
    """A router for addresses of data."""
    return APIRouter(prefix="/data", route_class=DataRoute, tags=["data"], responses={"default": _ERROR})


def table(router: APIRouter, path: str, formats: tuple[Format, ...] = TABLES) -> Callable[[Any], Any]:
    """Answer an address with a table: in the format that its ending names, or by the request's Accept header.

    The ending is in the request's path parameters as `ending`.
    """
    endings = ", ".join(f"`.{format.ending}`" for format in formats)
    content: dict[str, Any] = {format.media_type: {} for format in formats}
    responses: dict[int | str, dict[str, Any]] = {
        200: {"content": content, "description": "The table"},
        304: {"description": "It is as it was when its `ETag` was answered, which `If-None-Match` names"},
    }

    def add(function: Any) -> Any:
        said = f"{inspect.getdoc(function)}\n\nAn ending of the address names the format: {endings}."
        options: dict[str, Any] = {"response_class": Response, "responses": responses, "description": said}
        name = f"data.{path.rpartition('/')[2]}.{function.__name__}"
        hidden = {**options, "methods": ["GET", "HEAD"], "include_in_schema": False}
        router.add_api_route(f"{path}.{{ending}}", function, **hidden)
        router.add_api_route(path, function, operation_id=name, methods=["GET"], **options)
        router.add_api_route(path, function, **{**hidden, "methods": ["HEAD"]})
        return function

    return add


async def _with_body(request: Request, headers: dict[str, str]) -> Request:
    """The request with its body read, as JSON whatever its Content-Type. Call it for authenticated callers only."""
    body = Body(request.receive, headers, _BODIES)
    body.known()
    content = await body.read()

    async def receive() -> Message:
        return {"type": "http.request", "body": content}

    kept = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
    return Request({**request.scope, "headers": [*kept, (b"content-type", b"application/json")]}, receive)


def _check_address(request: Request) -> None:
    if "\n" in request.scope["path"]:  # the end of a path's pattern matches before a line feed
        raise ApiError(404, 0, "there is a line feed in the path")
    if len(request.scope.get("query_string", b"")) > _LONGEST_QUERY:
        raise ApiError(414, 0, f"The query is longer than {_LONGEST_QUERY} bytes")


def _check_parameters(request: Request, known: frozenset[str]) -> None:
    for name in request.query_params:
        if name not in known:
            said = f"there is no such parameter here: use {', '.join(sorted(known))}"
            raise bad_parameter(name[:100], _OF_ENDING if name == "format" else said)


async def caller_of(
    parts: DataParts, headers: Mapping[str, str], token: str | None, *, method: str = "GET", client: str = ""
) -> tuple[Identity, str | None]:
    """Who calls, and what the link covers whose `token` they use, if they use one. Raises ApiError or Refusal."""
    auth = parts.backend.auth
    if token is not None:
        maker, covers = parts.links.read(token)
        return await auth.today(maker), covers
    changes = method not in SAFE_METHODS
    return await auth.authenticate(headers, method=method, changes=changes, client=client), None


def _refusal(error: Exception, request: Request, id: str) -> Response:
    match error:
        case RequestValidationError():
            answer: ApiError | None = _of_invalid(error)
        case HTTPException():
            answer = ApiError(error.status_code, 0, str(error.detail))
        case _:
            answer = error_for(error, STORE_ERRORS)
    if answer is None:
        logger.error("%s failed", request.url.path, exc_info=error, extra={"request": id})
        answer = ApiError(500, 0, f"Internal server error (request {id})")
    parameter = answer.data.get("parameter") or answer.data.get("field")
    said = {"code": answer.code, "message": answer.reason, "request": id}
    if parameter:
        said["parameter"] = parameter
    response = Response(orjson.dumps({"error": said}), answer.code, media_type="application/json")
    if answer.code == 401 and not _is_by_script(request):
        response.headers["www-authenticate"] = 'Basic realm="access key and secret"'
    if answer.retry_after is not None:
        response.headers["retry-after"] = str(answer.retry_after)
    if answer.allow is not None:
        response.headers["allow"] = answer.allow
    response.raw_headers += SAFE_HEADERS
    return response


def _is_by_script(request: Request) -> bool:
    """Whether the script of a page asks. If it is told how to log in, the browser asks for a password above the page.

    Browsers say who asks only over TLS and on one machine. Elsewhere, scripts send the page's cookie and want no page.
    """
    kind = request.headers.get("sec-fetch-dest")
    if kind is not None:
        return kind == "empty"
    has_cookie = cookie(request.headers.get("cookie", ""), TOKEN_COOKIE) is not None
    return has_cookie and "text/html" not in request.headers.get("accept", "")


def _of_invalid(error: RequestValidationError) -> ApiError:
    """400 for the first parameter that is wrong."""
    first = error.errors()[0]
    name = next((step for step in first["loc"][1:] if isinstance(step, str)), str(first["loc"][0]))
    return bad_parameter(name, _plain(first["type"], first.get("ctx", {})) or str(first["msg"]))


def _plain(type: str, about: Mapping[str, Any]) -> str | None:
    """What pydantic's error of this type says, in the words of this server; None for types that parameters have not."""
    match type:
        case "missing":
            return "it is required"
        case "json_invalid":
            return "it is not JSON"
        case "model_attributes_type":
            return "it must be a JSON object"
        case "extra_forbidden":
            return "there is no such field here"
        case "string_type":
            return "it must be a text"
        case "int_parsing" | "int_type" | "int_from_float" | "int_parsing_size":
            return "it must be a whole number of at most 64 bits"
        case "bool_parsing" | "bool_type":
            return "it must be 1 or 0"
        case "greater_than_equal":
            return f"it must be at least {about['ge']}"
        case "less_than_equal":
            return f"it must be at most {about['le']}"
        case "enum" | "literal_error":
            return f"it must be {about['expected']}"
        case "string_too_long":
            return f"it must have at most {about['max_length']} characters"
        case "string_too_short":
            return f"it must have at least {about['min_length']} characters"
        case "too_long":
            return f"it may be given {about['max_length']} times at most"
        case "string_pattern_mismatch":
            return f"it must have the form {about['pattern']}"
    return None
