"""Each format has a number, and a folder with a higher one is refused before anything in it is touched."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from apiserver import __version__
from apiserver.operating.backup import manifest, pieces
from apiserver.operating.doctor.examination import CannotLook, examine
from apiserver.server.app import create_app
from apiserver.settings.settings import EMBEDDED, Settings
from apiserver.stores import formats
from apiserver.stores.data_folder import DataFolderError
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.embedded import journal
from apiserver.stores.migrations import steps_of
from apiserver.stores.sqlite_files import user_version
from tests.harness import running_api

ROOT = Path(__file__).parents[2]
NEWER = "apiserver 99.0.0"


def in_head(path: Path, number: int) -> None:
    """Give an SQLite file a number."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")


def in_journal(folder: Path, number: int) -> None:
    """Add a segment of a journal with a number."""
    (folder / "events" / "journal-0000099999.log").write_bytes(b"EVJRNL%02d" % number + b"what a newer release writes")


def in_stamp(folder: Path, name: str, number: int) -> None:
    """Note a number of a format, as a newer release would."""
    path = folder / "formats.json"
    noted = json.loads(path.read_bytes())
    path.write_text(json.dumps({"release": "99.0.0", "formats": {**noted["formats"], name: number}}))


#: By format, what a newer release would do to a data folder, and the file that is named then.
RAISED: dict[str, tuple[Callable[[Path, int], None], str]] = {
    "events": (lambda folder, number: in_head(folder / "events" / "events.db", number), "events/events.db"),
    "journal": (in_journal, "events/journal-0000099999.log"),
    "documents": (lambda folder, number: in_head(folder / "documents.db", number), "documents.db"),
    **{
        name: (lambda folder, number, name=name: in_stamp(folder, name, number), "formats.json")  # type: ignore[misc]
        for name in ("folder", "files", "secrets", "audit", "scrub")
    },
}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that a server has used."""
    folder = tmp_path_factory.mktemp("used") / "data"

    async def use() -> None:
        async with running_api(folder) as api:
            task = await api.call("tasks.create", {"name": "t", "type": "training"})
            point = {"type": "training_stats_scalar", "task": task["id"], "metric": "m", "variant": "v", "value": 5}
            await api.call("events.add", point)

    asyncio.run(use())
    return folder


@pytest.fixture
def folder(used: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(used, tmp_path / "data"))


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder: its bytes, and when it was changed."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_numbers_are_those_of_the_code() -> None:
    assert len({format.name for format in formats.ALL}) == len(formats.ALL)
    assert tuple(format for format in formats.ALL if format.name in RAISED) == formats.IN_FOLDER
    assert f"EVJRNL{formats.JOURNAL.number:02}".encode() == journal.MAGIC
    assert f"EVPIECE{formats.PIECES.number}".encode() == pieces.MAGIC
    assert formats.MANIFESTS.number == manifest.FORMAT
    for format, engine in ((formats.BLOCKS, "elasticsearch"), (formats.COLLECTIONS, "mongo")):
        assert format.number == steps_of(engine)[-1].number
    for format, kind in ((formats.EVENTS, "events"), (formats.DOCUMENTS, "documents")):
        steps = (ROOT / "migrations" / "sqlite" / kind).glob("*.sql")
        assert format.number == max(int(step.name[:4]) for step in steps)


@pytest.mark.test
@pytest.mark.parametrize("name", RAISED)
def test_a_higher_number_is_refused_and_nothing_is_touched(folder: Path, name: str) -> None:
    raise_to, named = RAISED[name]
    number = next(format.number for format in formats.ALL if format.name == name)
    raise_to(folder, number + 1)
    before = content(folder)
    with pytest.raises(DataFolderError) as refused:
        create_app(Settings(data=folder))
    assert f"'{folder / named}' has format {number + 1} of {name}" in str(refused.value)
    assert f"apiserver {__version__}, which reads up to {number}" in str(refused.value)
    assert content(folder) == before
    if named == "formats.json":
        assert f"which {NEWER} wrote" in str(refused.value)


def test_a_format_that_is_not_known_is_refused(folder: Path) -> None:
    in_stamp(folder, "holograms", 1)
    with pytest.raises(DataFolderError, match=rf"format 1 of holograms, which {NEWER} wrote.*does not know it"):
        create_app(Settings(data=folder))


@pytest.mark.check
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["serve", "--port", "0"], 1),
        (["doctor"], 2),
        (["backup", "BACKUPS"], 1),
        (["user", "list"], 1),
        (["copy", "--from", "DATA", "--to", "OTHER"], 1),
        (["copy", "--from", "OTHER", "--to", "DATA"], 1),
        (["retention"], 1),
        (["retention", "--dry-run"], 1),
    ],
)
def test_commands_refuse_it_too(folder: Path, tmp_path: Path, used: Path, command: list[str], code: int) -> None:
    in_head(folder / "documents.db", formats.DOCUMENTS.number + 1)
    shutil.copytree(used, tmp_path / "other")
    before = content(folder)
    places = {"BACKUPS": str(tmp_path / "backups"), "DATA": str(folder), "OTHER": str(tmp_path / "other")}
    given = [places.get(word, word) for word in command]
    data = [] if command[0] == "copy" else ["--data", str(folder)]
    rules = {"APISERVER_RETENTION": '[{"types": ["logs"], "keep": "1 d"}]'}
    called = [sys.executable, "-m", "apiserver", *given, *data]
    done = subprocess.run(called, capture_output=True, text=True, cwd=ROOT, env=os.environ | rules)
    assert done.returncode == code, done.stderr
    assert f"has format {formats.DOCUMENTS.number + 1} of documents" in done.stderr
    assert content(folder) == before


@pytest.mark.anyio
async def test_a_folder_without_notes_opens_and_gets_them(folder: Path) -> None:
    """As a folder that was restored, or whose disk was full."""
    (folder / "formats.json").unlink()
    async with running_api(folder) as api:
        assert (await api.call("tasks.get_all"))["tasks"]
    noted = json.loads((folder / "formats.json").read_bytes())
    assert noted == {"release": __version__, "formats": {one.name: one.number for one in formats.IN_FOLDER}}


@pytest.mark.anyio
async def test_notes_of_a_newer_release_with_the_same_formats_do_no_harm(folder: Path) -> None:
    in_stamp(folder, "files", formats.FILES.number)
    async with running_api(folder) as api:
        assert (await api.call("tasks.get_all"))["tasks"]


def test_what_notes_say_writes_nothing_to_a_terminal(folder: Path) -> None:
    path = folder / "formats.json"
    path.write_text(json.dumps({"release": "9\x1b[2J", "formats": {"\x1b]0;title\x07": 1}}))
    with pytest.raises(DataFolderError) as refused:
        formats.require(Settings(data=folder))
    assert r"has format 1 of \x1b]0;title\x07, which apiserver 9\x1b[2J wrote" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"release": "1", "formats": {"files": "many"}}'),
        '{"release": "1", "formats": {"files": 1e999}}',
        "[" * 100_000,
    ],
)
def test_notes_that_make_no_sense_are_refused(folder: Path, text: str) -> None:
    (folder / "formats.json").write_text(text)
    with pytest.raises(DataFolderError, match=r"formats\.json' cannot be read .* delete this file"):
        formats.require(Settings(data=folder))


def test_a_number_in_the_log_counts_once_it_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("PRAGMA user_version = 3")
        assert user_version(path) == 3
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA user_version = 4")
        assert path.read_bytes()[60:64] == (3).to_bytes(4)
        assert user_version(path) == 4
        connection.execute("BEGIN")
        connection.execute("PRAGMA user_version = 5")
        connection.executemany("INSERT INTO t VALUES (zeroblob(?))", [(4000,)] * 100)  # more than the cache holds
        assert (5).to_bytes(4) in path.with_name("x.db-wal").read_bytes()
        assert user_version(path) == 4
        connection.execute("COMMIT")
        assert user_version(path) == 5
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        connection.execute("INSERT INTO t VALUES (1)")  # begins the log anew
        assert user_version(path) == 5
    assert user_version(path) == 5
    (tmp_path / "y.db").write_bytes(b"no database")
    assert user_version(tmp_path / "y.db") is None
    (tmp_path / "empty.db").write_bytes(b"")
    assert user_version(tmp_path / "empty.db") == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "end", "said"),
    [
        ("events/events.db", 100, "file is not a database"),
        ("documents.db", 100, "file is not a database"),
        ("events/events.db", 40, "file is not a database"),
    ],
)
async def test_a_database_that_begins_with_zeros_is_damaged_and_not_older(
    folder: Path, name: str, end: int, said: str
) -> None:
    path = folder / name
    path.write_bytes(bytes(end) + path.read_bytes()[end:])
    settings = Settings(data=folder)
    assert formats.older(settings) == []
    with pytest.raises(CannotLook, match=said):
        await examine(settings, checking=True, most=1, say=lambda line: None)
    with pytest.raises((EventStoreError, DocumentStoreError), match=said):
        async with running_api(folder):
            pass


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["events/events.db", "documents.db"])
async def test_a_number_that_no_release_has_is_damage(folder: Path, name: str) -> None:
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content[:60] + b"\xff" * 4 + content[64:])
    before, damaged = path.read_bytes(), rf"{path}' is damaged: it says that it has format 4294967295"
    with pytest.raises(DataFolderError, match=damaged):
        create_app(Settings(data=folder))
    with pytest.raises(CannotLook, match=damaged):
        await examine(Settings(data=folder), checking=True, most=1, say=lambda line: None)
    assert path.read_bytes() == before


def test_what_an_embedded_engine_has_left_does_not_count_on_another_one(folder: Path) -> None:
    in_head(folder / "events" / "events.db", 0)
    in_head(folder / "documents.db", 0)
    embedded = Settings(data=folder)
    told = [line.split("'")[1] for line in formats.older(embedded)]
    assert sorted(told) == [str(folder / "documents.db"), str(folder / "events" / "events.db")]
    of_engines = replace(embedded, events="elasticsearch://host/prefix", documents="mongodb://host/database")
    assert formats.older(of_engines) == []
    (told_of_documents,) = formats.older(replace(of_engines, documents=EMBEDDED))
    assert "documents.db" in told_of_documents
    in_head(folder / "documents.db", formats.DOCUMENTS.number + 1)
    in_journal(folder, formats.JOURNAL.number + 1)
    formats.require(of_engines)
    with pytest.raises(DataFolderError, match=r"journal-0000099999\.log' has format"):
        formats.require(replace(of_engines, events=EMBEDDED))


def test_the_page_lists_all_formats() -> None:
    page = (ROOT / "docs" / "operations" / "upgrade.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(one.name, str(one.number), one.place, one.said) for one in formats.ALL]
