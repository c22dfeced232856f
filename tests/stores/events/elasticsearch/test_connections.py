"""Connections to a node that answers what a test says: when they are kept, and what they make of odd answers."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from apiserver.stores.events.elasticsearch import connections
from apiserver.stores.events.elasticsearch.connections import Answer, Connections

pytestmark = pytest.mark.anyio

LARGEST = 2**24
OK = b"HTTP/1.1 200 OK\r\nX-Name: v\r\n"
SHORT = OK + b"Content-Length: 2\r\n\r\nhi"
#: Larger than what is read without a turn.
LARGE = b"x" * (connections._IN_TURNS * 3)


class Node:
    """Answers each request by the next of some texts; an empty one closes the connection, None waits for ever.

    `early` answers the first one before its body has come, and reads on, as HTTP allows.
    """

    def __init__(self, *answers: bytes | None, early: bytes = b"") -> None:
        self.answers = list(answers)
        self.early = early
        self.requests: list[bytes] = []
        self.opened = 0
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()
        self.tasks: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.tasks.append(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.rpartition(b"content-length: ")[2])
                if self.early:
                    writer.write(self.early)
                    self.early = b""
                    await reader.readexactly(length)
                    continue
                self.requests.append(await reader.readexactly(length))
                self.asked.set()
                answer = self.answers.pop(0)
                if not answer:
                    break
                writer.write(answer)
                await writer.drain()
            if answer is None:
                await reader.read()
        self.closed.set()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def asking(node: Node) -> AsyncIterator[Connections]:
    async with await asyncio.start_server(node.serve, "127.0.0.1", 0) as server:
        opened = Connections("127.0.0.1", server.sockets[0].getsockname()[1], None)
        yield opened
        opened.close()
        await asyncio.gather(*filter(None, node.tasks))


async def ask(opened: Connections, body: bytes = b"", *, largest: int = LARGEST, is_head: bool = False) -> Answer:
    head = b"POST / HTTP/1.1\r\nhost: node\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with asyncio.timeout(60):
        return await opened.ask(head, body, largest=largest, is_head=is_head)


async def test_a_connection_is_kept_for_the_next_request() -> None:
    chunks = OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    large = OK + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE
    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    node = Node(SHORT, chunks, large, b"HTTP/1.1 204 No Content\r\n\r\n", go_on + SHORT, large, SHORT)
    async with asking(node) as opened:
        answers = [await ask(opened) for _ in range(7)]
    assert [one.body for one in answers] == [b"hi", b"abcde", LARGE, b"", b"hi", LARGE, b"hi"]
    assert answers[0].headers == [("X-Name", "v"), ("Content-Length", "2")] == answers[4].headers
    assert [one.status for one in answers] == [200, 200, 200, 204, 200, 200, 200]
    assert node.opened == 1


async def test_a_connection_that_the_node_closes_is_not_used_again() -> None:
    node = Node(OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi", SHORT, SHORT, b"", SHORT)
    async with asking(node) as opened:
        assert (await ask(opened)).body == b"hi"
        assert [(await ask(opened)).body for _ in range(2)] == [b"hi", b"hi"]
        assert node.opened == 2
        with pytest.raises(ConnectionResetError):
            await ask(opened)
        assert (await ask(opened)).body == b"hi"
    assert node.opened == 3


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(SHORT, SHORT)
    async with asking(node) as opened:
        await ask(opened)
        monkeypatch.setattr(connections, "_IDLE", 0.0)
        await ask(opened)
    assert node.opened == 2


async def test_an_answer_to_head_has_no_body() -> None:
    node = Node(OK + b"Content-Length: 200\r\n\r\n", SHORT)
    async with asking(node) as opened:
        assert (await ask(opened, is_head=True)).body == b""
        assert (await ask(opened)).body == b"hi"
    assert node.opened == 2


@pytest.mark.parametrize("largest", [10, len(LARGE) - 1])
async def test_an_answer_that_is_too_large_is_not_read_to_its_end(largest: int) -> None:
    node = Node(OK + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE, SHORT)
    async with asking(node) as opened:
        assert (await ask(opened, largest=largest)).body is None
        assert (await ask(opened)).body == b"hi"
    assert node.opened == 2


@pytest.mark.parametrize("answer", [b"no HTTP\r\n\r\n", SHORT + SHORT, OK + b"Content-Length: -1\r\n\r\n"])
async def test_nonsense_is_an_error_and_costs_only_its_connection(answer: bytes) -> None:
    node = Node(answer, SHORT, SHORT)
    async with asking(node) as opened:
        with suppress(OSError):
            await ask(opened)
        assert (await ask(opened)).body == b"hi"
    assert node.opened == 2


async def test_large_requests_arrive_whole() -> None:
    body = bytes(range(256)) * 2**14
    node = Node(SHORT, SHORT)
    async with asking(node) as opened:
        await ask(opened, body)
        await ask(opened, b"{}")
    assert node.requests == [body, b"{}"]
    assert node.opened == 1


async def test_a_request_that_is_given_up_leaves_no_connection_that_others_might_use() -> None:
    node = Node(None, SHORT)
    async with asking(node) as opened:
        asked = asyncio.create_task(ask(opened))
        async with asyncio.timeout(60):
            await node.asked.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        async with asyncio.timeout(60):
            await node.closed.wait()
        assert (await ask(opened)).body == b"hi"


async def test_only_so_many_connections_are_open_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST", 2)
    node = Node(*[SHORT] * 10)
    async with asking(node) as opened:
        answers = await asyncio.gather(*(ask(opened) for _ in range(10)))
    assert [one.body for one in answers] == [b"hi"] * 10
    assert node.opened == 2


async def test_a_connection_on_which_a_request_is_not_sent_to_its_end_is_not_used_again() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
    node = Node(SHORT, early=refusal)
    async with asking(node) as opened:
        refused = await ask(opened, bytes(2**26))
        assert (refused.status, refused.body) == (413, b"no")
        assert (await ask(opened)).body == b"hi"
    assert node.opened == 2


async def test_what_comes_behind_an_answer_changes_nothing_of_it() -> None:
    other = b"HTTP/1.1 404 Not Found\r\nX-Other: o\r\nContent-Length: 5\r\n\r\nother"
    node = Node(SHORT + other, SHORT)
    async with asking(node) as opened:
        answer = await ask(opened)
        assert (answer.status, answer.body) == (200, b"hi")
        assert [name for name, _ in answer.headers] == ["X-Name", "Content-Length"]
        assert (await ask(opened)).body == b"hi"
    assert node.opened == 2


async def test_idle_connections_keep_nothing_of_large_answers() -> None:
    large = OK + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE
    node = Node(*[large] * 8)
    async with asking(node) as opened:
        tracemalloc.start()
        try:
            answers = await asyncio.gather(*(ask(opened) for _ in range(8)))
            sizes = [len(one.body or b"") for one in answers]
            del answers
            await asyncio.sleep(0)  # the loop holds what woke this task
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sizes == [len(LARGE)] * 8
    assert node.opened == 8
    assert kept < 2 * len(LARGE)
