"""Jobs that the server repeats for as long as it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

log = logging.getLogger(__name__)


class Repeating:
    """A job that runs every `seconds`, and at once after `wake`. None: it runs once, and then only after `wake`.

    If the job fails, the error is logged, and the job runs again when it is due. `expected` errors, such as those of a
    store that cannot be reached, are logged in one line, which begins with `name`: "deleting files waits: …".
    """

    def __init__(
        self,
        name: str,
        job: Callable[[], Awaitable[None]],
        seconds: float | None,
        *,
        expected: tuple[type[Exception], ...],
        at_once: bool = True,
    ) -> None:
        """`at_once`: the job runs first when it is started, not only after the first `seconds`."""
        self.seconds = seconds
        self._name = name
        self._job = job
        self._expected = expected
        self._at_once = at_once
        self._is_due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to repeat the job."""
        if self._at_once:
            self.wake()
        self._task = asyncio.create_task(self._repeat(), name=self._name)

    def wake(self) -> None:
        """Run the job at once."""
        self._is_due.set()

    async def close(self) -> None:
        """Stop repeating; a job that is running is cancelled."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _repeat(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while not task.cancelling():  # what a cancelled job still does may fail, and then its error comes instead
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
