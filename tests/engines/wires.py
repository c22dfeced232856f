"""A proxy between the nodes of a cluster, which can cut some of them off from others, or make one slow.

Each node tells the others a port of the proxy, and not the one that it listens at. The proxy finds out which node has
opened a connection by the process that owns its other end:

    node one ── connects to where node two says it is ──▶ proxy ──▶ node two

HTTP goes another way, so a node that is cut off still answers those who ask it.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tests.engines.nodes import ProcessNode
from tests.engines.proxy import reset

_PIECE = 2**16
_LOCALHOST = "127.0.0.1"
#: The tables of connections, of IPv4 and of IPv6, in which Java has those of IPv4, too.
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


class Cut(Enum):
    """What happens to connections between nodes that are cut off from one another."""

    RESET = "they are reset, and new ones are, too"
    SILENT = "nothing passes; what was sent meanwhile comes when the nodes meet again, as TCP sends it again"


class _Slow(NamedTuple):
    """A share of what a node sends and gets waits for so many seconds, at least and at most."""

    node: str
    share: float
    seconds: tuple[float, float]
    dice: random.Random


class Wires:
    """The connections between the nodes of a cluster, while it is `running`."""

    def __init__(self) -> None:
        self.nodes: Mapping[str, ProcessNode] = {}
        self.delayed = 0
        """How much of what a slow node sent or got has waited."""
        self._slow: _Slow | None = None
        self._cuts: dict[frozenset[str], Cut] = {}
        self._changed = asyncio.Event()
        self._connections: dict[asyncio.Task[Any], frozenset[str]] = {}
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()

    @contextmanager
    def running(self) -> Iterator[Wires]:
        """In a thread of its own."""
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            yield self
        finally:
            self._do(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def lead_to(self, ports: Mapping[str, int]) -> dict[str, int]:
        """The ports of the proxy that lead to these ports of nodes."""
        return {name: self._do(self._listen(name, port)) for name, port in ports.items()}

    def cut(self, some: Iterable[str], others: Iterable[str], how: Cut) -> int:
        """Cut some nodes off from others; return how many connections there were between them."""
        pairs = {frozenset(pair) for pair in product(some, others)}
        between = sum([pair in pairs for pair in [*self._connections.values()]])
        self._do(self._set({**self._cuts, **dict.fromkeys(pairs, how)}))
        return between

    def heal(self) -> None:
        """Let all nodes meet again."""
        self._do(self._set({}))

    @contextmanager
    def slow(self, node: str, share: float, seconds: tuple[float, float], dice: random.Random) -> Iterator[None]:
        """Inside, a share of what the node sends and gets waits, at least and at most for so many seconds.

        What follows on the same connection waits for it, as in TCP.
        """
        self._slow = _Slow(node, share, seconds, dice)
        try:
            yield
        finally:
            self._slow = None

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _set(self, cuts: dict[frozenset[str], Cut]) -> None:
        self._cuts = cuts
        for connection, pair in [*self._connections.items()]:
            if cuts.get(pair) is Cut.RESET:
                connection.cancel()
        self._changed.set()
        self._changed = asyncio.Event()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        connections = [*self._connections]
        for one in connections:
            one.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _listen(self, name: str, port: int) -> int:
        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Coroutine[Any, Any, None]:
            return self._serve(name, port, reader, writer)

        server = await asyncio.start_server(serve, _LOCALHOST, 0)
        self._servers.append(server)
        listens_at: int = server.sockets[0].getsockname()[1]
        return listens_at

    async def _serve(self, name: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what a node sends to the node `name`, and what that answers."""
        task = asyncio.current_task()
        assert task is not None
        here, there = (writer.get_extra_info(end)[1] for end in ("sockname", "peername"))
        pair = frozenset({name, self._who(there, here)})
        self._connections[task] = pair
        writers = [writer]
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._may_pass(pair)
                from_node, to_node = await asyncio.open_connection(_LOCALHOST, port)
                writers.append(to_node)
                await asyncio.gather(self._pass(pair, reader, to_node), self._pass(pair, from_node, writer))
        finally:
            del self._connections[task]
            for one in writers:
                reset(one)

    async def _pass(self, pair: frozenset[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                await self._is_late(pair)
                await self._may_pass(pair)
                writer.write(piece)
                await writer.drain()
            await self._may_pass(pair)
            writer.close()
        reset(writer)

    async def _is_late(self, pair: frozenset[str]) -> None:
        slow = self._slow
        if slow is not None and slow.node in pair and slow.dice.random() < slow.share:
            self.delayed += 1
            await asyncio.sleep(slow.dice.uniform(*slow.seconds))

    async def _may_pass(self, pair: frozenset[str]) -> None:
        """Return when nothing keeps these nodes apart. ConnectionResetError: their connections are reset."""
        while (cut := self._cuts.get(pair)) is not None:
            if cut is Cut.RESET:
                raise ConnectionResetError
            await self._changed.wait()

    def _who(self, port: int, to: int) -> str:
        """The node whose process has a connection from this port to another one; "" if none has it any more."""
        inode = _inode(port, to)
        for name, node in self.nodes.items():
            if node.process is not None and inode in _inodes(node.process.pid):
                return name
        return ""


def _inode(port: int, to: int) -> str:
    """The inode of the socket that is connected from this port to another one."""
    for table in _TABLES:
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, remote, *_, inode = line.split()[:10]
            if [int(end.rpartition(":")[2], 16) for end in (local, remote)] == [port, to]:
                return inode
    return ""


def _inodes(pid: int) -> set[str]:
    """The inodes of all sockets of a process."""
    found = set()
    with suppress(OSError):
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.add(os.readlink(descriptor.path).removeprefix("socket:[").removesuffix("]"))
    return found
