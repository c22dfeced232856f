"""Brings an SQLite file up to date by numbered steps. `PRAGMA user_version` is the number of the last one it has.

A step is a file NNNN_name.sql in the folder of its kind of files, `migrations/sqlite/<kind>`. Each is a transaction of
its own, with its number, so a process that is killed leaves a file with whole steps, and the next one goes on.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path


class NewerSchema(Exception):
    """The file has more steps than this release knows; the message says how many."""


def bring_up_to_date(connection: sqlite3.Connection, folder: Path) -> None:
    """Take the steps in the folder that the file lacks. NewerSchema: nothing was changed."""
    steps = {int(step.name[:4]): step for step in folder.glob("*.sql")}
    (taken,) = connection.execute("PRAGMA user_version").fetchone()
    if taken > max(steps):
        raise NewerSchema(f"has schema {taken}, made by a newer version; this one knows up to {max(steps)}")
    for number in range(taken + 1, max(steps) + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE; {steps[number].read_text('utf-8')}; PRAGMA user_version = {number}; COMMIT"
        )
