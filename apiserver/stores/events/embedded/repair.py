"""Mends an events folder that no server uses, as far as that costs nothing that anybody can still read.

Whatever is taken out of the database or the journal is kept as files in `damaged/`, in a folder for each repair.
A loss of power takes nothing: what is taken out is on the disk in these files before it is gone elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from apiserver.common.sizes import counted
from apiserver.events.model import EventType
from apiserver.events.queries import GREATEST, LEAST
from apiserver.stores.events.codec import chunks, pieces, stats
from apiserver.stores.events.codec import lines as codec
from apiserver.stores.events.codec.checked import Damaged, Kind, Place, unwrap, wrap
from apiserver.stores.events.codec.points import Points
from apiserver.stores.events.embedded import journal, tail
from apiserver.stores.events.embedded.checking import SAME
from apiserver.stores.events.embedded.journal_gaps import contents_of
from apiserver.stores.events.embedded.names import CODES
from apiserver.stores.inspection import Finding
from apiserver.stores.syncing import sync_folder, write_synced

#: What an owner is named whose name is lost.
_LOST = "lost-owner"


class Repair:
    """One repair of a folder."""

    def __init__(self, folder: Path, kept: Path) -> None:
        """`kept`: the folder for what is taken out; it is made when something is."""
        self._folder = folder
        self._kept = kept
        self._conn: sqlite3.Connection | None = None
        self._series: set[int] = set()
        """Series whose points have changed."""
        self._logs: set[int] = set()
        """Owners whose log lines have changed."""

    def run(self, findings: Collection[Finding]) -> list[str]:
        """Mend these; return what was done, in a line each. If that fails, the database is as it was."""
        done = []
        for path in {one.place for one in findings if one.kind.endswith("-journal")}:
            done.append(self._journal(self._folder / path))
        in_database = [one for one in findings if one.kind in self._mends()]
        if in_database:
            with closing(sqlite3.connect(self._folder / "events.db", isolation_level=None)) as conn:
                self._conn = conn
                conn.execute("BEGIN IMMEDIATE")
                try:
                    for finding in in_database:
                        self._mends()[finding.kind](finding.place)
                        done.append(f"{finding.thing}: mended")
                    self._make_known_again()
                    self._sync_kept()
                    conn.execute("COMMIT")
                except BaseException:
                    conn.execute("ROLLBACK")
                    raise
        return done

    def _mends(self) -> dict[str, Callable[[str], None]]:
        return {
            "damaged-chunk": self._set_chunk_aside,
            "damaged-details": self._make_times,
            "damaged-sums": self._make_sums,
            "damaged-page": self._set_page_aside,
            "missing-page": self._set_page_aside,
            "miscounted-page": self._count_page,
            "damaged-log": self._set_block_aside,
            "damaged-sample": self._set_sample_aside,
            "missing-samples": self._forget_samples,
            "lost-rows": self._find_owners,
            "lost-content": self._set_content_aside,
            "damaged-index": self._make_indexes,
        }

    @property
    def _db(self) -> sqlite3.Connection:
        assert self._conn is not None
        return self._conn

    def _keep(self, name: str, content: bytes | None) -> None:
        self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_synced(self._kept / name, content or b"")

    def _sync_kept(self) -> None:
        """Make the names of the kept files durable, and those of the two folders that were made for them."""
        if self._kept.exists():
            for folder in (self._kept, *self._kept.parents[:2]):
                sync_folder(folder)

    # --- the journal -------------------------------------------------------------------------------

    def _journal(self, path: Path) -> str:
        """Write a segment anew with its whole records. The file as it was is kept."""
        content = memoryview(path.read_bytes())
        contents = contents_of(content)
        self._keep(path.name, bytes(content))
        self._sync_kept()
        fresh = path.with_suffix(".new")
        write_synced(fresh, journal.MAGIC + b"".join([bytes(content[start:stop]) for start, stop in contents.records]))
        fresh.replace(path)
        sync_folder(path.parent)
        return f"{path.name} was written anew, with {counted(len(contents.records), 'whole batches')}"

    # --- points ------------------------------------------------------------------------------------

    def _chunk(self, id: str) -> dict[str, Any]:
        query = (
            "SELECT series, count, shift, sealed, stats, blocks, c.body AS curve, d.body AS details"
            " FROM chunk_index AS i LEFT JOIN chunk_curves AS c ON c.id = i.id"
            " LEFT JOIN chunk_details AS d ON d.id = i.id WHERE i.id = ?"
        )
        cursor = self._db.execute(query, (int(id),))
        row = dict(zip((name for name, *_ in cursor.description), cursor.fetchone(), strict=True))
        self._series.add(row["series"])
        return row

    def _set_chunk_aside(self, id: str) -> None:
        row = self._chunk(id)
        for name in ("curve", "details", "stats", "blocks"):
            self._keep(f"chunk-{id}-{name}", row[name])
        for table in ("chunk_index", "chunk_curves", "chunk_details"):
            self._db.execute(f"DELETE FROM {table} WHERE id = ?", (int(id),))

    def _make_times(self, id: str) -> None:
        """Make the times of a chunk anew, between those of its first and its last point, which its stats have."""
        row, place = self._chunk(id), Place(Kind.CHUNK, int(id))
        self._keep(f"chunk-{id}-details", row["details"])
        curve = chunks.decode_curve(row["count"], row["curve"], LEAST, GREATEST)
        try:
            known = stats.stored([unwrap(row["stats"])])[0]
            first, last = int(known["first_time"]), int(known["last_time"])
        except (Damaged, IndexError):
            first = last = 0
        times = np.linspace(first, last, len(curve.iters)).astype(np.int64)
        columns = times, np.zeros(len(times), np.int64), times
        details = wrap(chunks.encode_details(*columns, sealed=bool(row["sealed"])), place)
        self._db.execute("REPLACE INTO chunk_details VALUES (?, ?)", (int(id), details))
        self._write_sums(id, row, Points(*curve, *columns))

    def _make_sums(self, id: str) -> None:
        row = self._chunk(id)
        self._write_sums(id, row, chunks.decode_points(row["count"], row["curve"], row["details"]))

    def _write_sums(self, id: str, row: dict[str, Any], points: Points) -> None:
        place, start = Place(Kind.CHUNK, int(id)), np.zeros(1, np.intp)
        (blocks,) = pieces.blocks_of(points.iters, points.values, start, [row["shift"]])
        encoded = pieces.encode_blocks(blocks) if row["sealed"] else blocks.tobytes()
        sums = wrap(stats.of_points(points).tobytes(), place), wrap(encoded, place)
        self._db.execute("UPDATE chunk_index SET stats = ?, blocks = ? WHERE id = ?", (*sums, int(id)))

    def _set_page_aside(self, id: str) -> None:
        """Forget the runs of a page."""
        page = int(id)
        for row in self._db.execute("SELECT lengths, curve, details FROM tail_pages WHERE id = ?", (page,)).fetchall():
            for name, content in zip(("lengths", "curve", "details"), row, strict=True):
                self._keep(f"page-{id}-{name}", content)
        for series, runs in self._db.execute("SELECT series, runs FROM scalars WHERE length(runs) > 0").fetchall():
            left = tail.without_page(runs, page)
            if left != runs:
                self._series.add(series)
                self._db.execute("UPDATE scalars SET runs = ? WHERE series = ?", (left, series))
        self._db.execute("DELETE FROM tail_pages WHERE id = ?", (page,))

    def _count_page(self, id: str) -> None:
        rows = self._db.execute("SELECT runs FROM scalars WHERE length(runs) > 0")
        live = sum(int((tail.pages_of([runs]) == int(id)).sum()) for (runs,) in rows)
        self._db.execute("UPDATE tail_pages SET live = ? WHERE id = ?", (live, int(id)))
        if not live:
            self._set_page_aside(id)

    # --- log lines and samples ---------------------------------------------------------------------

    def _set_block_aside(self, id: str) -> None:
        ((owner, body),) = self._db.execute("SELECT owner, body FROM log_blocks WHERE id = ?", (int(id),)).fetchall()
        self._keep(f"log-{id}", body)
        self._db.execute("DELETE FROM log_blocks WHERE id = ?", (int(id),))
        self._logs.add(owner)

    def _set_sample_aside(self, id: str) -> None:
        self._set_content_aside(f"sample_documents/{id}")
        self._forget_samples("")

    def _forget_samples(self, place: str) -> None:
        self._db.execute("DELETE FROM samples WHERE document NOT IN (SELECT id FROM sample_documents)")
        others = f"{CODES[EventType.SCALAR]}, {CODES[EventType.LOG]}"
        none = f"type NOT IN ({others}) AND id NOT IN (SELECT series FROM samples)"
        self._db.execute(f"DELETE FROM series WHERE {none}")

    # --- rows --------------------------------------------------------------------------------------

    def _find_owners(self, place: str) -> None:
        """Make owners for rows whose owners are not there, so that they can be seen."""
        table = place.partition(".")[0]
        missing = self._db.execute(f"SELECT DISTINCT owner FROM {table} WHERE owner NOT IN (SELECT id FROM owners)")
        for (owner,) in missing.fetchall():
            row = (owner, _LOST, f"{_LOST}-{owner}")
            self._db.execute("INSERT INTO owners (id, company, name, is_model) VALUES (?, ?, ?, 0)", row)

    def _set_content_aside(self, place: str) -> None:
        """Keep contents that no row names, and delete them; a place is a table, and perhaps an id in it."""
        table, _, id = place.partition("/")
        wanted = f"id = {int(id)}" if id else f"id NOT IN ({_NAMED[table]})"
        for number, body in self._db.execute(f"SELECT id, body FROM {table} WHERE {wanted}").fetchall():
            self._keep(f"{table}-{number}", body)
        self._db.execute(f"DELETE FROM {table} WHERE {wanted}")

    def _make_indexes(self, place: str) -> None:
        self._db.execute("REINDEX")

    # --- what rows say of others -------------------------------------------------------------------

    def _make_known_again(self) -> None:
        for series in sorted(self._series):
            self._make_series_known(series)
        for owner in sorted(self._logs):
            self._make_lines_known(owner)

    def _make_series_known(self, series: int) -> None:
        """Write what a series has in all; delete it if it has nothing any more."""
        ends = self._db.execute("SELECT last, stats FROM chunk_index WHERE series = ?", (series,)).fetchall()
        for (runs,) in self._db.execute("SELECT runs FROM scalars WHERE series = ?", (series,)).fetchall():
            points = tail.read(self._db, runs)
            of_chunks = stats.fold(stats.stored(unwrap(row) for _, row in ends)) if ends else stats.EMPTY
            row = stats.combine(of_chunks, stats.of_points(points))
            if not row["count"][0]:
                for table, column in (("scalars", "series"), ("series", "id")):
                    self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (series,))
                continue
            known = (max((last for last, _ in ends), default=None), len(points.iters), row.tobytes(), series)
            self._db.execute("UPDATE scalars SET chunk_end = ?, tail = ?, stats = ? WHERE series = ?", known)

    def _make_lines_known(self, owner: int) -> None:
        """Count the lines of each series of an owner."""
        of_log = "SELECT id FROM series WHERE owner = ? AND type = ?"
        key = (owner, CODES[EventType.LOG])
        lines = dict.fromkeys((id for (id,) in self._db.execute(of_log, key)), 0)
        for (body,) in self._db.execute("SELECT body FROM log_blocks WHERE owner = ?", (owner,)):
            names = codec.decode(body, SAME).names
            for id, count in zip(names.table, np.bincount(names.places, minlength=len(names.table)), strict=True):
                lines[id] = lines.get(id, 0) + int(count)
        for id, count in lines.items():
            if count:
                self._db.execute("REPLACE INTO log_series VALUES (?, ?)", (id, count))
            else:
                self._db.execute("DELETE FROM log_series WHERE series = ?", (id,))
                self._db.execute(f"DELETE FROM series WHERE id = ? AND id IN ({of_log})", (id, *key))


#: What names the rows of the tables of contents.
_NAMED = {
    "chunk_curves": "SELECT id FROM chunk_index",
    "chunk_details": "SELECT id FROM chunk_index",
    "sample_documents": "SELECT document FROM samples",
}
