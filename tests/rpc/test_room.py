"""Answers that read much: they are refused, or wait for room."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.common import answers
from apiserver.common.answers import AnswerBounds
from apiserver.rpc.admission import Admission
from apiserver.rpc.call import Call, Streamed
from tests.rpc.apps import client, meta, single

pytestmark = pytest.mark.anyio

Handler = Callable[[Call[Any], dict[str, Any]], Awaitable[dict[str, Any]]]


def reads_all(is_read: asyncio.Event, may_end: asyncio.Event) -> Handler:
    """A handler that reads as much as there is room for, and ends when it may."""

    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        answers.hold(answers.LARGEST)
        is_read.set()
        await may_end.wait()
        return {}

    return handler


async def test_an_answer_that_reads_too_much_is_refused(tmp_path: Path) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        answers.hold(answers.LARGEST)
        answers.hold(1)
        return {}

    async with client(single(tmp_path, handler, reads=True)) as api:
        response = await api.post("/one.call", json={})
    assert response.status_code == 400
    assert "more than 64 MB: ask for less at once" in meta(response)["result_msg"]


async def test_who_finds_no_room_reads_again_when_there_is_some(tmp_path: Path) -> None:
    first_is_read, first_may_end, second_has_read = asyncio.Event(), asyncio.Event(), asyncio.Event()
    read: list[str] = []

    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        read.append(request.pop("who"))  # a handler may use up what it is given
        call.response_headers.append(("read", read[-1]))
        (second_has_read if read[-1] == "second" else first_is_read).set()
        answers.hold(answers.LARGEST // 2 + 1)
        if read[-1] == "first":
            await first_may_end.wait()
        return {}

    async with client(single(tmp_path, handler, reads=True)) as api:
        first = asyncio.create_task(api.post("/one.call", json={"who": "first"}))
        await first_is_read.wait()
        second = asyncio.create_task(api.post("/one.call", json={"who": "second"}))
        await second_has_read.wait()
        await asyncio.sleep(0)
        assert not second.done()
        first_may_end.set()
        for response in (await first, await second):
            assert response.status_code == 200
            assert len(response.headers.get_list("read")) == 1
    assert read == ["first", "second", "second"]


async def test_a_stream_that_finds_no_room_begins_anew(tmp_path: Path) -> None:
    first_is_read, first_may_end, second_has_read = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(call: Call[Any], request: dict[str, Any]) -> Streamed:
        async def lines() -> AsyncGenerator[bytes, None]:
            (second_has_read if first_is_read.is_set() else first_is_read).set()
            answers.hold(answers.LARGEST)
            await first_may_end.wait()
            yield b"line"

        return Streamed(lines(), "text/plain")

    async with client(single(tmp_path, handler, reads=True)) as api:
        first = asyncio.create_task(api.post("/one.call", json={}))
        await first_is_read.wait()
        second = asyncio.create_task(api.post("/one.call", json={}))
        await second_has_read.wait()
        first_may_end.set()
        assert [(await one).text for one in (first, second)] == ["line", "line"]


async def test_who_waits_for_room_holds_nothing(tmp_path: Path) -> None:
    class Page:
        """What was read; unlike a list, it can be seen when it goes."""

    first_is_read, first_may_end, page_is_gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
    read_all = reads_all(first_is_read, first_may_end)

    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        page = Page()
        weakref.finalize(page, page_is_gone.set)
        return await read_all(call, request)

    async with client(single(tmp_path, handler, reads=True)) as api:
        first = asyncio.create_task(api.post("/one.call", json={}))
        await first_is_read.wait()
        second = asyncio.create_task(api.post("/one.call", json={}))
        await page_is_gone.wait()
        assert not second.done()
        first_may_end.set()
        for response in (await first, await second):
            assert response.status_code == 200


async def test_who_finds_no_room_for_long_is_to_come_back(tmp_path: Path) -> None:
    admission = Admission(bounds=AnswerBounds(patience_seconds=0.01))
    first_is_read, first_may_end = asyncio.Event(), asyncio.Event()

    handler = reads_all(first_is_read, first_may_end)

    async with client(single(tmp_path, handler, reads=True, admission=admission)) as api:
        first = asyncio.create_task(api.post("/one.call", json={}))
        await first_is_read.wait()
        refused = await api.post("/one.call", json={})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        first_may_end.set()
        assert (await first).status_code == 200
        assert (await api.post("/one.call", json={})).status_code == 200
