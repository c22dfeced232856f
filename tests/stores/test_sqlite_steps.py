"""An SQLite file is brought up to date by the steps that it lacks, each of which is taken as a whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from apiserver.stores.sqlite_steps import NewerSchema, bring_up_to_date


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """A folder of two steps."""
    folder = tmp_path / "steps"
    folder.mkdir()
    (folder / "0001_initial.sql").write_text("CREATE TABLE t (x);\nINSERT INTO t VALUES (1);\n")
    (folder / "0002_names.sql").write_text("-- Each has a name.\nALTER TABLE t ADD COLUMN name NOT NULL DEFAULT 'n';\n")
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "file.db", isolation_level=None)) as connection:
        yield connection


def state(file: sqlite3.Connection) -> tuple[int, list[tuple[object, ...]]]:
    """The number of the file, and its rows."""
    return file.execute("PRAGMA user_version").fetchone()[0], file.execute("SELECT * FROM t").fetchall()


def test_a_new_file_gets_all_steps_once(file: sqlite3.Connection, steps: Path) -> None:
    for _ in range(2):
        bring_up_to_date(file, steps)
        assert state(file) == (2, [(1, "n")])


def test_a_file_of_an_older_release_gets_the_steps_that_it_lacks(file: sqlite3.Connection, steps: Path) -> None:
    later = steps / "0002_names.sql"
    content = later.read_text()
    later.unlink()
    bring_up_to_date(file, steps)
    file.execute("INSERT INTO t VALUES (2)")
    later.write_text(content)
    bring_up_to_date(file, steps)
    assert state(file) == (2, [(1, "n"), (2, "n")])


def test_a_step_that_fails_leaves_nothing_and_is_taken_later(file: sqlite3.Connection, steps: Path) -> None:
    later = steps / "0002_names.sql"
    content = later.read_text()
    later.write_text("INSERT INTO t VALUES (2); INSERT INTO missing VALUES (1);")
    with pytest.raises(sqlite3.OperationalError, match="no such table: missing"):
        bring_up_to_date(file, steps)
    file.execute("ROLLBACK")  # as when the file is closed
    assert state(file) == (1, [(1,)])
    later.write_text(content)
    bring_up_to_date(file, steps)
    assert state(file) == (2, [(1, "n")])


def test_a_file_of_a_newer_release_is_refused_and_stays_as_it_is(file: sqlite3.Connection, steps: Path) -> None:
    bring_up_to_date(file, steps)
    (steps / "0002_names.sql").unlink()
    with pytest.raises(NewerSchema, match="has schema 2, made by a newer version; this one knows up to 1"):
        bring_up_to_date(file, steps)
    assert state(file) == (2, [(1, "n")])
