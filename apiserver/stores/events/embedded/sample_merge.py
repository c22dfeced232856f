"""Merges the vectors, plots and images of one memtable: one row for each identity, and its compressed document."""

from __future__ import annotations

import sqlite3

from apiserver.stores.events.columns import compression
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.names import Registrar


def merge_samples(conn: sqlite3.Connection, table: Memtable, registrar: Registrar) -> None:
    """Write the memtable's samples to the database, in the caller's transaction."""
    for owner, hot in table.owners.items():
        for type, series in hot.samples.items():
            for name, samples in series.items():
                (id,) = registrar.series(type, [(owner, *name)])
                for sample in samples.values():
                    body = compression.compress(sample.document, checked=True)
                    _put(conn, id, sample.iter, sample.key, sample.timestamp, body)


def _put(conn: sqlite3.Connection, series: int, iter: int, key: str, timestamp: int, body: bytes) -> None:
    identity = (series, iter, key)
    row = conn.execute("SELECT document FROM samples WHERE series = ? AND iter = ? AND key = ?", identity).fetchone()
    if row is None:
        document = conn.execute("INSERT INTO sample_documents (body) VALUES (?)", (body,)).lastrowid
    else:
        document = row[0]
        conn.execute("UPDATE sample_documents SET body = ? WHERE id = ?", (body, document))
    conn.execute("REPLACE INTO samples VALUES (?, ?, ?, ?, ?)", (*identity, timestamp, document))
