"""Jobs that are done again and again."""

from __future__ import annotations

import asyncio
import logging

import pytest

from apiserver.common.repeating import Repeating
from tests.harness import PATIENCE

pytestmark = pytest.mark.anyio


class Job:
    """Counts how often it was done, and fails as it is told."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.done = 0
        self.was_done = asyncio.Event()

    async def __call__(self) -> None:
        self.done += 1
        self.was_done.set()
        if self.errors and (error := self.errors.pop(0)):
            raise error

    async def times(self, count: int) -> None:
        """Return when it was done so often."""
        while self.done < count:
            self.was_done.clear()
            await self.was_done.wait()


async def test_a_job_is_done_at_once_and_whenever_it_is_woken() -> None:
    job = Job()
    repeating = Repeating("counting", job, 1000, expected=())
    repeating.start()
    await job.times(1)
    repeating.wake()
    await job.times(2)
    await repeating.close()
    await repeating.close()
    repeating.wake()
    await asyncio.sleep(0)
    assert job.done == 2


async def test_a_job_is_done_when_its_time_has_come() -> None:
    job = Job()
    repeating = Repeating("counting", job, 0.001, expected=(), at_once=False)
    repeating.start()
    await job.times(3)
    await repeating.close()


async def test_a_job_that_fails_is_logged_and_done_again(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(OSError("the disk is away"), ValueError("a fault"))
    repeating = Repeating("counting", job, 0, expected=(OSError,))
    with caplog.at_level(logging.WARNING):
        repeating.start()
        await job.times(3)
    await repeating.close()
    told = [(record.getMessage(), record.exc_info is not None) for record in caplog.records]
    assert told == [("counting waits: the disk is away", False), ("counting failed", True)]


async def test_closing_ends_a_job_in_the_middle() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def job() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    repeating = Repeating("waiting", job, 1000, expected=())
    repeating.start()
    await began.wait()
    await repeating.close()
    assert ended.is_set()


async def test_closing_ends_a_job_whose_end_fails() -> None:
    """A job gives back what it has at a store that is away."""
    began = asyncio.Event()

    async def job() -> None:
        is_first = not began.is_set()
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            if is_first:
                raise OSError("the store is away")

    repeating = Repeating("waiting", job, 0, expected=(OSError,))
    repeating.start()
    await began.wait()
    async with asyncio.timeout(PATIENCE):
        await repeating.close()
