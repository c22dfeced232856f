"""Work in threads: what an error takes along."""

from __future__ import annotations

import asyncio
import threading
import weakref

import pytest

from apiserver.off_loop import in_thread

pytestmark = pytest.mark.anyio


class Cursor:
    """What must not reach the event loop; unlike a real one, it can be seen when it goes."""


async def test_an_error_brings_nothing_that_its_functions_held() -> None:
    let_go_by: list[int] = []

    def holding() -> None:
        cursor = Cursor()
        weakref.finalize(cursor, lambda: let_go_by.append(threading.get_ident()))
        raise ValueError("while a cursor is held")

    def work() -> None:
        cursor = Cursor()
        weakref.finalize(cursor, lambda: let_go_by.append(threading.get_ident()))
        try:
            holding()
        except ValueError as error:
            raise KeyError("another") from error

    with pytest.raises(KeyError) as raised:
        await asyncio.to_thread(in_thread(work))
    assert len(let_go_by) == 2
    assert threading.get_ident() not in let_go_by
    assert isinstance(raised.value.__cause__, ValueError)
    assert [frame.name for frame in raised.traceback][-1] == "work"  # for the log


async def test_what_work_returns_is_returned() -> None:
    assert await asyncio.to_thread(in_thread(lambda: 7)) == 7
