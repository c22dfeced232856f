"""The file: whose it is, what a failed transaction leaves, and how its trouble is told."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.stores.documents.base import DocumentStoreBusy, DocumentStoreError, DuplicateDocument, InvalidFilter
from apiserver.stores.documents.sqlite.bounds import SqliteBounds
from apiserver.stores.documents.sqlite.connections import Connections


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "documents.db"


@pytest.fixture
def connections(path: Path) -> Iterator[Connections]:
    opened = Connections(path)
    opened.open()
    with opened.write() as connection:
        connection.execute("CREATE TABLE t (x UNIQUE)")
    yield opened
    opened.close()


def rows(connections: Connections) -> list[object]:
    with connections.read() as connection:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


def test_a_file_of_a_newer_version_is_refused(connections: Connections, path: Path) -> None:
    with connections.write() as connection:
        ((newest,),) = connection.execute("PRAGMA user_version").fetchall()
        connection.execute(f"PRAGMA user_version = {newest + 1}")
    connections.close()
    said = rf"documents\.db has schema {newest + 1}, made by a newer version; this one knows up to {newest}"
    with pytest.raises(DocumentStoreError, match=said):
        Connections(path).open()


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    with pytest.raises(DocumentStoreError, match="not a file of this server"):
        Connections(tmp_path / "foreign.db").open()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database" * 1000)
    with pytest.raises(DocumentStoreError, match=r"text\.db: file is not a database"):
        Connections(tmp_path / "text.db").open()


def test_a_path_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DocumentStoreError):
        Connections(tmp_path / "file" / "documents.db").open()
    with pytest.raises(DocumentStoreError):
        Connections(tmp_path).open()


def test_what_was_committed_is_there_when_opened_again(connections: Connections, path: Path) -> None:
    with connections.write() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    connections.close()
    connections.open()
    assert rows(connections) == [1]


def test_a_failed_transaction_leaves_nothing(connections: Connections) -> None:
    with pytest.raises(ZeroDivisionError), connections.write() as connection:
        connection.execute("INSERT INTO t VALUES (?)", (1 // len(rows(connections)),))
    with pytest.raises(DuplicateDocument, match=r"^t: a document with the same x"), connections.write() as connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(2,), (2,)])
    assert rows(connections) == []
    assert connections.free


def test_readers_see_no_unfinished_transaction(connections: Connections) -> None:
    with connections.write() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert rows(connections) == []
        assert not connections.free
    assert rows(connections) == [1]


def test_writers_of_many_threads_take_turns(connections: Connections) -> None:
    def count_up() -> None:
        for _ in range(50):
            with connections.write() as connection:
                (last,) = connection.execute("SELECT ifnull(max(x), 0) FROM t").fetchone()
                connection.execute("INSERT INTO t VALUES (?)", (last + 1,))

    threads = [threading.Thread(target=count_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(connections) == list(range(1, 201))


def test_a_full_disk_is_told_as_passing(connections: Connections) -> None:
    with connections.write() as connection:
        connection.execute("PRAGMA max_page_count = 4")
    with pytest.raises(DocumentStoreBusy, match="full"), connections.write() as connection:
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
    with connections.write() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert rows(connections) == [1]


def test_a_checkpoint_moves_the_log_into_the_file(connections: Connections, path: Path) -> None:
    with connections.write() as connection:
        connection.execute("INSERT INTO t VALUES (?)", ("marker",))
    assert b"marker" not in path.read_bytes()
    connections.checkpoint()
    assert b"marker" in path.read_bytes()


def test_a_closed_file_is_told(path: Path) -> None:
    connections = Connections(path)
    connections.open()
    connections.close()
    with pytest.raises(DocumentStoreError, match="not open"), connections.read():
        pass
    with pytest.raises(DocumentStoreError, match="not open"), connections.write():
        pass


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_what_takes_too_long_is_refused(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "bounds", SqliteBounds(longest_read=0.01))
    with pytest.raises(InvalidFilter, match=r"longer than 0\.01 seconds"), connections.read() as connection:
        connection.execute(ENDLESS).fetchall()
    monkeypatch.undo()
    assert rows(connections) == []


def test_reads_inside_a_read_share_its_time(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "bounds", SqliteBounds(longest_read=0.01))

    def read_inside() -> None:
        with connections.read() as connection:
            monkeypatch.undo()
            assert rows(connections) == []
            connection.execute(ENDLESS).fetchall()

    with pytest.raises(InvalidFilter, match="longer than"):
        read_inside()
    assert rows(connections) == []


def test_who_closes_need_not_wait_for_a_long_read(connections: Connections, path: Path) -> None:
    with connections.read() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    connections.end_reads()
    with pytest.raises(DocumentStoreBusy, match="is being closed"), connections.read() as connection:
        connection.execute(ENDLESS).fetchall()
    connections.close()
    connections.open()
    assert rows(connections) == []
