"""Checks what rows of `events.db` say of one another: whose they are, and how many there are of what.

Rows that nobody needs are left by nothing that this server does; damage, or a change by hand, leaves them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import numpy as np

from apiserver.common.sizes import counted
from apiserver.events.model import Int64Array
from apiserver.stores.events.embedded import tail
from apiserver.stores.inspection import Finding

#: For each table, the column that names a row of another table, and that table's column.
_NAMED = (
    *(("series", "owner", "owners", "id"), ("log_blocks", "owner", "owners", "id")),
    *(("scalars", "series", "series", "id"), ("chunk_index", "series", "series", "id")),
    *(("log_series", "series", "series", "id"), ("samples", "series", "series", "id")),
)
#: The same of tables of contents.
_CONTENTS = (
    *(("chunk_curves", "id", "chunk_index", "id"), ("chunk_details", "id", "chunk_index", "id")),
    ("sample_documents", "id", "samples", "document"),
)
_OVERLAPPING = (
    "SELECT id, series FROM (SELECT id, series, first, lag(last) OVER (PARTITION BY series ORDER BY last) AS before"
    " FROM chunk_index) WHERE first <= before"
)


def findings(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Rows that name what is not there, and numbers that are wrong."""
    for table, column, other, key in _NAMED:
        if lost := _lost(conn, table, column, other, key):
            yield Finding(
                *("events", "lost-rows", f"{table}.{column}", lost),
                "nobody sees these events, as it is not known whose they are",
                "they get an owner with a made-up name, so that they can be seen" if other == "owners" else "",
            )
    for table, column, other, key in _CONTENTS:
        if lost := _lost(conn, table, column, other, key):
            yield Finding(
                *("events", "lost-content", table, lost),
                "nobody sees these events, as it is not known what they are",
                "they are taken out of the database; their bytes are kept",
            )
    missing = np.setdiff1d(
        _numbers(conn, "SELECT document FROM samples"), _numbers(conn, "SELECT id FROM sample_documents")
    )
    if len(missing):
        yield Finding(
            *("events", "missing-samples", "samples", f"no content is there of {counted(len(missing), 'samples')}"),
            "pages that would show these plots, images or vectors fail",
            "what is known of them is deleted",
        )
    for id, series in conn.execute(_OVERLAPPING):
        yield Finding(
            *("events", "overlapping-chunks", str(id), f"chunk {id} of series {series} overlaps the chunk before it"),
            "some points of the series may be shown twice",
        )
    yield from _pages(conn)


def _lost(conn: sqlite3.Connection, table: str, column: str, other: str, key: str) -> str:
    """Which values of a column are not in another table, for people; "" if all are."""
    ids = np.unique(_numbers(conn, f"SELECT {column} FROM {table}"))
    lost = np.setdiff1d(ids, _numbers(conn, f"SELECT {key} FROM {other}"))
    some = ", ".join(map(str, lost[:5].tolist()))
    return f"{other} lacks {counted(len(lost), 'rows')} that {table} names ({some})" if len(lost) else ""


def _pages(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Pages of newest points that are listed but not there, and those that are not listed as often as they say."""
    pages = np.array(conn.execute("SELECT id, live FROM tail_pages ORDER BY id").fetchall(), np.int64).reshape(-1, 2)
    listed: list[Int64Array] = []
    cursor = conn.execute("SELECT runs FROM scalars WHERE length(runs) > 0")
    while rows := cursor.fetchmany(10_000):
        listed.append(tail.pages_of([runs for (runs,) in rows]))
    ids, times = np.unique(np.concatenate([*listed, np.zeros(0, np.int64)]), return_counts=True)
    for page in np.setdiff1d(ids, pages[:, 0]).tolist():
        yield Finding(
            *("events", "missing-page", str(page), f"page {page} of newest points is not there"),
            "the newest points of some series cannot be read, and these series cannot be shown",
            "the points are forgotten, so that older ones can be read again",
        )
    here = np.searchsorted(ids, pages[:, 0])
    known = np.append(ids, -1)[here] == pages[:, 0] if len(ids) else np.zeros(len(pages), np.bool_)
    counted = np.where(known, np.append(times, 0)[here], 0)
    for page, live in pages[counted != pages[:, 1]].tolist():
        yield Finding(
            *("events", "miscounted-page", str(page), f"page {page} of newest points counts {live} series wrongly"),
            "it may be deleted too early, or never",
            "it is counted again, and nothing is lost",
        )


def _numbers(conn: sqlite3.Connection, query: str) -> Int64Array:
    """A column of numbers."""
    cursor = conn.execute(query)
    found = [np.zeros(0, np.int64)]
    while rows := cursor.fetchmany(100_000):
        found.append(np.array(rows, np.int64).reshape(-1))
    return np.concatenate(found)
