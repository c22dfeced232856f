"""Sends tables in the format that is asked for, while they are read; says which version of the data they are.

The first 128 KB are made before the answer begins. So an error at the beginning has its own answer, and a table that is
not larger has a Content-Length. A later error can only break the connection, and clients notice that.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import zstandard
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from apiserver import __version__
from apiserver.data import file_answers
from apiserver.data.calls import DataCall
from apiserver.data.exports import Write
from apiserver.data.versions import Version
from apiserver.events.model import Owner
from apiserver.rpc.encodings import accepted_encoding
from apiserver.rpc.reply import must_close
from apiserver.rpc.sending import pieces_of
from apiserver.tables.formats import TABLES, Format, chosen, missing_extra, to_files
from apiserver.tables.formats.writers import DEFAULT, Options, pieces
from apiserver.tables.table import Table

#: Bytes that are made before the answer begins, and of the pieces after it, at least.
_PIECE = 128 * 2**10
_GZIP = 16 + zlib.MAX_WBITS


class DataResponse(StreamingResponse):
    """An answer that is sent while it is made. Its bytes count until the client has taken them."""

    def __init__(self, call: DataCall, chunks: AsyncGenerator[bytes, None], status: int = 200) -> None:
        super().__init__(_small(chunks), status)
        self._call = call
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._chunks):
                await super().__call__(scope, receive, send)
        finally:
            self._call.reading.end()


async def answer(
    call: DataCall,
    name: str,
    make: Callable[[], Table],
    *,
    owners: list[Owner] | None = None,
    possible: tuple[Format, ...] = TABLES,
    options: Options = DEFAULT,
) -> Response:
    """The table that `make` returns, as a file with this name.

    `owners`: it has nothing but their events, so that its version is known without reading it.
    """
    format = chosen(call.request.path_params.get("ending"), call.headers.get("accept", ""), possible)
    headers = {"cache-control": "private, no-cache", "vary": "accept, accept-encoding, authorization, cookie"}
    version = Version(call, format, owners) if owners else None
    if version is not None and (tag := await version.known_to(call)) is not None:
        return _not_modified(tag, headers)
    if format.needs_extra:
        _require_extra(format)
    modified = None if version is None else await version.modified()

    def stamped() -> Table:
        table = make()
        time = {"time": modified} if modified else {}
        table.about = {**table.about, "server": f"events-apiserver {__version__}", **time}
        return table

    file_name = f"{name}.{format.ending}"
    if format is Format.PARQUET or call.request.method == "HEAD" or "range" in call.headers:
        return await file_answers.answer(call, file_name, _written(format, stamped, options), version)
    if version is not None:
        headers["etag"] = await version.now()
        if modified is not None:
            headers["last-modified"] = modified
    headers["content-type"] = format.media_type
    headers["content-disposition"] = f'inline; filename="{file_name}"'
    return await _streamed(call, format, pieces(format, stamped(), options), headers)


def _written(format: Format, make: Callable[[], Table], options: Options) -> Write:
    """A function that writes the table into a file."""

    async def write(path: Path) -> None:
        if format is Format.PARQUET:
            await to_files.write_parquet(path, make())
        else:
            await to_files.write_pieces(path, pieces(format, make(), options))

    return write


async def _streamed(
    call: DataCall, format: Format, content: AsyncGenerator[bytes, None], headers: dict[str, str]
) -> Response:
    """An answer with the content, sent while it is made unless it is short."""
    chunks = _gathered(content)
    async with call.while_connected():
        first = await anext(chunks, b"")
    if len(first) < _PIECE:  # that is all
        await chunks.aclose()
        return _whole(call, first, headers)
    encoding = accepted_encoding(call.headers.get("accept-encoding", ""))
    if encoding is not None and format is not Format.ARROW:
        headers["content-encoding"] = encoding
        chunks = _compressed(first, chunks, encoding)
    else:
        chunks = _behind(first, chunks)
    return _with_headers(call, DataResponse(call, chunks), headers)


def _whole(call: DataCall, content: bytes, headers: dict[str, str]) -> Response:
    """The answer with a table that is complete already."""
    if "etag" not in headers:
        headers["etag"] = f'W/"{blake2b(content, digest_size=16).hexdigest()}"'
        if headers["etag"] in [tag.strip() for tag in call.headers.get("if-none-match", "").split(",")]:
            return _not_modified(headers["etag"], headers)
    return _with_headers(call, Response(content), headers, len(content))


def _with_headers(call: DataCall, response: Response, headers: dict[str, str], size: int | None = None) -> Response:
    if size is not None:
        headers["content-length"] = str(size)
    if must_close(call.headers):
        headers["connection"] = "close"
    response.raw_headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    return response


def _not_modified(etag: str, headers: dict[str, str]) -> Response:
    response = Response(status_code=304)
    response.raw_headers = [(name.encode(), value.encode()) for name, value in {**headers, "etag": etag}.items()]
    return response


def _require_extra(format: Format) -> None:
    try:
        import arro3.io  # noqa: F401
    except ImportError:
        raise missing_extra(format) from None


async def _gathered(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The chunks, put together to at least _PIECE bytes each, but for the last."""
    async with aclosing(chunks):
        gathered: list[bytes] = []
        size = 0
        async for chunk in chunks:
            gathered.append(chunk)
            size += len(chunk)
            if size >= _PIECE:
                whole = b"".join(gathered)
                gathered.clear()
                size = 0
                del chunk
                yield whole
                del whole
        if gathered:
            yield b"".join(gathered)


async def _behind(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        yield first
        del first
        async for chunk in rest:
            yield chunk


async def _compressed(first: bytes, rest: AsyncGenerator[bytes, None], encoding: str) -> AsyncGenerator[bytes, None]:
    compressor: Any = (
        zstandard.ZstdCompressor(level=1).compressobj()
        if encoding == "zstd"
        else zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    )
    async for chunk in _behind(first, rest):
        made = await asyncio.to_thread(compressor.compress, chunk)
        del chunk
        if made:
            yield made
    yield compressor.flush()


async def _small(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The chunks in pieces, with a turn of the event loop for others between them."""
    async for chunk in chunks:
        for piece in pieces_of(chunk):
            # Once the client has left, sending never waits; without this, no other task would get its turn.
            await asyncio.sleep(0)
            yield bytes(piece)
