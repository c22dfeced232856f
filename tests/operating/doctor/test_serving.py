"""What is damaged is named in an answer and in the log, and all the rest is served."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from apiserver.events.model import Owner
from tests.harness import Api, running_api
from tests.operating.doctor.filled import killed
from tests.operating.doctor.test_damage import COLUMNS, flipped

pytestmark = pytest.mark.anyio

#: Reads of a task.
READS: dict[str, dict[str, Any]] = {
    "events.scalar_metrics_iter_histogram": {"samples": 0},
    "events.get_task_log": {},
    "events.get_task_plots": {"iters": 100},
}
#: What cannot be read of the task, by what is damaged. Times and sums are not asked for here.
FAILS = {
    "damaged-chunk": ["events.scalar_metrics_iter_histogram"],
    "damaged-page": ["events.scalar_metrics_iter_histogram"],
    "damaged-log": ["events.get_task_log"],
    "damaged-sample": ["events.get_task_plots"],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Owner]]:
    """A folder that a server left when it was killed, and its tasks; not to be changed."""
    return asyncio.run(killed(tmp_path_factory.mktemp("killed")))


async def answers(api: Api, owners: list[Owner]) -> dict[tuple[str, str], tuple[int, str]]:
    """The status and the content of each read of each task."""
    found = {}
    for owner in owners:
        for endpoint, more in READS.items():
            answer = await api.raw("POST", f"/{endpoint}", json={"task": owner.id, **more})
            content = answer.json()
            found[owner.id, endpoint] = answer.status_code, str(content["data"] or content["meta"]["result_msg"])
    return found


@pytest.mark.test
@pytest.mark.parametrize(("table", "column", "kind", "names"), COLUMNS)
async def test_the_rest_is_served(
    whole: tuple[Path, list[Owner]], tmp_path: Path, table: str, column: str, kind: str, names: str
) -> None:
    folder, owners = whole
    data = shutil.copytree(folder, tmp_path / "data")
    async with running_api(Path(shutil.copytree(folder, tmp_path / "whole"))) as api:
        before = await answers(api, owners)
    with closing(sqlite3.connect(data / "events" / "events.db")) as conn, conn:
        ((id, content),) = conn.execute(f"SELECT id, {column} FROM {table} ORDER BY id LIMIT 1").fetchall()
        conn.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (flipped(content, len(content) - 1), id))
    async with running_api(Path(data)) as api:
        after = await answers(api, owners)
        assert (await api.raw("GET", "/health", auth=None)).status_code == 200
    changed = {read: answer for read, answer in after.items() if answer != before[read]}
    assert changed.keys() <= {(owners[0].id, endpoint) for endpoint in FAILS.get(kind, ())}
    for status, said in changed.values():
        assert status == 503
        assert "is damaged: what was read is not what was stored" in said
        assert f"task {owners[0].id}" in said
    assert bool(changed) == (kind in FAILS)
