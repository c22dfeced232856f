"""Runs `apiserver backup` for a server, in a process of its own.

A process that serves must not read its own databases in this way (`stores/sqlite_pages.py` says why), and would answer
slowly meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

from apiserver.operating.backup.storage import TELLS
from apiserver.settings.settings import ENVIRONMENT_PREFIX, Settings
from apiserver.stores.locks import lock_if_free

#: The settings that the command gets by its environment, which other users of the machine cannot see.
_PASSED = (
    *("backup_key", "backup_check_every", "backup_work"),
    *("events", "events_password", "events_api_key", "documents", "documents_password"),
)


class Ended(NamedTuple):
    """How the command ended."""

    is_well: bool
    said: str
    """The output of the command, in a line."""
    why: str
    """Why it failed, if it did."""
    told: str
    """The failure in words that anybody may read; empty: nothing is told."""


def turn(settings: Settings, what: str) -> AbstractContextManager[bool]:
    """Whether this process may do the work inside the block: no other one on the data folder does it at the same time.

    Several workers, and servers on engines, may share a data folder.
    """
    return lock_if_free(settings.data / f".{what}.lock")


async def run(settings: Settings, *flags: str, ending: float) -> Ended:
    """Run the command on the folders and engines of the settings. OSError: no process can be started.

    `ending`: seconds to wait for the process if the server stops, which kills it.
    """
    options = ["--data", str(settings.data), "--tell"]
    variables = {name.upper(): str(getattr(settings, name)) for name in _PASSED}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "apiserver", "backup", settings.backup_to, *options, *flags),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **{f"{ENVIRONMENT_PREFIX}{name}": value for name, value in variables.items() if value}},
    )
    try:
        said, errors = await process.communicate()
    except BaseException:  # the server stops; the next start goes on
        process.kill()
        with suppress(TimeoutError):  # a destination that hangs may hold the process
            await asyncio.wait_for(process.wait(), ending)
        raise
    # Lines about the work come first, then the error. A process that was killed says no error.
    lines = errors.decode(errors="replace").splitlines() if process.returncode == 1 else []
    why = lines[-1].removeprefix("apiserver: ") if lines else f"it ended with {process.returncode}"
    told = [line.removeprefix(TELLS) for line in lines if line.startswith(TELLS)]
    printed = "; ".join(said.decode(errors="replace").splitlines())
    return Ended(process.returncode == 0, printed, why, told[-1] if told else "" if lines else why)
