"""Answers leave in one piece, in order, also when the connection closes."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.http.writes import JoinedWrites

pytestmark = pytest.mark.anyio


class Transport(asyncio.Transport):
    """Remembers what is done to it."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.closing = False

    def writelines(self, list_of_data: object) -> None:
        self.done.append(list_of_data)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True
        self.done.append("close")

    def pause_reading(self) -> None:
        self.done.append("pause")


async def test_what_is_written_in_one_turn_leaves_together() -> None:
    transport = Transport()
    joined = JoinedWrites(transport)
    joined.write(b"head")
    joined.write(b"body")
    assert transport.done == []
    await asyncio.sleep(0)
    joined.write(b"next")
    await asyncio.sleep(0)
    assert transport.done == [[b"head", b"body"], [b"next"]]


async def test_closing_writes_what_waits_first() -> None:
    transport = Transport()
    joined = JoinedWrites(transport)
    joined.write(b"all")
    joined.close()
    await asyncio.sleep(0)
    assert transport.done == [[b"all"], "close"]


async def test_nothing_is_written_to_a_connection_that_was_lost() -> None:
    transport = Transport()
    joined = JoinedWrites(transport)
    joined.write(b"too late")
    transport.closing = True
    await asyncio.sleep(0)
    assert transport.done == []


async def test_everything_else_is_the_transports_own() -> None:
    transport = Transport()
    JoinedWrites(transport).pause_reading()
    assert transport.done == ["pause"]
