"""A limit: the same points as rows in SQLite, one row for each point. Many servers of this kind store them so."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.columns import MERGE_POINTS, Load, batches, parts

Row = tuple[int, int, int, float]


def write(path: Path, load: Load) -> tuple[float, float]:
    """Write the points of a load. Returns CPU nanoseconds a point, and bytes a point."""
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA page_size = 8192")
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("PRAGMA synchronous = NORMAL")
    conn.execute(
        "CREATE TABLE points (series INTEGER, iter INTEGER, timestamp INTEGER, value REAL, PRIMARY KEY (series, iter))"
        " WITHOUT ROWID"
    )
    used = 0.0
    for part in parts(batches(load), MERGE_POINTS // load.batch):
        start = time.process_time()
        for batch in part:
            conn.execute("BEGIN")
            for group in batch.scalars:
                rows = _rows(
                    int(group.variant[1:]), group.iters.tolist(), group.timestamps.tolist(), group.values.tolist()
                )
                conn.executemany("REPLACE INTO points VALUES (?, ?, ?, ?)", rows)
            conn.execute("COMMIT")
        used += time.process_time() - start
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()
    return used / load.points * 1e9, path.stat().st_size / load.points


def _rows(series: int, iters: list[int], timestamps: list[int], values: list[float]) -> Iterator[Row]:
    return ((series, *row) for row in zip(iters, timestamps, values, strict=True))


def histogram(path: Path, interval: int) -> None:
    """Read the buckets of every series."""
    conn = sqlite3.connect(path)
    conn.execute("SELECT series, iter / ?, count(*), avg(value) FROM points GROUP BY 1, 2", (interval,)).fetchall()
    conn.close()


def write_lines(path: Path, lines: Iterator[tuple[int, str]]) -> float:
    """Write log lines as rows. Returns bytes a line."""
    conn = sqlite3.connect(path)
    conn.execute("CREATE TABLE lines (task TEXT, timestamp INTEGER, level TEXT, worker TEXT, msg TEXT)")
    conn.execute("CREATE INDEX by_time ON lines (task, timestamp)")
    task = "0" * 32
    conn.executemany(
        "INSERT INTO lines VALUES (?, ?, 'info', 'worker', ?)", ((task, time, text) for time, text in lines)
    )
    conn.commit()
    count = conn.execute("SELECT count(*) FROM lines").fetchone()[0]
    conn.close()
    return path.stat().st_size / float(count)
