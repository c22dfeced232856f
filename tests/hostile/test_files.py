"""The files' port: forms that are long, broken or nothing but boundaries, odd ranges, and clients that hardly move."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from tests.harness import basic, wait_until
from tests.hostile.conftest import LONG, TOGETHER
from tests.hostile.target import OF_USERS, PATIENCE, Target, at_once

#: What a form with the boundary `b` is sent as, how a file begins in one, and how the form ends.
FORM = {"Content-Type": "multipart/form-data; boundary=b"}
FILE = b'--b\r\nContent-Disposition: form-data; name="/a"; filename="/a"\r\n\r\n'
END = b"\r\n--b--\r\n"
SIZE = (4 if LONG else 1) * 2**20
LARGE = 32 * 2**20
#: Connections that send a file or take one, and hardly do.
SLOW, ADDRESSES = 600, 10


def repeated(piece: bytes) -> bytes:
    return piece * (SIZE // len(piece))


def named(name: bytes) -> bytes:
    return b'--b\r\nContent-Disposition: form-data; name="' + name + b'"; filename="' + name + b'"\r\n\r\n1' + END


FORMS: dict[str, Callable[[], bytes]] = {
    "headers of a part without end": lambda: b"--b\r\n" + repeated(b"A: b\r\n"),
    "a header of a part without end": lambda: b"--b\r\nA: " + repeated(b"b"),
    "the name of a header without end": lambda: b"--b\r\n" + repeated(b"A"),
    "spaces before a header": lambda: b"--b\r\nA:" + repeated(b" "),
    "empty parts": lambda: b"--b\r\n\r\n" + repeated(b"\r\n--b\r\n\r\n"),
    "empty files": lambda: repeated(FILE + b"\r\n"),
    "boundaries that are none": lambda: FILE + repeated(b"\r\n--bX") + END,
    "ends that are none": lambda: FILE + repeated(b"\r\n--b-X") + END,
    "a boundary without end": lambda: FILE + b"x\r\n--b" + repeated(b" "),
    "line breaks": lambda: FILE + repeated(b"\r") + END,
    "nothing but line breaks": lambda: repeated(b"\r\n"),
    "no boundary": lambda: repeated(b"x"),
    "much after the end": lambda: FILE + END + repeated(b"--b\r\n"),
    "a name of 64 KB": lambda: named(b"x" * 2**16),
    "a name of 4 KB": lambda: named(b"x" * 4000),
    "a name of many folders": lambda: named(b"a/" * 500 + b"a"),
    "a name that is no UTF-8": lambda: named(b"\xff\xfe"),
    "a name with a NUL": lambda: named(b"a\0b"),
    "a name that leads outside": lambda: named(b"../../a"),
    "quotes in a name": lambda: named(b'\\"' * 1900),
    "semicolons in a name": lambda: named(b";" * 3900) * 500,
    "a file that is cut off": lambda: FILE + repeated(b"x"),
}
#: Content types of a form that is well.
TYPES = [
    "multipart/form-data; boundary=" + "b" * 60_000,
    "multipart/form-data; boundary=",
    "multipart/form-data; boundary*0=b; boundary*1=b",
    "multipart/form-data; " + "; ".join(f"boundary*{n}*=%41" for n in range(3000)),
    'multipart/form-data; boundary="' + ";" * 60_000,
    'multipart/form-data; boundary="' + '\\"' * 30_000,
    "multipart/form-data; boundary*=utf-8''" + "%ff" * 20_000,
    "multipart/form-data" + ";" * 60_000,
    "multipart/mixed; boundary=b",
]


def test_forms(target: Target) -> None:
    with target.attacked(OF_USERS):
        for name, form in FORMS.items():
            send = partial(target.send, "/", form(), FORM, known=True, files=True)
            assert {send(), *at_once(TOGETHER, send)} <= {0, 200, 400, 413}, name
            assert target.send("/", form(), FORM, files=True) in {0, 401}, name


def test_the_types_of_forms(target: Target) -> None:
    with target.attacked():
        for kind in TYPES:
            send = partial(target.send, "/", FILE + b"1" + END, {"Content-Type": kind}, known=True, files=True)
            assert {send(), *at_once(TOGETHER, send)} <= {200, 400, 431}, kind[:60]


@pytest.fixture
def large(target: Target) -> str:
    """The path of a large file."""
    assert target.send("/large", b"x" * LARGE, method="PUT", known=True, files=True) == 200
    return "/large"


RANGES = [
    "bytes=" + ",".join(f"{n}-{n}" for n in range(5000)),
    "bytes=" + ",".join(["0-"] * 15_000),
    "bytes=" + ",".join(f"{n}-{LARGE}" for n in range(4000)),
    "bytes=-5-3",
    "bytes=5-3",
    "bytes=--1",
    "bytes=-" + "9" * 30,
    "bytes=" + "9" * 30 + "-",
    "bytes=0-" + "9" * 50_000,
    "bytes=1e3-",
    "bytes=a-b",
    "bytes=٣-٤".encode().decode("latin-1"),
    "bytes=" + " " * 60_000 + "0-1",
    "bytes=" * 9000,
    "lines=0-1",
]


def test_ranges(target: Target, large: str) -> None:
    """A range that means nothing is as good as none; the file is then sent as a whole, so HEAD asks most of them."""
    answers = {200, 206, 416} | ({400} if target.through_proxy else set())  # nginx takes no head that is so long
    with target.attacked():
        for text in RANGES:
            for name in ("Range", "If-Range"):
                headers = {"Range": "bytes=0-1", name: text}
                send = partial(target.send, large, b"", headers, method="HEAD", known=True, files=True)
                assert {send(), *at_once(TOGETHER, send)} <= answers, (name, text[:60])
        assert target.send(large, b"", {"Range": "bytes=0-1,3-4"}, method="GET", known=True, files=True) == 200


def head(method: str, path: str, size: int) -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: here\r\nAuthorization: {basic()}\r\nContent-Length: {size}\r\n\r\n"
    ).encode()


@contextlib.contextmanager
def connections(target: Target, count: int) -> Iterator[list[socket.socket]]:
    """Connections that are ended without a word."""
    with ExitStack() as open_:
        made = []
        for number in range(count):
            made.append(open_.enter_context(socket.socket()))
            made[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)  # what is sent to it stays with the server
            made[-1].settimeout(PATIENCE)
            made[-1].bind((f"127.0.2.{number % ADDRESSES + 1}", 0))
            made[-1].connect(("127.0.0.1", target.files_port))
        yield made
        for connection in made:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_files_that_are_hardly_sent(target: Target) -> None:
    """Each stops shortly before it has sent a megabyte."""
    with target.attacked(OF_USERS), connections(target, SLOW) as slow:
        for number, connection in enumerate(slow):
            form = f"POST / HTTP/1.1\r\nHost: here\r\nAuthorization: {basic()}\r\nContent-Type: {FORM['Content-Type']}"
            begun = form.encode() + b"\r\nContent-Length: 1000000000\r\n\r\n" + FILE
            connection.sendall(begun if number % 2 else head("PUT", f"/slow/{number}", 10**9))
        for connection in slow:
            with contextlib.suppress(OSError):
                connection.sendall(b"x" * (2**20 - 100))
        wait_until(target.is_still)


def test_files_that_are_hardly_taken(target: Target, large: str) -> None:
    with target.attacked(OF_USERS), connections(target, SLOW) as slow:
        for connection in slow:
            connection.sendall(head("GET", large, 0))
        wait_until(target.is_still)
