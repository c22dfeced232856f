"""Sends a stored file: all of it, one range of it, or only that it was not modified."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import formatdate

from starlette.types import Send

from apiserver.fileserver.content import FILE_HEADERS, content_disposition, content_type
from apiserver.fileserver.ranges import NotSatisfiable, Range, requested_range
from apiserver.stores.files.disk import StoredFile

RawHeaders = list[tuple[bytes, bytes]]


async def send_file(file: StoredFile, name: str, headers: Mapping[str, str], send: Send, *, body: bool) -> None:
    """Answer a GET (with `body`) or HEAD for the file: 200, 206, 304 or 416."""
    etag = f'"{file.modified_ns:x}-{file.size:x}-{file.inode:x}"'
    modified = formatdate(file.modified_ns / 1e9, usegmt=True)
    common = [
        (b"etag", etag.encode()),
        (b"last-modified", modified.encode()),
        (b"accept-ranges", b"bytes"),
        (b"cache-control", b"private, no-cache"),
        *FILE_HEADERS,
    ]
    if _not_modified(headers, etag, modified):
        return await _send_empty(send, 304, common)
    try:
        asked = requested_range(headers.get("range"), file.size) if _range_holds(headers, etag, modified) else None
    except NotSatisfiable:
        return await _send_empty(send, 416, [*common, (b"content-range", f"bytes */{file.size}".encode())])
    status, part = (200, Range(0, file.size)) if asked is None else (206, asked)
    if asked is not None:
        common.append((b"content-range", f"bytes {part.start}-{part.stop - 1}/{file.size}".encode()))
    kind = content_type(name)
    common += [
        (b"content-type", kind.encode()),
        (b"content-disposition", content_disposition(name, kind).encode()),
        (b"content-length", str(part.stop - part.start).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": common})
    if body:
        await _send_part(file, part, send)
    else:
        await send({"type": "http.response.body"})


async def _send_part(file: StoredFile, part: Range, send: Send) -> None:
    position = part.start
    while position < part.stop:
        data = await file.read(position, part.stop - position)
        if not data:
            raise OSError("the stored file became shorter while it was sent")
        position += len(data)
        await send({"type": "http.response.body", "body": data, "more_body": position < part.stop})
    if part.start == part.stop:
        await send({"type": "http.response.body"})


async def _send_empty(send: Send, status: int, headers: RawHeaders) -> None:
    if status != 304:
        headers = [*headers, (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body"})


def _not_modified(headers: Mapping[str, str], etag: str, modified: str) -> bool:
    if "if-none-match" in headers:
        known = [tag.strip().removeprefix("W/") for tag in headers["if-none-match"].split(",")]
        return etag in known or "*" in known
    return headers.get("if-modified-since") == modified


def _range_holds(headers: Mapping[str, str], etag: str, modified: str) -> bool:
    """Whether the file is still the one that If-Range names, so that a range may be answered."""
    return headers.get("if-range", etag) in (etag, modified)
