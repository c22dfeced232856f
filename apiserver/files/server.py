"""The file server as an ASGI app: it checks what callers may do, and answers.

Callers need credentials, and see only the files of their company. A link (`links.py`) opens one file without them.
`POST /` takes the forms of the ClearML SDK, in which the name of a field is the path of the file. For `PUT`, `GET`,
`HEAD` and `DELETE`, the URL names the file.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

import orjson
from starlette.types import Message, Receive, Scope, Send

from apiserver.files.addresses import file_name
from apiserver.files.deletions import FileDeletions
from apiserver.files.downloads import send_file
from apiserver.files.links import FileLinks
from apiserver.files.uploads import store_body, store_form
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.body import Body, Limits
from apiserver.rpc.call import Identity, Rules
from apiserver.rpc.disconnects import ClientDisconnected
from apiserver.rpc.envelope import Meta, failure
from apiserver.rpc.errors import ApiError, bad_request, unavailable
from apiserver.rpc.origins import SAFE_METHODS
from apiserver.rpc.reply import SAFE_HEADERS, must_close
from apiserver.stores.documents.base import DocumentStoreBusy
from apiserver.stores.files.disk import FileStore, FileStoreError, FileStoreFull, FileTooLarge
from apiserver.stores.files.names import InvalidName, NotUtf8

log = logging.getLogger(__name__)

#: Pages of any origin may read a file by its link.
_ANY_PAGE = (b"access-control-allow-origin", b"*")
#: An upload may be as slow as a connection may be at all (`connections/bounds.py`).
LIMITS = Limits(least_rate=4 * 2**10)


class FileServer:
    """Serves `store` to callers that `authenticator` knows, below the path `prefix`; `rules` say what roles allow.

    `deletions` know which files the server deletes by itself, and `links` which file a link opens.
    """

    def __init__(
        self,
        store: FileStore,
        authenticator: Authenticator,
        deletions: FileDeletions,
        links: FileLinks,
        *,
        prefix: str = "",
        rules: Rules | None = None,
    ) -> None:
        self._store = store
        self._rules = rules
        self._authenticator = authenticator
        self._deletions = deletions
        self._links = links
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        incoming = Body(receive, headers, LIMITS)
        # To file servers, the SDK does not name itself: only its HTTP library does.
        is_sdk = must_close(headers) or headers.get("user-agent", "").startswith("python-requests/")
        sender = _Sender(send, close=is_sdk)
        try:
            await self._answer(scope, headers, incoming, sender)
        except ClientDisconnected:
            pass
        except ApiError as error:
            await _send_error(sender, error, incoming)
        finally:
            log.debug("%s %s", scope["method"], scope["path"], extra={"status": sender.status})

    async def _answer(self, scope: Scope, headers: Mapping[str, str], incoming: Body, send: _Sender) -> None:
        try:
            name = file_name(_path(scope).removeprefix(self._prefix))
            if scope["method"] in SAFE_METHODS and (company := self._links.company(scope["query_string"], name)):
                send.headers.append(_ANY_PAGE)
                return await self._read(company, name, headers, incoming, send, body=scope["method"] == "GET")
            caller = await self._caller(scope["method"], headers, (scope.get("client") or ("",))[0])
            incoming.known()
            match scope["method"]:
                case "GET" | "HEAD" as method:
                    await self._read(caller.company, name, headers, incoming, send, body=method == "GET")
                case "POST":
                    await self._upload(caller, name, headers, incoming, send)
                case "PUT":
                    size = await store_body(self._store, caller.company, name, incoming)
                    await self._deletions.note_host(caller.company, headers.get("host", ""))
                    await _send_json(send, {"files": [{"path": name, "size": size}]})
                case "DELETE":
                    deleted = await self._store.delete(caller.company, name)
                    if not deleted and not await self._deletions.covers(caller.company, name):
                        raise _not_found(name)
                    await _send_json(send, {"deleted": [name]})
                case _:
                    raise ApiError(405, 0, "The file server answers GET, HEAD, POST, PUT and DELETE")
        except (InvalidName, FileStoreError, DocumentStoreBusy) as error:
            raise _as_api_error(error) from error

    async def _caller(self, method: str, headers: Mapping[str, str], client: str) -> Identity:
        reads = method in SAFE_METHODS
        caller = await self._authenticator.authenticate(
            headers, method=method, changes=not reads, forms=True, client=client
        )
        if self._rules is not None:
            self._rules.check(caller, "files.get_file" if reads else "files.change", reads=reads)
        return caller

    async def _read(
        self, company: str, name: str, headers: Mapping[str, str], incoming: Body, send: Send, *, body: bool
    ) -> None:
        file = await self._store.find(company, name)
        if file is None:
            raise _not_found(name)
        try:
            async with incoming.while_connected():
                await send_file(file, name, headers, send, body=body)
        finally:
            file.close()

    async def _upload(
        self, caller: Identity, name: str, headers: Mapping[str, str], incoming: Body, send: Send
    ) -> None:
        if name not in ("", "/"):
            raise bad_request("Forms are posted to the root of the file server")
        sizes = await store_form(self._store, caller.company, headers, incoming)
        await self._deletions.note_host(caller.company, headers.get("host", ""))
        await _send_json(send, {"files": [{"path": path, "size": size} for path, size in sizes.items()]})


def _path(scope: Scope) -> str:
    """The decoded path. Raises NotUtf8 where `scope["path"]` would have U+FFFD in place of bytes."""
    try:
        unquote_to_bytes(scope.get("raw_path") or b"").decode()
    except UnicodeDecodeError:
        raise NotUtf8 from None
    path: str = scope["path"]
    return path


class _Sender:
    """Passes messages on, and adds `headers` to the answer; `status` is 0 until the answer has begun."""

    def __init__(self, send: Send, *, close: bool) -> None:
        self._send = send
        self.headers = [(b"connection", b"close")] if close else []
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *self.headers]
        await self._send(message)


def _as_api_error(error: InvalidName | FileStoreError | DocumentStoreBusy) -> ApiError:
    match error:
        case InvalidName():
            return bad_request(f"Invalid file name: {error}")
        case FileTooLarge():
            return ApiError(413, 0, f"Too large: {error}")
        case FileStoreFull():
            return ApiError(507, 0, f"The file was not stored: {error}")
    log.error("%s", error)
    return unavailable(f"Files are not available: {error}")


def _not_found(name: str) -> ApiError:
    return ApiError(404, 0, f"There is no file {name[:200]}")


async def _send_json(send: Send, content: object) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _json_headers(body := orjson.dumps(content))})
    await send({"type": "http.response.body", "body": body})


async def _send_error(send: Send, error: ApiError, incoming: Body) -> None:
    """Answer, then drain the body. Otherwise the client would see a broken connection instead of the answer."""
    body = failure(Meta(), error)
    headers = _json_headers(body)
    if incoming.may_outlast_drain:
        headers.append((b"connection", b"close"))
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    await send({"type": "http.response.start", "status": error.code, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await incoming.drain()
    await send({"type": "http.response.body"})


def _json_headers(body: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *SAFE_HEADERS]
