"""What only a real socket shows: bodies refused while they are sent, connections closed or kept, clients that leave."""

from __future__ import annotations

import gzip
import json
import logging
import shutil
import socket
import subprocess
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from apiserver.rpc.body import Limits
from apiserver.rpc.call import Call, Streamed
from tests.harness import PATIENCE
from tests.rpc.apps import ALICE, authenticator, demo, served, single

MIB = 2**20
SDK = "X-ClearML-Client: clearml-2.1.12"
#: Good for as long as a run of all tests may take, which begins with this line.
TOKEN = f"Authorization: Bearer {authenticator().issue(ALICE, 86_400)}"


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def head(path: str, *headers: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


class Answer:
    """One answer read from a connection: status, headers by lower-case name, body."""

    def __init__(self, reader: Any) -> None:
        self.status = int(reader.readline().split()[1])
        lines = iter(lambda: reader.readline().decode("latin-1").strip(), "")
        self.headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        self.body = reader.read(int(self.headers["content-length"]))

    @property
    def code(self) -> int:
        meta = json.loads(self.body)["meta"]
        assert meta["result_code"] == self.status
        return self.status


def is_closed(reader: Any) -> bool:
    """Whether nothing more comes: waits until the server has closed."""
    return bool(reader.read(1) == b"")


def test_a_client_that_is_no_sdk_keeps_its_connection(tmp_path: Path) -> None:
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        for path, code in (("/demo.ping", 200), ("/demo.nope", 404), ("/v2.1/demo.echo", 401), ("/demo.ping", 200)):
            wire.sendall(head(path, "Content-Length: 2") + b"{}")
            assert Answer(reader).code == code


@pytest.mark.test
@pytest.mark.parametrize("path", ["/demo.ping", "/demo.nope", "/nonsense", "/v2.1/demo.echo"])
def test_the_connection_of_an_sdk_is_closed_after_each_answer(tmp_path: Path, path: str) -> None:
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        wire.sendall(head(path, SDK, "Content-Length: 2", method="GET") + b"{}")
        answer = Answer(reader)
        assert answer.headers["connection"] == "close"
        assert is_closed(reader)


def test_a_declared_length_beyond_the_limit_is_answered_before_the_body_is_sent(tmp_path: Path) -> None:
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        wire.sendall(head("/demo.add_batch", TOKEN, f"Content-Length: {20 * MIB}") + b"the first bytes only")
        answer = Answer(reader)
        assert answer.code == 413
        assert answer.headers["connection"] == "close"


def test_a_client_that_sends_all_of_a_20_mb_body_before_it_reads_still_sees_413(tmp_path: Path) -> None:
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        wire.sendall(head("/demo.add_batch", TOKEN, SDK, f"Content-Length: {20 * MIB}"))
        wire.sendall(bytes(20 * MIB))
        assert Answer(reader).code == 413
        assert is_closed(reader)


def test_an_endless_chunked_body_is_answered_at_the_limit(tmp_path: Path) -> None:
    with (
        served(demo(tmp_path, limits=Limits(body=MIB))) as port,
        connect(port) as wire,
        wire.makefile("rb") as reader,
    ):
        wire.sendall(head("/demo.add_batch", TOKEN, "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        for _ in range(17):
            wire.sendall(chunk)
        assert Answer(reader).code == 413


@pytest.mark.test
def test_a_caller_who_is_not_known_cannot_make_the_server_take_a_body(tmp_path: Path) -> None:
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        wire.sendall(head("/demo.add_batch", SDK, f"Content-Length: {15 * MIB}"))
        wire.sendall(bytes(15 * MIB))
        assert Answer(reader).code == 401
        assert is_closed(reader)


@pytest.mark.test
def test_a_body_of_the_sdks_largest_size_is_taken(tmp_path: Path) -> None:
    size = 15_728_640
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        wire.sendall(head("/demo.add_batch", TOKEN, SDK, f"Content-Length: {size}", method="GET") + bytes(size))
        answer = Answer(reader)
        assert answer.code == 200
        assert json.loads(answer.body)["data"]["size"] == size


def test_a_bomb_is_413(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(24 * MIB), 1)
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        headers = (TOKEN, "Content-Encoding: gzip", f"Content-Length: {len(bomb)}")
        wire.sendall(head("/demo.add_batch", *headers) + bomb)
        assert Answer(reader).code == 413


def test_half_a_body_and_gone_leaves_the_server_well(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served(demo(tmp_path)) as port:
        for _ in range(3):
            with connect(port) as wire:
                wire.sendall(head("/demo.add_batch", TOKEN, "Content-Length: 1000") + b"half")
        with connect(port) as wire, wire.makefile("rb") as reader:
            wire.sendall(head("/demo.add_batch", TOKEN, "Content-Length: 5") + b"whole")
            assert Answer(reader).code == 200
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_calls_sent_one_after_another_without_waiting_are_answered_in_order(tmp_path: Path) -> None:
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        for number in range(5):
            body = json.dumps({"n": number}).encode()
            wire.sendall(head("/demo.echo", TOKEN, f"Content-Length: {len(body)}") + body)
        for number in range(5):
            assert json.loads(Answer(reader).body)["data"]["request"] == {"n": number}


def test_a_refused_body_on_a_kept_connection_does_not_become_the_next_call(tmp_path: Path) -> None:
    body = head("/demo.ping")
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        wire.sendall(head("/demo.nope", f"Content-Length: {len(body)}") + body)
        wire.sendall(head("/demo.echo", TOKEN, "Content-Length: 0"))
        assert [Answer(reader).code, Answer(reader).code] == [404, 200]


def test_the_download_of_a_client_that_leaves_ends(tmp_path: Path) -> None:
    ended = threading.Event()

    async def handler(call: Call[Any], request: dict[str, Any]) -> Streamed:
        async def lines() -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    yield bytes(100_000)
            finally:
                ended.set()

        return Streamed(lines(), "text/plain")

    with served(single(tmp_path, handler)) as port:
        with connect(port) as wire:
            wire.sendall(head("/one.call", TOKEN, method="GET"))
            assert wire.recv(1000)
        assert ended.wait(120)


@pytest.mark.test
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_curl_sees_413_for_a_large_file(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(20 * MIB))
    with served(demo(tmp_path)) as port:
        url = f"http://127.0.0.1:{port}/demo.add_batch"
        options = ["-s", "-w", "%{http_code}", "-H", TOKEN, "-H", "Expect: 100-continue", "--data-binary", f"@{large}"]
        done = subprocess.run(["curl", *options, url], capture_output=True, timeout=PATIENCE, check=True)
    answer, status = done.stdout[:-3], done.stdout[-3:]
    assert status == b"413"
    assert json.loads(answer)["meta"]["result_code"] == 413


def test_what_a_stranger_declares_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        wire.sendall(head("/demo.ping", "Content-Length: 16385"))
        assert Answer(reader).code == 413
        assert is_closed(reader)


def test_a_stranger_who_is_refused_is_not_waited_for(tmp_path: Path) -> None:
    with served(demo(tmp_path)) as port, connect(port) as wire, wire.makefile("rb") as reader:
        wire.sendall(head("/demo.echo", f"Content-Length: {17 * MIB}"))
        answer = Answer(reader)
        assert (answer.code, answer.headers["connection"]) == (401, "close")
