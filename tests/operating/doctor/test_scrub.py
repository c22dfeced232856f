"""Scrubbing beside a server: all is read, damage is told, and it goes on where it was."""

from __future__ import annotations

import asyncio
import resource
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from apiserver.operating.doctor.scrub import Scrub, ScrubBounds
from apiserver.server.bounds import Bounds
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.embedded.scrubbing import scrub
from tests.harness import ADMIN_KEY, ADMIN_SECRET, PATIENCE, running_api
from tests.operating.doctor.filled import filled, killed
from tests.operating.doctor.test_damage import COLUMNS, flipped
from tests.stores.events.embedded.waiting import eventually

pytestmark = pytest.mark.anyio


def scrub_of(data: Path, days: float = 30) -> Scrub:
    return Scrub(partial(scrub, data / "events"), data / "scrub.json", days=days, requests=lambda: 0)


@pytest.mark.test
@pytest.mark.parametrize(("table", "column", "kind", "names"), COLUMNS)
async def test_a_reading_finds_all_damage(tmp_path: Path, table: str, column: str, kind: str, names: str) -> None:
    data, _ = await killed(tmp_path)
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        ((id, content),) = conn.execute(f"SELECT id, {column} FROM {table} ORDER BY id DESC LIMIT 1").fetchall()
        conn.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (flipped(content, len(content) - 1), id))
        tables = ("chunk_index", "tail_pages", "log_blocks", "sample_documents")
        rows = sum(conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables)
    reading = scrub_of(data)
    checked = 0
    while not reading.state.ended:
        await reading.step()
        checked = max(checked, reading.state.checked)
    assert checked == rows
    assert [(one.kind, one.place) for one in reading.state.before] == [(kind, str(id))]
    assert reading.report() == {"findings": 1, "ended": reading.state.ended}


@pytest.mark.test
async def test_the_log_tells_of_an_end_once_a_day_and_when_it_found_something_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, _ = await killed(tmp_path)
    reading = scrub_of(data)
    table, column, *_ = COLUMNS[0]

    async def told() -> list[str]:
        caplog.clear()
        await reading.step()
        while reading.state.place:
            await reading.step()
        return [record.message for record in caplog.records if "everything was read" in record.message]

    with caplog.at_level("INFO"):
        assert "0 findings" in (await told())[0]
        assert await told() == []
        with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
            conn.execute(f"UPDATE {table} SET {column} = x'00' WHERE id = (SELECT max(id) FROM {table})")
        assert "1 findings" in (await told())[0]
        assert await told() == []


@pytest.mark.test
async def test_a_part_that_cannot_be_read_is_told_and_left_out(tmp_path: Path) -> None:
    data, _ = await killed(tmp_path)
    path = data / "events" / "events.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((root,),) = conn.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'chunk_index'").fetchall()
        ((size,),) = conn.execute("PRAGMA page_size").fetchall()
    content = bytearray(path.read_bytes())
    content[(root - 1) * size : root * size] = bytes(size)
    path.write_bytes(content)
    found = scrub(data / "events", "")
    assert [one.kind for one in found.findings] == ["damaged-database"]
    assert found.place.startswith("1:")
    assert 0 < found.share < 1
    path.write_bytes(b"text" * 1000)
    assert [one.kind for one in scrub(data / "events", "").findings] == ["damaged-database"]


@pytest.mark.test
async def test_a_file_that_cannot_be_opened_now_is_tried_again(tmp_path: Path) -> None:
    data, _ = await killed(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # so that too many files are open
    try:
        with pytest.raises(EventStoreError, match="unable to open"):
            scrub(data / "events", "")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert scrub(data / "events", "").findings == []


@pytest.mark.test
async def test_it_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = await killed(tmp_path)
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        conn.execute("UPDATE log_blocks SET count = count + 1")
    first = scrub_of(data, days=0)
    first.start()
    await eventually(lambda: first.findings() > 0)
    await first.close()
    second = scrub_of(data)
    second.start()
    assert second.state == first.state
    await second.close()
    (data / "scrub.json").write_text("not JSON")
    third = scrub_of(data)
    third.start()
    assert third.state.place == ""
    await third.close()


@pytest.mark.test
async def test_steps_are_spread_over_the_days(tmp_path: Path) -> None:
    data, _ = await killed(tmp_path)
    reading = scrub_of(data, days=0.001)
    pauses = [await reading.step()]
    while reading.state.place:
        pauses.append(await reading.step())
    bounds = ScrubBounds()
    assert all(bounds.least <= pause <= bounds.most for pause in pauses)
    assert sum(pauses) > 1  # of 86 seconds for a file with little in its pages


async def eventually_so(ask: Callable[[], Awaitable[bool]]) -> None:
    """Return when the answer is yes."""
    async with asyncio.timeout(PATIENCE):
        while not await ask():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.test
async def test_a_server_tells_what_it_finds(tmp_path: Path) -> None:
    async with filled(tmp_path / "filled"):
        pass
    data = shutil.copytree(tmp_path / "filled", tmp_path / "data")
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        conn.execute("UPDATE log_blocks SET count = count + 1 WHERE id = (SELECT min(id) FROM log_blocks)")
    async with running_api(data, Bounds(scrub=ScrubBounds(least=0, most=0.01, busy=0))) as api:

        async def ended() -> bool:
            health = await api.raw("GET", "/health", auth=None)
            assert health.status_code == 200
            return bool(health.json()["scrub"]["ended"])

        await eventually_so(ended)
        assert (await api.raw("GET", "/health", auth=None)).json()["scrub"]["findings"] == 1
        metrics = (await api.raw("GET", "/metrics", auth=(ADMIN_KEY, ADMIN_SECRET))).text
        assert "apiserver_scrub_findings 1" in metrics
    async with running_api(tmp_path / "other", scrub_days=0) as api:
        assert "scrub" not in (await api.raw("GET", "/health", auth=None)).json()
