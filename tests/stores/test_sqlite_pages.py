"""Pages of an SQLite file, read while another process writes, checkpoints, truncates its log, and is killed."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from apiserver.stores.snapshots import SnapshotError
from apiserver.stores.sqlite_pages import Pages
from tests.harness import wait_until

COPIES = int(os.environ.get("EVENTS_KILLS", "2")) * 5

_WRITER = """
import os, random, sqlite3, sys
dice = random.Random(sys.argv[2])
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for pragma in ("auto_vacuum = incremental", "journal_mode = wal", "wal_autocheckpoint = 0", "busy_timeout = 5"):
    connection.execute(f"pragma {pragma}")
connection.execute("create table if not exists rows (id integer primary key, body blob)")
while True:
    connection.execute("begin immediate")
    for _ in range(dice.randrange(1, 60)):
        connection.execute("replace into rows values (?, ?)", (dice.randrange(3000), os.urandom(dice.randrange(3000))))
    if dice.random() < 0.3:
        first = dice.randrange(3000)
        connection.execute("delete from rows where id between ? and ?", (first, first + 900))
    connection.execute("commit")
    for pragma in ("wal_checkpoint(passive)", "wal_checkpoint(truncate)", "incremental_vacuum(100)"):
        if dice.random() < 0.15:
            connection.executescript(f"pragma {pragma}")
"""


@contextmanager
def writing(path: Path, dice: random.Random) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes to the file without a pause, until it is killed."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path), str(dice.random())])
    try:
        wait_until(lambda: path.with_name(f"{path.name}-shm").exists() and has_rows(path))
        yield writer
    finally:
        writer.kill()
        writer.wait()


def has_rows(path: Path) -> bool:
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        try:
            return bool(connection.execute("SELECT count(*) FROM rows").fetchone()[0])
        except sqlite3.OperationalError:
            return False


def copied(pages: Pages, target: Path) -> list[tuple[int, bytes]]:
    """The rows of a copy of all pages, which SQLite finds well."""
    for name in (target.name, f"{target.name}-wal", f"{target.name}-shm"):
        target.with_name(name).unlink(missing_ok=True)
    target.write_bytes(b"".join(pages.read(start, 16384) for start in range(0, pages.size, 16384)))
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT * FROM rows").fetchall()


@pytest.mark.test
def test_a_copy_is_what_a_read_sees_while_another_process_writes(tmp_path: Path, dice: random.Random) -> None:
    path = tmp_path / "rows.db"
    for _ in range(COPIES // 5):
        with writing(path, dice) as writer:
            for number in range(5):
                with closing(Pages(path)) as pages:
                    pages.begin()
                    seen = pages.connection.execute("SELECT * FROM rows").fetchall()
                    if number == 3:
                        writer.kill()
                    assert copied(pages, tmp_path / "copy.db") == seen


@pytest.mark.test
def test_a_log_that_was_copied_as_a_whole_may_begin_anew_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)")
        writer.executemany("INSERT INTO rows VALUES (?, ?)", [(n, bytes(1000)) for n in range(500)])
        writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        # Pages are read by another process than the writer's.
        script = (
            "import sys; from pathlib import Path; from apiserver.stores.sqlite_pages import Pages\n"
            "pages = Pages(Path(sys.argv[1])); pages.begin(); print(pages.holds(), flush=True); input()\n"
            "content = b''.join(pages.read(at, 16384) for at in range(0, pages.size, 16384))\n"
            "Path(sys.argv[2]).write_bytes(content); print(pages.holds(), flush=True)"
        )
        command = [sys.executable, "-c", script, str(path), str(tmp_path / "copy.db")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            assert reader.stdout.readline() == "True\n"
            writer.execute("UPDATE rows SET body = ?", (b"\x01" * 1000,))
            writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            reader.stdin.write("\n")
            reader.stdin.flush()
            assert reader.stdout.readline() == "False\n"
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT DISTINCT body FROM rows").fetchall() == [(bytes(1000),)]


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="unable to open"):
        Pages(tmp_path / "missing.db")
    (tmp_path / "other.db").write_bytes(b"text" * 1000)
    with pytest.raises(SnapshotError, match="not a database"):
        Pages(tmp_path / "other.db")
