"""Opens a SQLite file to look at it while another process may write it: nothing in the file is changed."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from apiserver.stores.inspection import Finding

#: Lines that SQLite's own check answers at most.
_MOST_LINES = 100
_SOUND = "ok"
#: The first bytes of a file, and where its head has what `PRAGMA user_version` tells.
_MAGIC, _USER_VERSION = b"SQLite format 3\0", slice(60, 64)
#: Heads of a write-ahead log (its page size and salts) and of a frame (page, pages of a file after a commit, salts).
LOG_HEAD, FRAME_HEAD = struct.Struct(">8xI4x8s8x"), struct.Struct(">II8s8x")
#: What reading a damaged file raises. Its texts, and SQLite's messages with names in them, may be no UTF-8.
ERRORS = (sqlite3.Error, UnicodeDecodeError)
#: SQLite's codes for pages that make no sense, files that are no databases, and tables that are missing.
_OF_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
#: And for bytes that the disk cannot read.
_OF_THE_DISK = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)


def user_version(path: Path) -> int | None:
    """What `PRAGMA user_version` would tell, read without SQLite, which would make files beside this one. OSError.

    It is in the first page. The newest one that was committed counts: it may still be in the write-ahead log. An empty
    file has 0, as for SQLite. None: the file does not begin like a database, so it is damaged, or it is none.
    """
    with open(path, "rb") as file:
        head = file.read(_USER_VERSION.stop)
    if not head:
        return 0
    if not head.startswith(_MAGIC) or len(head) < _USER_VERSION.stop:
        return None
    logged = _first_page_in_log(path.with_name(f"{path.name}-wal"), _USER_VERSION.stop)
    return int.from_bytes((logged or head)[_USER_VERSION])


def _first_page_in_log(log: Path, size: int) -> bytes | None:
    """The first bytes of page 1 as it was last committed to the log; None if the log does not have it."""
    committed = written = None
    with suppress(FileNotFoundError), open(log, "rb") as file:
        head = file.read(LOG_HEAD.size)
        if len(head) < LOG_HEAD.size:
            return None
        page_size, salts = LOG_HEAD.unpack(head)
        while len(frame := file.read(FRAME_HEAD.size)) == FRAME_HEAD.size:
            page, commit, of_frame = FRAME_HEAD.unpack(frame)
            if of_frame != salts:  # of the log before this one
                break
            if page == 1:
                written = file.read(size)
                file.seek(page_size - len(written), os.SEEK_CUR)
            else:
                file.seek(page_size, os.SEEK_CUR)
            committed = written if commit else committed
    return committed


@contextmanager
def opened_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees the file as it is now, until the block ends. Raises sqlite3.Error and OSError.

    SQLite keeps what is read together in a file `-shm` beside the database, which it makes if there is none. Where it
    may not, as on a read-only disk, and there is no log, the file is read as one that nobody changes.
    """
    path.stat()
    log = path.with_name(f"{path.name}-wal")
    try:
        connection = _connected(path, "mode=ro")
    except sqlite3.OperationalError:
        if log.exists():
            raise
        connection = _connected(path, "mode=ro&immutable=1")
    with closing(connection):
        yield connection


def _connected(path: Path, how: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.resolve()))}?{how}"
    connection = sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None, check_same_thread=False)
    connection.text_factory = _text
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # begins the transaction
    except BaseException:
        connection.close()
        raise
    return connection


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def is_damage(error: Exception) -> bool:
    """Whether an error means that the file is damaged, and not that it is locked or cannot be opened now."""
    code = getattr(error, "sqlite_errorcode", None)  # Python's own errors have none
    if code is None:
        return isinstance(error, UnicodeDecodeError)
    return code in _OF_THE_DISK or code & 0xFF in _OF_DAMAGE


def problems_of(connection: sqlite3.Connection) -> list[str]:
    """What SQLite's own check finds in the file: nothing if it is sound."""
    try:
        found = [str(line) for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_LINES})")]
    except ERRORS as error:
        return [str(error)]
    return [] if found == [_SOUND] else found


def finding_of(store: str, name: str, problems: list[str]) -> Finding:
    """What SQLite's own check found in a file."""
    more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
    thing = f"SQLite finds {name} damaged: {' '.join(problems[0].split())}{more}"
    if all("index" in line and ("missing" in line or "wrong # of entries" in line) for line in problems):
        return Finding(
            *(store, "damaged-index", name, thing),
            f"some {store} may not be found",
            "its indexes are made again from the rows, and nothing is lost",
        )
    return Finding(store, "damaged-database", name, thing, f"some {store} cannot be read: restore a backup")


def unreadable(store: str, name: str, what: str, error: Exception) -> Finding:
    """Reading some rows of a file ended with an error."""
    return Finding(
        *(store, "damaged-database", name, f"the {what} in {name} cannot be read to the end: {error}"),
        "what lies behind the damage was not checked, and may not be readable: restore a backup",
    )
