"""Reads the audit log, the newest line first."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from apiserver.operating.audit.entries import parsed
from apiserver.operating.audit.files import files_of, lines_backwards

#: A time as the log writes it, or the beginning of one; and what makes a time of a beginning.
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?)?)?)?", re.ASCII)
_REST = "0001-01-01T00:00:00.000000"


def check_time(text: str) -> None:
    """Raise ValueError if a text is no time, nor the beginning of one. `2026-11-24T15` is, `2026-13` is not."""
    begins = text.removesuffix("+00:00")
    try:
        if not _TIME.fullmatch(begins):
            raise ValueError
        datetime.fromisoformat(begins + _REST[len(begins) :])
    except ValueError:
        raise ValueError(f"'{text[:40]}' is no time in UTC, or its beginning, such as 2026-11-24T15") from None


class Wanted(NamedTuple):
    """Says which lines are wanted. A field that is None or "" leaves all lines."""

    companies: Collection[str] | None = None
    """The companies of the lines. Lines of the server itself, and of strangers, are of the company ""."""
    since: str = ""
    """A time, as the log writes it, or the beginning of one."""
    user: str = ""
    """The id or the name of a user."""
    action: str = ""
    """An action, or the beginning of several: `tasks.`."""
    before: int | None = None
    """Lines before the one of this number."""

    def has(self, said: dict[str, Any]) -> bool:
        """Whether a line is wanted."""
        return (
            (self.companies is None or said.get("company") in self.companies)
            and (not self.user or self.user in (said.get("user"), said.get("name")))
            and str(said.get("action", "")).startswith(self.action)
            and (self.before is None or said["n"] < self.before)
        )


def read(folder: Path, selection: Wanted, seconds: float = math.inf) -> Iterator[dict[str, Any]]:
    """The lines of the log in a folder that `selection` has, the newest first. A line that a crash cut is left out.

    Raises OSError; TimeoutError if reading takes longer than `seconds`.
    """
    until = time.monotonic() + seconds
    for path in reversed(files_of(folder)):
        for line in lines_backwards(path):
            said = parsed(line)
            if time.monotonic() > until:
                raise TimeoutError
            if said is None:
                continue
            if selection.since and str(said.get("time", "")) < selection.since:
                return
            if selection.has(said):
                yield said
