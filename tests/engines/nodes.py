"""Engines that tests talk to: a process of ours, a container of ours, or one that somebody else runs."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol
from uuid import uuid4

from tests.ending import unmarked
from tests.harness import free_ports, wait_until

_START_SECONDS = 300
_STOP_SECONDS = 40


class Unavailable(Exception):
    """An engine cannot be had here. Its text says why, and what would help."""


class Node(Protocol):
    """One engine on 127.0.0.1. `start` again after `stop` or `kill`: same port, same data."""

    @property
    def url(self) -> str:
        """Where it answers, or will."""

    @property
    def ours(self) -> bool:
        """Whether tests may stop it."""

    @property
    def pid(self) -> int | None:
        """The process that ends when the engine's lifeline does; None where there is none of ours."""

    def start(self) -> None:
        """Start it, and wait until it answers."""

    def stop(self) -> None:
        """Let it end in order, and wait for that."""

    def kill(self) -> None:
        """End it as a crash would, and wait for that."""

    def remove(self) -> None:
        """End it for good."""


def first_available(ways: Iterable[Callable[[], Node | None]]) -> Node:
    """The node of the first way that gives one; Unavailable with the reasons of all when none does."""
    reasons = []
    for way in ways:
        try:
            node = way()
        except Unavailable as reason:
            reasons.append(str(reason))
        else:
            if node is not None:
                return node
    raise Unavailable("; ".join(reasons))


@dataclass(slots=True)
class ForeignNode:
    """One that somebody else runs, named by its URL."""

    url: str
    answers: Callable[[str], bool]
    ours: bool = field(default=False, init=False)
    pid: int | None = field(default=None, init=False)

    def start(self) -> None:
        assert self.answers(self.url), f"nothing answers at {self.url}"

    def stop(self) -> None:
        raise AssertionError(f"{self.url} is not ours to stop")

    kill = stop

    def remove(self) -> None:
        """It goes on without us."""


@dataclass(slots=True)
class ProcessNode:
    """A process of ours. It ends when its standard input does, so it cannot outlive us, however we end."""

    url: str
    command: Sequence[str]
    log: Path
    answers: Callable[[str], bool]
    lifeline: Path | None = None
    """A named pipe instead, of another process of ours: it outlives us, and not that one. Then we cannot stop it."""
    process: subprocess.Popen[bytes] | None = None
    ours: bool = field(default=True, init=False)

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    def start(self) -> None:
        with _end_of(self.lifeline) as lifeline, open(self.log, "ab") as output:
            self.process = subprocess.Popen(self.command, stdin=lifeline, stdout=output, stderr=output)
        wait_until(lambda: self._has_ended() or self.answers(self.url), _START_SECONDS)
        assert not self._has_ended(), f"{self.command[0]} ended:\n{self.log.read_text()[-4000:]}"

    def stop(self) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.stop()

    def remove(self) -> None:
        if self.process is not None:
            self.stop()

    def _has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None


@dataclass(slots=True)
class ContainerNode:
    """A container of ours, removed by a watcher that ends when its standard input does, however we end."""

    url: str
    options: Sequence[str]
    answers: Callable[[str], bool]
    lifeline: Path | None = None
    """As of a process: where the watcher's standard input ends, if not here."""
    name: str = field(default_factory=lambda: f"engine-{uuid4().hex}")
    watcher: subprocess.Popen[bytes] | None = None
    ours: bool = field(default=True, init=False)

    @property
    def pid(self) -> int | None:
        return None if self.watcher is None else self.watcher.pid

    def start(self) -> None:
        if self.watcher is None:
            removal = f"cat >/dev/null; docker rm --force --volumes {self.name} >/dev/null 2>&1"
            with _end_of(self.lifeline) as lifeline:
                self.watcher = subprocess.Popen(
                    ["sh", "-c", removal], stdin=lifeline, env=unmarked(), start_new_session=True
                )
            _docker("run", "--detach", "--name", self.name, *self.options)
        else:
            _docker("start", self.name)
        wait_until(lambda: self.answers(self.url), _START_SECONDS)

    def stop(self) -> None:
        _docker("stop", self.name)

    def kill(self) -> None:
        _docker("kill", self.name)

    def remove(self) -> None:
        if self.watcher is not None and self.watcher.stdin is not None:
            self.watcher.stdin.close()
            self.watcher.wait(_STOP_SECONDS)


@contextmanager
def _end_of(lifeline: Path | None) -> Iterator[IO[bytes] | int]:
    """What a process gets as its standard input, which ends when its lifeline does."""
    if lifeline is None:
        yield subprocess.PIPE
        return
    with open(lifeline, "rb") as end:
        yield end


def container(
    image: str,
    port: int,
    scheme: str,
    answers: Callable[[str], bool],
    environment: Mapping[str, str] | None = None,
    lifeline: Path | None = None,
) -> ContainerNode:
    """A container that is not started yet; Unavailable when docker does not work here.

    image: its name and version. port: where it listens, inside. scheme: that of its URL.
    """
    if shutil.which("docker") is None:
        raise Unavailable("no docker")
    if subprocess.run(["docker", "info"], capture_output=True, timeout=60, check=False).returncode:
        raise Unavailable("docker has no engine")
    [outside] = free_ports(1)
    variables = [f"--env={name}={value}" for name, value in (environment or {}).items()]
    options = [f"--publish=127.0.0.1:{outside}:{port}", *variables, image]
    return ContainerNode(f"{scheme}://127.0.0.1:{outside}", options, answers, lifeline)


def listens(url: str) -> bool:
    """Whether something listens at `scheme://host:port`."""
    host, port = url.rpartition("/")[2].split(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def _docker(*arguments: str) -> None:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
