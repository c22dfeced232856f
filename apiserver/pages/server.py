"""Answers requests for pages: with what was built, or with where to find pages instead."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import anyio.to_thread
from starlette.types import Receive, Scope, Send

from apiserver.common import resources
from apiserver.pages import headers
from apiserver.pages.addresses import ASSETS, FRAME, PAPER, is_file, is_page
from apiserver.pages.built import Built, Content, NotBuilt, read, version_of
from apiserver.rpc.encodings import accepted_encoding
from apiserver.rpc.sending import send_body

#: The address of the document that all pages are, among what was built.
INDEX = "/index.html"
_FOR_EVER = b"public, max-age=31536000, immutable"
_ASK_AGAIN = b"no-cache"
_HTML = "text/html; charset=utf-8"
#: The characters that a path may have as they are, beside letters and digits.
_PLAIN = "/*:@!$&'()+,;=~"
_POLICIES = {
    INDEX: headers.PAGE_POLICY,
    f"/{FRAME}": headers.FRAME_POLICY,
    f"/{PAPER}": headers.PAPER_POLICY,
}
_CONNECTIONS = {f"/{FRAME}": headers.FRAME_CONNECTIONS, f"/{PAPER}": headers.PAPER_CONNECTIONS}

_NOT_BUILT = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>No pages</title>
<h1>The server runs. Its pages were not built.</h1>
<p>In the folder of the sources, <code>make viewer</code> builds them; then reload this page. It takes Node.js from PyPI
if this machine has none. A wheel that is made afterwards has the pages inside.</p>
<p>All data is also at addresses such as <a href="/data/projects.csv">/data/projects.csv</a>, and the setting
<code>web_url</code> sends browsers to another web UI.</p>
"""


def built_folder() -> Path | None:
    """The folder with the built pages; None if they were not built."""
    try:
        return resources.path("viewer/dist")
    except FileNotFoundError:
        return None


def is_built() -> bool:
    """Whether the pages were built."""
    folder = built_folder()
    return folder is not None and (folder / "index.html").exists()


class Viewer:
    """Serves the built pages. An address that no page has is answered 404, with the page that says so."""

    def __init__(self) -> None:
        self._built: Built | None = None

    def serves(self, scope: Scope) -> bool:
        """Whether the request is for a page, or for a file of the pages."""
        return is_page(scope) or is_file(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        path: str = scope["path"]
        address = path if is_file(scope) else INDEX
        try:
            content = await self._content(address, accepted_encoding(asked.get("accept-encoding", "")))
        except NotBuilt:
            return await _answer(scope, send, 404, _NOT_BUILT, _bare(_HTML))
        if content is None:
            return await _answer(scope, send, 404, b"There is no such file.\n", _bare("text/plain"))
        said = [*_headers(address), (b"etag", content.tag.encode())]
        known = self.serves(scope)
        if known and content.tag in asked.get("if-none-match", ""):
            return await _answer(scope, send, 304, b"", said)
        said.append((b"content-type", content.kind.encode()))
        if content.encoding is not None:
            said.append((b"content-encoding", content.encoding.encode()))
        await _answer(scope, send, 200 if known else 404, content.body, said)

    async def _content(self, address: str, encoding: str | None) -> Content | None:
        """A file of the newest build. Reads in a thread what is not in memory."""
        folder = built_folder()
        if folder is None:
            raise NotBuilt
        built = self._built
        if built is None or version_of(folder) != built.version:
            built = self._built = await anyio.to_thread.run_sync(read, folder)
        if built.has(address, encoding):
            return built.content(address, encoding)
        return await anyio.to_thread.run_sync(built.content, address, encoding)


class Elsewhere:
    """Sends browsers that ask for a page to another web UI, at `web_url`: to the same path there."""

    def __init__(self, web_url: str) -> None:
        self._web_url = web_url.rstrip("/")

    def serves(self, scope: Scope) -> bool:
        """Whether the request is for a page."""
        return is_page(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        there = self._web_url + quote(scope["path"], safe=_PLAIN)
        if query := scope.get("query_string"):
            there += "?" + quote(query, safe=f"{_PLAIN}%?")
        await _answer(scope, send, 302, b"", [(b"location", there.encode()), *_bare("text/plain")])


def _headers(address: str) -> headers.Headers:
    if address.startswith(f"/{ASSETS}/"):
        return [(b"cache-control", _FOR_EVER), (b"vary", b"accept-encoding"), *headers.COMMON]
    return [
        (b"cache-control", _ASK_AGAIN),
        (b"vary", b"accept, accept-encoding"),
        (b"content-security-policy", _POLICIES.get(address, headers.BARE_POLICY)),
        *([(b"cross-origin-opener-policy", b"same-origin")] if address == INDEX else []),
        *([(b"connection-allowlist", _CONNECTIONS[address])] if address in _CONNECTIONS else []),
        *headers.COMMON,
    ]


def _bare(kind: str) -> headers.Headers:
    return [
        (b"content-type", kind.encode()),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", headers.BARE_POLICY),
        *headers.COMMON,
    ]


async def _answer(scope: Scope, send: Send, status: int, body: bytes, said: headers.Headers) -> None:
    if status != 304:
        said = [*said, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": said})
    await send_body(send, b"" if scope["method"] == "HEAD" else body)
