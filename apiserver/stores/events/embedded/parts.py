"""The parts of an open embedded store, and how they are used in threads."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

from apiserver.common.off_loop import in_thread
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.embedded.commit import GroupCommit
from apiserver.stores.events.embedded.database import Database
from apiserver.stores.events.embedded.kept_curves import KeptCurves
from apiserver.stores.events.embedded.log_numbers import BlockEnds
from apiserver.stores.events.embedded.merge import Merger
from apiserver.stores.events.embedded.unmerged import Unmerged

Result = TypeVar("Result")


@dataclass(slots=True)
class Parts:
    """The parts of an open store."""

    unmerged: Unmerged
    database: Database
    curves: KeptCurves
    block_ends: BlockEnds
    merger: Merger
    readers: ThreadPoolExecutor
    changer: ThreadPoolExecutor
    """For deletes and merges. They wait for one another, and reads must not wait for them."""
    writer: ThreadPoolExecutor
    commit: GroupCommit | None


async def run_in(threads: ThreadPoolExecutor, run: Callable[[], Result]) -> Result:
    """What `run` returns in one of the threads. EventStoreBusy: the database, or its disk, failed."""
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, in_thread(run))
    except (sqlite3.Error, OSError) as error:
        raise unavailable(error) from error


def unavailable(error: Exception) -> EventStoreBusy:
    """What to tell whoever asked."""
    return EventStoreBusy(f"the events database failed: {error}", overloaded=False)
