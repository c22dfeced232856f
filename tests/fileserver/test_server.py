"""The file server over HTTP: uploads as the SDK sends them, downloads, and everything that is refused."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import anyio
import httpx
import pytest
from python_multipart.multipart import MultipartParser
from starlette.types import Message, Scope

from apiserver.fileserver import uploads
from apiserver.fileserver.server import FileServer
from apiserver.rpc.body import Limits
from apiserver.rpc.call import Identity
from apiserver.stores.documents.base import DocumentStoreBusy
from apiserver.stores.files.disk import FileStore
from tests.fileserver.conftest import MAX_BYTES, Files

pytestmark = pytest.mark.anyio

SDK_NAMES = [
    "/project/task.0123/artifacts/data/data.csv",
    "/prøject/模型/100%/a#b?c;d&e=f.bin",
    "/p/%2e%2e/x",
    "/p/a b+c/..x/x..",
    '/p/say "yes".txt',
    "/p/" + "long" * 60 + "/" + "long" * 60,
]


END = b"\r\n--b--\r\n"
FILE = b'--b\r\nContent-Disposition: form-data; name="/x"; filename="/x"\r\n\r\n' + END


async def upload(files: Files, name: str, content: bytes, **options: Any) -> httpx.Response:
    """As the SDK does: field name and file name are the path."""
    return await files.client.post("/", files={name: (name, content, "text/plain")}, **options)


@pytest.mark.test
@pytest.mark.parametrize("name", SDK_NAMES)
async def test_a_file_goes_in_and_comes_out(files: Files, name: str) -> None:
    response = await upload(files, name, b"content")
    assert response.status_code == 200
    assert (await files.client.get(quote(name))).content == b"content"
    assert (await files.client.head(quote(name))).headers["content-length"] == "7"
    assert (await files.client.delete(quote(name))).status_code == 200
    assert (await files.client.get(quote(name))).status_code == 404
    assert (await files.client.delete(quote(name))).status_code == 404
    assert not files.kept()


async def test_several_files_in_one_form(files: Files) -> None:
    form = [("/a", ("/a", b"1")), ("/b/c", ("/b/c", b"22")), ("note", (None, b"no file"))]
    response = await files.client.post("/", files=form)
    assert response.json() == {"files": [{"path": "/a", "size": 1}, {"path": "/b/c", "size": 2}]}
    assert (await files.client.get("/b/c")).content == b"22"


async def test_an_upload_replaces_the_file(files: Files) -> None:
    await upload(files, "/x", b"old")
    first = await files.client.get("/x")
    await upload(files, "/x", b"new")
    second = await files.client.get("/x")
    assert (first.content, second.content) == (b"old", b"new")
    assert first.headers["etag"] != second.headers["etag"]


async def test_put_takes_the_body_as_it_is(files: Files) -> None:
    response = await files.client.put("/a/b.bin", content=b"raw")
    assert response.json() == {"files": [{"path": "/a/b.bin", "size": 3}]}
    assert (await files.client.get("/a/b.bin")).content == b"raw"


async def test_an_empty_file(files: Files) -> None:
    await upload(files, "/empty", b"")
    response = await files.client.get("/empty")
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-length"] == "0"


# --- downloads --------------------------------------------------------------------------------------


async def test_a_range(files: Files) -> None:
    await upload(files, "/x", b"0123456789")
    response = await files.client.get("/x", headers={"range": "bytes=2-4"})
    assert (response.status_code, response.content) == (206, b"234")
    assert response.headers["content-range"] == "bytes 2-4/10"
    assert response.headers["content-length"] == "3"


async def test_a_range_beyond_the_end(files: Files) -> None:
    await upload(files, "/x", b"0123456789")
    response = await files.client.get("/x", headers={"range": "bytes=10-"})
    assert (response.status_code, response.content) == (416, b"")
    assert response.headers["content-range"] == "bytes */10"


async def test_a_range_of_a_file_that_changed_is_the_whole_file(files: Files) -> None:
    await upload(files, "/x", b"0123456789")
    etag = (await files.client.get("/x")).headers["etag"]
    same = await files.client.get("/x", headers={"range": "bytes=0-1", "if-range": etag})
    changed = await files.client.get("/x", headers={"range": "bytes=0-1", "if-range": '"other"'})
    assert (same.status_code, changed.status_code) == (206, 200)


async def test_what_the_client_has_is_not_sent_again(files: Files) -> None:
    await upload(files, "/x", b"1")
    headers = (await files.client.get("/x")).headers
    for known in ({"if-none-match": headers["etag"]}, {"if-modified-since": headers["last-modified"]}):
        response = await files.client.get("/x", headers=known)
        assert (response.status_code, response.content) == (304, b"")
    assert (await files.client.get("/x", headers={"if-none-match": '"other"'})).status_code == 200


@pytest.mark.parametrize("name", ["/page.html", "/drawing.svg", "/image.png", "/x"])
async def test_no_stored_file_can_run_a_script(files: Files, name: str) -> None:
    await upload(files, name, b"<script>alert(1)</script>")
    headers = (await files.client.get(name)).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none';")
    assert "script" not in policy
    assert "allow-" not in policy
    assert headers["x-content-type-options"] == "nosniff"


async def test_the_type_is_not_what_the_uploader_says(files: Files) -> None:
    await files.client.post("/", files={"/x.bin": ("/x.bin", b"<script>", "text/html")})
    response = await files.client.get("/x.bin")
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''x.bin"


# --- who may ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "POST", "PATCH"])
async def test_every_method_needs_credentials(files: Files, method: str) -> None:
    await upload(files, "/x", b"1")
    for authorization in ("", "Bearer wrong", "Basic a2V5Ondyb25n"):
        headers = {"authorization": authorization}
        response = await files.client.request(method, "/" if method == "POST" else "/x", headers=headers)
        assert response.status_code == 401
    assert len(files.kept()) == 1


async def test_key_and_secret_or_the_cookie_do_as_well(files: Files) -> None:
    await upload(files, "/x", b"1")
    assert (await files.client.get("/x", auth=("key", "secret"))).status_code == 200
    cookie = {"authorization": "", "cookie": f"clearml_token_basic={files.token}"}
    assert (await files.client.get("/x", headers=cookie)).status_code == 200
    assert (await files.client.delete("/x", headers=cookie)).status_code == 403
    foreign = {**cookie, "origin": "http://evil"}
    assert (await files.client.delete("/x", headers=foreign)).status_code == 403
    assert (await files.client.delete("/x", headers={**cookie, "origin": "http://ui"})).status_code == 200


async def test_another_company_sees_nothing(files: Files) -> None:
    await upload(files, "/x", b"1")
    other = {"authorization": f"Bearer {files.other_token}"}
    assert (await files.client.get("/x", headers=other)).status_code == 404
    assert (await files.client.delete("/x", headers=other)).status_code == 404
    await upload(files, "/x", b"2", headers=other)
    assert (await files.client.get("/x")).content == b"1"


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.test
@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/..%2fsecret",
        "/%2e%2e/secret",
        "/%2e%2e%2f%2e%2e%2fsecret",
        "/a/%2e%2e/%2e%2e/%2e%2e/secret",
        "/%252e%252e/secret",
        "//secret",
        "/..;/secret",
        "/..%5csecret",
        "/%00secret",
        "/a%00/../secret",
        "/" + "x" * 2000,
        "/.",
        "/",
    ],
)
async def test_no_path_leads_outside(files: Files, path: str) -> None:
    (files.folder.parent / "secret").write_text("secret")
    for method in ("GET", "HEAD", "DELETE"):
        response = await files.client.request(method, httpx.URL("http://files", raw_path=path.encode()))
        assert response.status_code == 404
    await files.client.put(httpx.URL("http://files", raw_path=path.encode()), content=b"x")
    assert (files.folder.parent / "secret").read_text() == "secret"
    assert {entry.name for entry in files.folder.parent.iterdir()} == {"files", "secret"}
    assert {entry.name for entry in files.folder.iterdir()} <= {"incoming", "lock", "c1+"}


@pytest.mark.parametrize("name", ["/../x", "../x", "/a/../../x", "/", ".", "/" + "x" * 2000])
async def test_an_impossible_name_is_named(files: Files, name: str) -> None:
    response = await upload(files, name, b"1")
    assert response.status_code == 400
    assert response.json()["meta"]["result_msg"].startswith("Invalid file name: the name")
    assert not files.kept()


async def test_a_file_over_the_limit_is_413_and_leaves_nothing(files: Files) -> None:
    form = {"/fits": ("/fits", b"1"), "/large": ("/large", b"x" * (MAX_BYTES + 1))}
    response = await files.client.post("/", files=form)
    assert response.status_code == 413
    assert str(MAX_BYTES) in response.json()["meta"]["result_msg"]
    assert not files.kept()
    assert (await files.client.put("/x", content=b"x" * (MAX_BYTES + 1))).status_code == 413
    assert not files.kept()


@pytest.mark.test
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data", b""),
        ("multipart/form-data; boundary=b", b""),
        ("multipart/form-data; boundary=b", b"nonsense"),
        ("multipart/form-data; boundary=b", b"--b--\r\n"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="/x"; filename="/x"\r\n\r\ncut',
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="/x"\r\n\r\nfield\r\n--b--\r\n',
        ),
        ("multipart/form-data; boundary=b", b"--b\r\n" + b"X: 1\r\n" * 1000 + b"\r\n--b--\r\n"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\n\r\n" * 1001 + FILE),
        ("multipart/form-data; boundary=b", FILE.removesuffix(b"--b--\r\n") * 1001 + b"--b--\r\n"),
        ("multipart/form-data; boundary=" + "b" * 5000, b"--b--"),
    ],
)
async def test_a_broken_form_is_400_and_leaves_nothing(files: Files, content_type: str, body: bytes) -> None:
    response = await files.client.post("/", content=body, headers={"content-type": content_type})
    assert response.status_code == 400
    assert not files.kept()


async def test_a_form_is_for_the_root(files: Files) -> None:
    assert (await files.client.post("/a", files={"/x": ("/x", b"1")})).status_code == 400


async def test_other_methods_are_405(files: Files) -> None:
    for method in ("PATCH", "OPTIONS"):
        answer = await files.client.request(method, "/x")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST, PUT, DELETE")


async def test_a_full_disk_is_507(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        response = await upload(files, "/x", b"1")
    assert response.status_code == 507
    assert response.json()["meta"]["result_code"] == 507
    assert not files.kept()


async def test_troubles_of_the_stores_are_503(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **options: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    async def busy(headers: Mapping[str, str], **options: Any) -> Identity:
        raise DocumentStoreBusy("the database is locked")

    await upload(files, "/x", b"1")
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", broken)
        for method in ("GET", "PUT"):
            response = await files.client.request(method, "/x")
            assert response.status_code == 503
            assert response.headers["retry-after"]
    with monkeypatch.context() as patched:
        patched.setattr(files.authenticator, "authenticate", busy)
        assert (await files.client.get("/x")).status_code == 503
    assert (await files.client.get("/x")).content == b"1"


async def test_the_sdk_must_not_keep_its_connection(files: Files) -> None:
    for header in ({"user-agent": "python-requests/2.34"}, {"x-clearml-client": "clearml-2.1"}):
        assert (await files.client.get("/x", headers=header)).headers["connection"] == "close"
    assert "connection" not in (await files.client.get("/x")).headers


# --- the protocol below HTTP ------------------------------------------------------------------------


async def exchange(files: Files, scope: dict[str, Any], received: list[Message]) -> list[Message]:
    """What the app sends for a request that arrives as `received`."""
    sent: list[Message] = []

    async def receive() -> Message:
        return received.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {files.token}".encode()), *scope.pop("headers", [])]
    full: Scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, **scope}
    await files.app(full, receive, send)
    return sent


async def test_a_client_that_leaves_leaves_nothing(files: Files) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="/x"; filename="/x"\r\n\r\nsome'
    headers = [(b"content-type", b"multipart/form-data; boundary=b")]
    received: list[Message] = [{"type": "http.request", "body": form, "more_body": True}, {"type": "http.disconnect"}]
    assert await exchange(files, {"headers": headers}, received) == []
    assert not files.kept()


async def test_an_upload_that_stalls_is_408_and_leaves_nothing(files: Files) -> None:
    limits = Limits(stall_seconds=0.01)
    app = FileServer(files.store, files.authenticator, files.deletions, files.links, limits=limits)
    come: list[Message] = [{"type": "http.request", "body": b"some", "more_body": True}]
    sent: list[Message] = []

    async def receive() -> Message:
        if not come:
            await anyio.sleep_forever()
        return come.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {files.token}".encode()), (b"content-length", b"1000")]
    await app({"type": "http", "method": "PUT", "path": "/x", "headers": headers}, receive, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert not files.kept()


async def test_what_nobody_takes_is_not_read_on(files: Files) -> None:
    size = 2**23
    async with FileStore(files.folder).upload("c1", "/x") as large:
        await large.write(bytes(size))
        await large.finish()
        await large.commit()
    received: list[Message] = [{"type": "http.request"}, {"type": "http.disconnect"}]
    start, *pieces = await exchange(files, {"method": "GET", "path": "/x", "query_string": b""}, received)
    assert start["status"] == 200
    assert sum(len(piece["body"]) for piece in pieces) < size


async def test_a_form_of_boundaries_is_read_in_a_thread(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()

    class Noted(MultipartParser):
        def write(self, data: bytes) -> int:
            threads.add(threading.current_thread().name)
            return super().write(data)

    monkeypatch.setattr(uploads, "MultipartParser", Noted)
    body = FILE.removesuffix(END) + b"\r\n--bX" * 3000 + END
    response = await files.client.post("/", content=body, headers={"content-type": "multipart/form-data; boundary=b"})
    assert response.status_code == 413  # the file is larger than may be
    assert threading.main_thread().name not in threads


async def test_a_form_in_single_bytes(files: Files) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="/x"; filename="/x"\r\n\r\nab\r\n--b\r\n--b--\r\n'
    form = form.replace(b"\r\n--b\r\n--b--", b"\r\n--b--")
    headers = [(b"content-type", b"multipart/form-data; boundary=b")]
    received: list[Message] = [
        {"type": "http.request", "body": form[position : position + 1], "more_body": position + 1 < len(form)}
        for position in range(len(form))
    ]
    start, body = await exchange(files, {"headers": headers}, received)
    assert start["status"] == 200
    assert json.loads(body["body"]) == {"files": [{"path": "/x", "size": 2}]}


async def test_a_refused_upload_is_answered_before_it_is_read_to_the_end(files: Files) -> None:
    received: list[Message] = [
        {"type": "http.request", "body": b"x" * 2000, "more_body": True},
        {"type": "http.request", "body": b"x", "more_body": False},
    ]
    start, body, end = await exchange(files, {"method": "PUT", "path": "/x"}, received)
    assert start["status"] == 413
    assert (body["more_body"], end.get("more_body", False)) == (True, False)
    assert not received


@pytest.mark.parametrize("path", ["/below", "/below/"])
async def test_below_another_path(files: Files, path: str) -> None:
    below = FileServer(files.store, files.authenticator, files.deletions, files.links, prefix="/below")
    headers = {"authorization": f"Bearer {files.token}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(below), base_url="http://api", headers=headers
    ) as client:
        assert (await client.post(path, files={"/a": ("/a", b"1")})).status_code == 200
        assert (await client.get("/below/a")).content == b"1"
    assert (await files.client.get("/a")).content == b"1"


@pytest.mark.parametrize("method", ["PUT", "GET", "HEAD", "DELETE"])
async def test_a_name_that_is_no_text_is_refused(files: Files, method: str) -> None:
    replacement = quote("/a/\N{REPLACEMENT CHARACTER}")
    await files.client.put(replacement, content=b"another")
    response = await files.client.request(method, httpx.URL("http://files", raw_path=b"/a/%FF"), content=b"x")
    assert response.status_code == 400
    assert method == "HEAD" or "not valid UTF-8" in response.json()["meta"]["result_msg"]
    assert (await files.client.get(replacement)).content == b"another"


async def test_a_field_whose_name_is_no_text_is_refused(files: Files) -> None:
    await upload(files, "/é", b"another")
    name = "/é".encode("latin-1")
    body = b'--b\r\nContent-Disposition: form-data; name="%b"; filename="x"\r\n\r\nx\r\n--b--\r\n' % name
    headers = {"content-type": "multipart/form-data; boundary=b"}
    response = await files.client.post("/", content=body, headers=headers)
    assert response.status_code == 400
    assert "not valid UTF-8" in response.json()["meta"]["result_msg"]
    assert (await files.client.get(quote("/é"))).content == b"another"
    assert len(files.kept()) == 1
