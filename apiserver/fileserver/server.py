"""The file server as an ASGI app: it checks what callers may do, and answers.

Callers need credentials, and see only the files of their company. A link (`links.py`) opens one file without them.
`POST /` takes the forms of the ClearML SDK, in which the name of a field is the path of the file. For `PUT`, `GET`,
`HEAD` and `DELETE`, the URL names the file.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs, unquote_to_bytes

import orjson
from starlette.types import Message, Receive, Scope, Send

from apiserver.common.errors import Refusal, not_granted, unavailable
from apiserver.fileserver.addresses import file_name
from apiserver.fileserver.deletions import FileDeletions
from apiserver.fileserver.downloads import send_file
from apiserver.fileserver.links import FileLinks
from apiserver.fileserver.room import Room, Taken
from apiserver.fileserver.uploads import store_body, store_form
from apiserver.rpc.auth import Authenticator, note_caller
from apiserver.rpc.body import Body, Limits
from apiserver.rpc.call import Identity, Rules
from apiserver.rpc.disconnects import ClientDisconnected
from apiserver.rpc.envelope import Meta
from apiserver.rpc.errors import ApiError, bad_request, method_not_allowed
from apiserver.rpc.origins import SAFE_METHODS
from apiserver.rpc.reply import Reply, must_close, refusal
from apiserver.rpc.statuses import answer_to, known_error
from apiserver.stores.documents.base import DocumentStoreBusy
from apiserver.stores.files.disk import FileStore, FileStoreError, FileStoreFull, FileTooLarge
from apiserver.stores.files.names import InvalidName, NotUtf8

log = logging.getLogger(__name__)

_ALLOW = "GET, HEAD, POST, PUT, DELETE"
#: Pages of any origin may read a file by its link.
_ANY_PAGE = (b"access-control-allow-origin", b"*")
#: An upload may be as slow as a connection may be at all (`http/bounds.py`).
LIMITS = Limits(least_rate=4 * 2**10)


#: Whether a caller may read, write and delete the file of a name.
MayUse = Callable[[Identity, str], Awaitable[bool]]


class FileServer:
    """Serves `store` to callers that `authenticator` knows, below the path `prefix`; `rules` say what roles allow.

    `may_use` says whether a caller may use a file, `deletions` know which files the server deletes by itself, and
    `links` which file a link opens. `room` says for which files there is room, and `limits` how
    slow uploads may be.
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
        may_use: MayUse | None = None,
        room: Room | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self._store = store
        self._rules = rules
        self._authenticator = authenticator
        self._may_use = may_use
        self._room = room
        self._deletions = deletions
        self._links = links
        self._prefix = prefix
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        incoming = Body(receive, headers, self._limits)
        # To file servers, the SDK does not name itself: only its HTTP library does.
        is_sdk = must_close(headers) or headers.get("user-agent", "").startswith("python-requests/")
        sender = _Sender(send, close=is_sdk)
        try:
            reply = await self._answer(scope, headers, incoming, sender)
            if reply is not None:
                await reply.send(headers, incoming, sender)
        except ClientDisconnected:
            pass
        finally:
            log.debug("%s %s", scope["method"], scope["path"], extra={"status": sender.status})

    async def _answer(self, scope: Scope, headers: Mapping[str, str], incoming: Body, send: _Sender) -> Reply | None:
        """The reply; None if a file was sent."""
        try:
            name = file_name(_path(scope).removeprefix(self._prefix))
            if scope["method"] in SAFE_METHODS and (company := self._links.company(scope["query_string"], name)):
                send.headers.append(_ANY_PAGE)
                await self._read(company, name, headers, incoming, send, body=scope["method"] == "GET")
                return None
            caller = await self._caller(scope, headers)
            incoming.known()
            match scope["method"]:
                case "GET" | "HEAD" as method:
                    await self._check(caller, name)
                    await self._read(caller.company, name, headers, incoming, send, body=method == "GET")
                    return None
                case "POST" | "PUT" as method:
                    sizes = await self._upload(caller, method, name, headers, incoming)
                    await self._deletions.note_host(caller.company, headers.get("host", ""))
                    return _json({"files": [{"path": path, "size": size} for path, size in sizes.items()]})
                case "DELETE":
                    await self._check(caller, name)
                    if not _is_forced(scope) and await self._is_kept(caller.company, name, scope, headers):
                        return _json({"deleted": [], "kept": [name]})
                    await self._delete(caller, name)
                    return _json({"deleted": [name]})
            raise method_not_allowed(scope["method"], _ALLOW)
        except (ApiError, Refusal, InvalidName, FileStoreError, DocumentStoreBusy) as error:
            return refusal(Meta(), _as_api_error(error))

    async def _caller(self, scope: Scope, headers: Mapping[str, str]) -> Identity:
        method, client = scope["method"], (scope.get("client") or ("",))[0]
        reads = method in SAFE_METHODS
        caller = await self._authenticator.authenticate(
            headers, method=method, changes=not reads, forms=True, client=client
        )
        note_caller(scope, caller)
        if self._rules is not None:
            self._rules.check(caller, "files.get_file" if reads else "files.change", reads=reads)
        return caller

    async def _check(self, caller: Identity, name: str) -> None:
        if self._may_use is not None and not await self._may_use(caller, name):
            raise not_granted("the access key is limited to a project, and the file belongs to no task of it")

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

    async def _is_kept(self, company: str, name: str, scope: Scope, headers: Mapping[str, str]) -> bool:
        """Whether there is a file that a model or a task still names.

        The SDK deletes a model first and then its file, even if another model has the same one.
        """
        host = headers.get("host", "")
        url = f"http://{host}{(scope.get('raw_path') or b'').decode('latin-1')}"
        if not await self._deletions.is_named(company, url, host):
            return False
        file = await self._store.find(company, name)
        if file is not None:
            file.close()
        return file is not None

    async def _delete(self, caller: Identity, name: str) -> None:
        deleted = await self._store.delete(caller.company, name)
        if not deleted and not await self._deletions.covers(caller.company, name):
            raise _not_found(name)
        if deleted and self._room is not None:
            await self._room.deleted_file(caller, name, deleted)

    async def _upload(
        self, caller: Identity, method: str, name: str, headers: Mapping[str, str], incoming: Body
    ) -> dict[str, int]:
        """Store what is uploaded; returns the sizes of the files by name."""
        size = headers.get("content-length", "")

        async def admit(name: str, before: int) -> Taken:
            await self._check(caller, name)
            if self._room is None:
                return Taken()
            return await self._room.admit_file(caller, name, max(int(size) - before, 0) if size.isdecimal() else 0)

        if method == "PUT":
            return {name: await store_body(self._store, caller.company, name, incoming, admit)}
        if name in ("", "/"):
            return await store_form(self._store, caller.company, headers, incoming, admit)
        raise bad_request("Forms are posted to the root of the file server")


def _path(scope: Scope) -> str:
    """The decoded path. Raises NotUtf8 where `scope["path"]` would have U+FFFD in place of bytes."""
    try:
        unquote_to_bytes(scope.get("raw_path") or b"").decode()
    except UnicodeDecodeError:
        raise NotUtf8 from None
    path: str = scope["path"]
    return path


def _is_forced(scope: Scope) -> bool:
    """Whether a file is to be deleted though something names it: `?force=1`."""
    return parse_qs(scope["query_string"]).get(b"force", [b""])[-1] in (b"1", b"true")


class _Sender:
    """Passes messages on, and adds `headers` to the answer; `status` is 0 until the answer has begun."""

    def __init__(self, send: Send, *, close: bool) -> None:
        self._send = send
        self.headers = [(b"connection", b"close")] if close else []
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = list(dict.fromkeys([*message["headers"], *self.headers]))
        await self._send(message)


def _as_api_error(error: ApiError | Refusal | InvalidName | FileStoreError | DocumentStoreBusy) -> ApiError:
    if (known := known_error(error, {})) is not None:
        return known
    match error:
        case InvalidName():
            return bad_request(f"Invalid file name: {error}")
        case FileTooLarge():
            return ApiError(413, 0, f"Too large: {error}")
        case FileStoreFull():
            return ApiError(507, 0, f"The file was not stored: {error}")
    log.error("%s", error)
    return answer_to(unavailable(f"Files are not available: {error}"))


def _json(content: object) -> Reply:
    return Reply(200, orjson.dumps(content))


def _not_found(name: str) -> ApiError:
    return ApiError(404, 0, f"There is no file {name[:200]}")
