"""Flipped and lost bytes in every kind of file are found, and what they damaged is named.

`EVENTS_EXAMPLES=500 pytest tests/operating/doctor` looks longer.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.operating.doctor.examination import CannotLook
from apiserver.stores.events.embedded import journal
from apiserver.stores.inspection import Finding
from tests.chance import examples
from tests.operating.doctor.filled import examined, filled, killed

#: Columns of `events.db` that hold encoded events, and what is found when they are damaged.
COLUMNS = [
    ("chunk_curves", "body", "damaged-chunk", "task"),
    ("chunk_details", "body", "damaged-details", "task"),
    ("chunk_index", "stats", "damaged-sums", "task"),
    ("chunk_index", "blocks", "damaged-sums", "task"),
    ("tail_pages", "lengths", "damaged-page", "metric few"),
    ("tail_pages", "curve", "damaged-page", "metric few"),
    ("tail_pages", "details", "damaged-page", "metric few"),
    ("log_blocks", "body", "damaged-log", "task"),
    ("sample_documents", "body", "damaged-sample", "plot, metric plots, variant roc"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a server left when it was killed; not to be changed."""
    return asyncio.run(killed(tmp_path_factory.mktemp("killed")))[0]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a server left when it ended; not to be changed."""

    async def fill() -> Path:
        async with filled(tmp_path_factory.mktemp("stopped") / "data") as (api, _):
            await api.call("tasks.get_all", {"order_by": ["last_metrics.x.y.value"]})
            await api.call("tasks.get_all", {"search_text": "something"})
            await api.call("tasks.get_all_ex", {"filters": {"hyperparams.Args.lr.value": {"any": {"include": ["1"]}}}})
        return api.backend.settings.data

    return asyncio.run(fill())


def found_in(data: Path) -> list[Finding]:
    return asyncio.run(examined(data)).findings


def flipped(content: bytes, at: int, by: int = 1) -> bytes:
    return content[:at] + bytes([content[at] ^ by]) + content[at + 1 :]


@pytest.mark.test
@pytest.mark.parametrize(("table", "column", "kind", "names"), COLUMNS)
@pytest.mark.parametrize("place", [0.3, 0.6, 1])
def test_a_flipped_bit_of_events_is_found(
    folder: Path, tmp_path: Path, table: str, column: str, kind: str, names: str, place: float
) -> None:
    data = shutil.copytree(folder, tmp_path / "data")
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        ((id, content),) = conn.execute(f"SELECT id, {column} FROM {table} ORDER BY id LIMIT 1").fetchall()
        at = min(int(place * len(content)), len(content) - 1)
        conn.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (flipped(content, at), id))
    (finding,) = found_in(data)
    assert (finding.kind, finding.place) == (kind, str(id))
    assert names in finding.thing
    assert finding.meaning


@pytest.mark.test
def test_a_chunk_in_the_place_of_another_is_found(folder: Path, tmp_path: Path) -> None:
    data = shutil.copytree(folder, tmp_path / "data")
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        (first, body), (second, _), *_ = conn.execute("SELECT id, body FROM chunk_details ORDER BY id").fetchall()
        conn.execute("UPDATE chunk_details SET body = ? WHERE id = ?", (body, second))
    assert [one.place for one in found_in(data)] == [str(second)]
    assert first != second


@pytest.mark.test
@pytest.mark.parametrize(
    ("statement", "kinds"),
    [
        ("DELETE FROM chunk_curves WHERE id = (SELECT min(id) FROM chunk_curves)", {"damaged-chunk"}),
        ("DELETE FROM owners WHERE id = 1", {"lost-rows"}),
        ("DELETE FROM tail_pages", {"missing-page"}),
        ("UPDATE tail_pages SET live = live + 1", {"miscounted-page"}),
        ("DELETE FROM sample_documents", {"missing-samples"}),
        ("DELETE FROM samples", {"lost-content"}),
        ("UPDATE chunk_index SET first = first - 1000 WHERE first > 0", {"damaged-chunk", "overlapping-chunks"}),
        ("UPDATE log_blocks SET count = count + 1", {"damaged-log"}),
    ],
)
def test_rows_that_do_not_fit_are_found(folder: Path, tmp_path: Path, statement: str, kinds: set[str]) -> None:
    data = shutil.copytree(folder, tmp_path / "data")
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        conn.execute(statement)
    assert {one.kind for one in found_in(data)} == kinds


def some_bytes(whole: bytes) -> list[int]:
    """Places in the first record of a journal: all of its head, and some of what its checksum is of."""
    behind_head = len(journal.MAGIC) + journal.HEAD_BYTES
    return [*range(len(journal.MAGIC), behind_head), *range(behind_head, len(whole), 13), len(whole) - 1]


@pytest.mark.test
def test_a_flipped_bit_of_the_journal_is_found(folder: Path, tmp_path: Path) -> None:
    data = shutil.copytree(folder, tmp_path / "data")
    ((_, path),) = journal.segments(data / "events")
    whole = path.read_bytes()
    for at in some_bytes(whole):
        path.write_bytes(flipped(whole, at, 0x10))
        (finding,) = asyncio.run(_of_journal(data))
        assert finding.kind == "torn-journal"  # nothing lies behind it
        assert finding.place == path.name
    path.write_bytes(flipped(whole, 3))
    assert [one.kind for one in asyncio.run(_of_journal(data))] == ["damaged-journal"]


@pytest.mark.test
def test_whole_batches_behind_damage_of_the_journal_are_counted(folder: Path, tmp_path: Path) -> None:
    data = shutil.copytree(folder, tmp_path / "data")
    ((_, path),) = journal.segments(data / "events")
    whole = path.read_bytes()
    one = whole[len(journal.MAGIC) :]
    path.write_bytes(whole + one + one)
    for at in some_bytes(whole):  # also of its sizes
        path.write_bytes(flipped(whole + one + one, at, 0x40))
        (finding,) = asyncio.run(_of_journal(data))
        assert finding.kind == "damaged-journal"
        assert "2 whole batches" in finding.meaning
        assert f"from byte 8 to {len(whole):,}" in finding.thing
    path.write_bytes(flipped(whole + one, len(whole) - 1, 0x40))
    (finding,) = asyncio.run(_of_journal(data))
    assert "1 whole batch behind" in finding.meaning


async def _of_journal(data: Path) -> list[Finding]:
    from apiserver.stores.events.embedded.inspection import looking_at

    async with looking_at(data / "events", written=0) as look:
        return [one async for one in look.findings()]


@pytest.mark.test
def test_damage_of_documents_is_found(stopped: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(stopped / "documents.db")) as conn:
        kinds = {text.split('"')[1] for (text,) in conn.execute('SELECT holds FROM "side:tables"')}
    assert kinds == {"sorted", "texts", "values"}
    for statement, kind in [
        ("UPDATE tasks SET doc = substr(doc, 2) WHERE row = 1", "damaged-document"),
        ("UPDATE tasks SET \"key.project\" = 'other' WHERE row = 1", "wrong-key"),
        ('DELETE FROM "side:1" WHERE rowid = 1', "wrong-side-table"),
        ("UPDATE \"side:2\" SET text = 'other' WHERE rowid = 1", "wrong-side-table"),
    ]:
        data = shutil.copytree(stopped, tmp_path / kind, dirs_exist_ok=True)
        with closing(sqlite3.connect(data / "documents.db")) as conn, conn:
            conn.execute(statement)
        found = found_in(data)
        assert [one.kind for one in found if one.store == "documents"] == [kind]


@pytest.mark.test
@examples(30)
@given(st.data())
def test_no_flipped_bit_of_events_stays_unknown(stopped: Path, data: st.DataObject) -> None:
    """Wherever a bit of the file flips: it is found, or all encoded events are as they were."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = shutil.copytree(stopped, Path(temporary) / "data")
        path = copy / "events" / "events.db"
        before, content = encoded(path), path.read_bytes()
        at = data.draw(st.integers(0, len(content) - 1), label="at")
        path.write_bytes(flipped(content, at, 1 << data.draw(st.integers(0, 7), label="bit")))
        try:
            found = bool(found_in(copy))
        except CannotLook:
            found = True
        assert found or encoded(path) == before


def encoded(path: Path) -> object:
    """What is encoded in the database."""
    try:
        with closing(sqlite3.connect(path)) as conn:
            return [
                conn.execute(f"SELECT id, {column} FROM {table} ORDER BY id").fetchall()
                for table, column, *_ in COLUMNS
            ]
    except sqlite3.DatabaseError:
        return None


def test_a_counter_that_is_missing_is_named(stopped: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(stopped, tmp_path / "data"))
    with closing(sqlite3.connect(data / "events" / "events.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM state WHERE name = 'merged_journal'")
    with pytest.raises(CannotLook, match="the table state has no row merged_journal"):
        found_in(data)
