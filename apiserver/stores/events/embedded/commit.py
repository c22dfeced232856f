"""Group commit: records that arrive during a journal write are written and synced together by the next one.

record 1 arrives            it is written alone
records 2, 3 and 4 arrive   they wait, as record 1 is being synced
record 1 is durable         2, 3 and 4 are written together, with one sync
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from apiserver.stores.events.embedded.records import Record


class GroupCommit:
    """Gives one group after another to `append`, which blocks, in an executor. It keeps a group whole or not at all."""

    def __init__(self, append: Callable[[Sequence[Record]], None], executor: Executor) -> None:
        self._append = append
        self._executor = executor
        self._waiting: list[tuple[Record, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def add(self, record: Record) -> None:
        """Return when the record's group is kept; raise what `append` raises."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((record, done))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await done

    async def finish(self) -> None:
        """Wait until nothing is waiting."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, self._waiting = self._waiting, []
            failure: Exception | None = None
            try:
                await loop.run_in_executor(self._executor, self._append, [record for record, _ in group])
            except Exception as error:
                failure = error
            for _, done in group:
                if done.done():  # the caller was cancelled
                    continue
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(failure)
        self._task = None
