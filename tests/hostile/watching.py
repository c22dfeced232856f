"""A second client that asks `debug.ping` all the time, in a process of its own, and says how long it waited.

It asks on a connection that stays open and on new ones, from an address of its own (127.0.0.2), since a server may
refuse connections to who has too many.

What the machine is to blame for is taken off: how long an echo server took meanwhile that does nothing else, or how
long a thread of the server was ready to run but had no processor, as the kernel counts it. Other tests run beside this.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.harness import ANYBODY

ADDRESS = "127.0.0.2"
#: How long one answer is waited for, in seconds; nobody has to wait so long.
_PATIENCE = 60.0
_PAUSE = 0.02
#: Waits up to here are never called too long, in seconds: ten times what was measured, as a virtual machine whose
#: memory is slow lets others wait 1.4 s after 1,000 questions for large answers. Where an idle server itself is slow,
#: it is a multiple of what that takes.
_LEAST_BOUND = 14.0
_TIMES_IDLE = 50


class Wait(NamedTuple):
    """One question: when it was asked (monotonic), how long its answer took, in seconds, and its status, 0: none."""

    asked: float
    seconds: float
    status: int


class Look(NamedTuple):
    """At a time, for how many seconds each thread of the server had been ready to run without a processor."""

    time: float
    unserved: dict[str, float]


@dataclass(slots=True)
class Watched:
    """What a watcher saw; empty until it has ended."""

    pings: list[Wait] = field(default_factory=list)
    echoes: list[Wait] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)

    @property
    def usual(self) -> float:
        """The median of what a ping took, in seconds."""
        return statistics.median(wait.seconds for wait in self.pings)

    @property
    def longest(self) -> float:
        """The longest wait, in seconds, without what the machine itself let everybody wait meanwhile."""
        return max(self.of_the_server(wait) for wait in self.pings)

    def of_the_server(self, wait: Wait) -> float:
        """How long an answer took, in seconds, without what the machine itself let everybody wait meanwhile."""
        return wait.seconds - self._of_the_machine(wait)

    @property
    def refused(self) -> list[int]:
        """The statuses of answers that were not 200."""
        return [wait.status for wait in self.pings if wait.status != 200]

    def _of_the_machine(self, wait: Wait) -> float:
        end = wait.asked + wait.seconds
        beside = (echo for echo in self.echoes if echo.asked < end and echo.asked + echo.seconds > wait.asked)
        before = [look for look in self.looks if look.time <= wait.asked][-1:] or self.looks[:1]
        after = [look for look in self.looks if look.time >= end][:1] or self.looks[-1:]
        unserved = (
            seconds - first.unserved.get(thread, 0.0)
            for first, last in zip(before, after, strict=True)
            for thread, seconds in last.unserved.items()
        )
        return max(sum(echo.seconds for echo in beside), max(unserved, default=0.0))


def bound(idle: Watched) -> float:
    """The longest that anybody may wait for a ping, in seconds, at a server that took so long when idle."""
    return max(_LEAST_BOUND, _TIMES_IDLE * idle.usual)


@contextlib.contextmanager
def watching(port: int, processes: Iterable[int], *, by_tls: bool = False) -> Iterator[Watched]:
    """A watcher of the server on that port of 127.0.0.1 while inside; what it saw is there afterwards.

    `processes` are those of the server.
    """
    watched = Watched()
    tell, hear = _watcher()
    tell(f"{port} {'https' if by_tls else 'http'} {' '.join(map(str, processes))}")
    hear()  # it has begun
    try:
        yield watched
    finally:
        tell("enough")
        pings, echoes, looks = json.loads(hear())
        watched.pings += (Wait(*one) for one in pings)
        watched.echoes += (Wait(*one) for one in echoes)
        watched.looks += (Look(*one) for one in looks)


@cache
def _watcher() -> tuple[Callable[[str], None], Callable[[], str]]:
    """Tell a line to the watcher's process, and hear one. It takes a fifth of a second to start, so there is one."""
    command = [sys.executable, "-m", "tests.hostile.watching"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    atexit.register(process.communicate)
    return partial(print, file=process.stdin, flush=True), process.stdout.readline


# --- the watcher's process -------------------------------------------------------------------------


async def _watch(port: int, trusts: ssl.SSLContext | None, processes: list[str], echo_port: int) -> list[Any]:
    """Watch until a line comes."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def wait_for_a_line() -> None:
        sys.stdin.readline()
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait_for_a_line, daemon=True).start()
    pings: list[Wait] = []
    echoes: list[Wait] = []
    looks = [_look(processes)]
    asking = [
        asyncio.create_task(_ask_again_and_again(port, trusts, pings, stop, kept=True)),
        asyncio.create_task(_ask_again_and_again(port, trusts, pings, stop, kept=False)),
        asyncio.create_task(_ask_again_and_again(echo_port, None, echoes, stop, kept=True)),
    ]
    await asyncio.sleep(_PAUSE)
    _say("begun")
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _PAUSE)
        looks.append(_look(processes))
    await asyncio.gather(*asking)
    return [pings, echoes, [*looks, _look(processes)]]


def _look(processes: list[str]) -> Look:
    unserved: dict[str, float] = {}
    for process in processes:
        for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                unserved[thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
    return Look(time.monotonic(), unserved)


async def _ask_again_and_again(
    port: int, trusts: ssl.SSLContext | None, waits: list[Wait], stop: asyncio.Event, *, kept: bool
) -> None:
    while not stop.is_set():
        asked = time.monotonic()
        try:
            async with _connection(port, trusts) as (reader, writer):
                while True:
                    async with asyncio.timeout(_PATIENCE):
                        status, stays_open = await _ask(reader, writer)
                    waits.append(Wait(asked, time.monotonic() - asked, status))
                    if not (kept and stays_open) or stop.is_set():
                        break
                    await asyncio.sleep(_PAUSE)
                    asked = time.monotonic()
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            waits.append(Wait(asked, time.monotonic() - asked, 0))
        await asyncio.sleep(_PAUSE)


@contextlib.asynccontextmanager
async def _connection(
    port: int, trusts: ssl.SSLContext | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with asyncio.timeout(_PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(ADDRESS, 0), ssl=trusts)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, bool]:
    """The status, and whether the connection stays open: nginx closes one that has asked a thousand times."""
    writer.write(b"GET /debug.ping HTTP/1.1\r\nHost: here\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    await reader.readexactly(int(lengths[0].partition(b":")[2]) if lengths else 0)
    return int(head.split(b" ", 2)[1]), b"connection: close" not in head.lower()


def _echo(listener: socket.socket) -> None:
    """Answer the one client that comes, and end with it."""
    client, _ = listener.accept()
    with contextlib.suppress(OSError):
        while client.recv(2**16):
            client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    os._exit(0)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _main() -> None:
    """Watch again and again, each time after a line that says the port, http or https, and the server's processes."""
    while line := sys.stdin.readline():
        port, scheme, *processes = line.split()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            echo = os.fork()
            if echo == 0:
                _echo(listener)
            seen = asyncio.run(
                _watch(int(port), ANYBODY if scheme == "https" else None, processes, listener.getsockname()[1])
            )
        os.waitpid(echo, 0)
        _say(json.dumps(seen))


if __name__ == "__main__":
    _main()
