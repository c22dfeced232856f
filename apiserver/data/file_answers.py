"""Answers with files that were made for a query, or with parts of them."""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import parse_qsl

from fastapi import Response
from starlette.types import Receive, Scope, Send

from apiserver.data.calls import DataCall
from apiserver.data.exports import Write
from apiserver.data.versions import Version
from apiserver.fileserver.downloads import send_file
from apiserver.stores.files.disk import StoredFile


async def answer(call: DataCall, name: str, write: Write, version: Version | None) -> Response:
    """The file that `write` makes, under this name. `version`: the table's versions, if they can be told apart."""
    is_part = "range" in call.headers
    file = await call.parts.exports.file(_key(call, name), write, version, call.while_connected, is_part=is_part)
    return _FileResponse(file, name, call)


def _key(call: DataCall, name: str) -> bytes:
    """What a file is for: the company (or a project), what the address means, its parameters without a link's token."""
    query = parse_qsl(call.request.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    said = [call.caller.company, call.caller.grant.project, name, *(pair for pair in query if pair[0] != "token")]
    return blake2b(repr(said).encode(), digest_size=16).digest()


class _FileResponse(Response):
    """Answers with a file, or a part of it. The file is closed at the end."""

    def __init__(self, file: StoredFile, name: str, call: DataCall) -> None:
        super().__init__()
        self._file = file
        self._name = name
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send_file(self._file, self._name, self._call.headers, send, body=scope["method"] != "HEAD")
        finally:
            self._file.close()
