"""Jobs that the server does again and again for as long as it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

log = logging.getLogger(__name__)


class Repeating:
    """A job that is done every `seconds`, and at once after `wake`.

    A job that fails is logged and done again later. Errors that are `expected`, such as those of a store that is away
    for a while, are logged in one line. `name` says what waits then: "deleting files".
    """

    def __init__(
        self, name: str, job: Callable[[], Awaitable[None]], seconds: float, *, expected: tuple[type[Exception], ...]
    ) -> None:
        self.seconds = seconds
        self._name = name
        self._job = job
        self._expected = expected
        self._is_due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, *, at_once: bool = True) -> None:
        """From now on, do the job when it is due: `at_once`, or after the first `seconds`."""
        if at_once:
            self.wake()
        self._task = asyncio.create_task(self._repeat(), name=self._name)

    def wake(self) -> None:
        """The job is due at once."""
        self._is_due.set()

    async def close(self) -> None:
        """End the job, also in the middle, and do it no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _repeat(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.seconds):
                    await self._is_due.wait()
            self._is_due.clear()
            try:
                await self._job()
            except self._expected as error:
                log.warning("%s waits: %s", self._name, error)
            except Exception:
                log.exception("%s failed", self._name)
