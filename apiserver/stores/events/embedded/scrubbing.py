"""Checks what is merged, a little at a time, beside a server: damage is found before somebody needs the data."""

from __future__ import annotations

from pathlib import Path

from apiserver.stores import sqlite_files
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.embedded.checking import PARTS
from apiserver.stores.inspection import Scrubbed

#: Rows that are checked at once, which takes some milliseconds.
ROWS = 4
_LEAST = -(2**63)
#: About how many bytes a row that is checked has at least: its pages are read, too.
_PAGE = 4096


def scrub(folder: Path, after: str) -> Scrubbed:
    """Check the rows behind a place, which is a part and an id in it, such as "1:70"; "": from the beginning.

    EventStoreError if the file cannot be read now, as when it is locked or too many files are open.
    """
    number, _, id = after.partition(":")
    part, last = int(number or 0), int(id or _LEAST)
    try:
        with sqlite_files.opened_to_read(folder / "events.db") as conn:
            size, pages = (conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count"))
            step = PARTS[part].step(conn, last, ROWS)
    except (OSError, *sqlite_files.ERRORS) as error:
        if not sqlite_files.is_damage(error):
            raise EventStoreError(f"{folder} cannot be looked at: {error}") from error
        finding = sqlite_files.unreadable("events", "events.db", PARTS[part].name, error)
        return Scrubbed(_next_part(part), 0, 1 / len(PARTS), [finding])
    place = _next_part(part) if step.last is None else f"{part}:{step.last}"
    return Scrubbed(place, step.checked, (step.bytes + _PAGE) / max(size * pages, 1), step.findings)


def _next_part(part: int) -> str:
    return f"{part + 1}:{_LEAST}" if part + 1 < len(PARTS) else ""
