"""The proxy between nodes knows who calls whom, and cuts only those off from one another that it is told to."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from tests.engines.nodes import ProcessNode
from tests.engines.wires import Cut, Wires

#: Sends each line of its input to a port, and prints what is answered; ends when its connection does. It connects at
#: the first line, as the proxy may not know before who it is.
_CLIENT = """
import socket, sys
peer = None
for line in sys.stdin:
    peer = peer or socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    try:
        peer.sendall(line.encode())
        answer = peer.recv(100).decode()
    except ConnectionError:
        answer = ""
    print(answer or "reset\\n", end="", flush=True)
    if not answer:
        break
"""


class _Echo(StreamRequestHandler):
    got: list[bytes]

    def handle(self) -> None:
        with suppress(ConnectionError):
            for line in self.rfile:
                self.got.append(line)
                self.wfile.write(line)


@pytest.fixture
def got() -> list[bytes]:
    return []


@pytest.fixture
def callers(got: list[bytes]) -> Iterator[tuple[Wires, dict[str, subprocess.Popen[bytes]]]]:
    """Nodes one and two, which connect with node three, which answers each line by the same one."""
    handler = type("_OfThisTest", (_Echo,), {"got": got})
    with Wires().running() as wires, ThreadingTCPServer(("127.0.0.1", 0), handler) as three:
        threading.Thread(target=three.serve_forever).start()
        port = wires.lead_to({"three": three.server_address[1]})["three"]
        command = [sys.executable, "-c", _CLIENT, str(port)]
        pipes = subprocess.PIPE
        started = {name: subprocess.Popen(command, stdin=pipes, stdout=pipes) for name in ("one", "two")}
        wires.nodes = {name: ProcessNode("", command, Path(), bool, process=one) for name, one in started.items()}
        yield wires, started
        for one in started.values():
            one.communicate(timeout=60)
        three.shutdown()


def _send(caller: subprocess.Popen[bytes], line: str) -> None:
    assert caller.stdin is not None
    caller.stdin.write(f"{line}\n".encode())
    caller.stdin.flush()


def _answer(caller: subprocess.Popen[bytes]) -> str:
    assert caller.stdout is not None
    return caller.stdout.readline().decode().strip()


def test_silent_nodes_get_what_was_sent_when_they_meet_again(
    callers: tuple[Wires, dict[str, subprocess.Popen[bytes]]], got: list[bytes]
) -> None:
    wires, nodes = callers
    for name, node in nodes.items():
        _send(node, name)
        assert _answer(node) == name
    assert wires.cut(["one"], ["three"], Cut.SILENT) == 1
    _send(nodes["one"], "late")
    for n in range(3):
        _send(nodes["two"], f"line {n}")
        assert _answer(nodes["two"]) == f"line {n}"
    assert b"late\n" not in got
    wires.heal()
    assert _answer(nodes["one"]) == "late"
    assert b"late\n" in got


def test_connections_of_nodes_that_are_cut_off_are_reset(
    callers: tuple[Wires, dict[str, subprocess.Popen[bytes]]],
) -> None:
    wires, nodes = callers
    for name, node in nodes.items():
        _send(node, name)
        assert _answer(node) == name
    assert wires.cut(["two"], ["three", "four"], Cut.RESET) == 1
    _send(nodes["two"], "lost")
    assert _answer(nodes["two"]) == "reset"
    _send(nodes["one"], "kept")
    assert _answer(nodes["one"]) == "kept"


def test_what_a_slow_node_sends_and_gets_is_late_and_in_order(
    callers: tuple[Wires, dict[str, subprocess.Popen[bytes]]], got: list[bytes], dice: random.Random
) -> None:
    wires, nodes = callers
    with wires.slow("one", 1.0, (0.0, 0.01), dice):
        for n in range(3):
            _send(nodes["one"], f"line {n}")
            assert _answer(nodes["one"]) == f"line {n}"
        assert wires.delayed == 6  # each line, and its answer
        _send(nodes["two"], "at once")
        assert _answer(nodes["two"]) == "at once"
    _send(nodes["one"], "at once, too")
    assert _answer(nodes["one"]) == "at once, too"
    assert wires.delayed == 6
    assert got == [b"line 0\n", b"line 1\n", b"line 2\n", b"at once\n", b"at once, too\n"]
