"""A full disk under the served process: 503 with Retry-After, nothing acknowledged lost, reads and a restart go on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.harness import Served, served, wait_until
from tests.robustness.disks import Disk, Limited, mounted
from tests.robustness.writers import Task, Writer, assert_stored, new_task, writing

#: Less than the write-ahead log of merges needs, more than what waits to be merged: the journal fits, merging does not.
MERGES_DO_NOT_FIT = 128 * 2**10
WAITING = 64 * 2**10


@pytest.fixture(params=["nothing fits", "merges do not fit", "a file system is full"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param == "a file system is full":
        with mounted(tmp_path / "disk") as disk:
            yield disk
    else:
        (tmp_path / "disk").mkdir()
        yield Limited(0 if request.param == "nothing fits" else MERGES_DO_NOT_FIT)


def write_until_refused(writers: list[Writer]) -> None:
    for writer in writers:
        writer.refusals.clear()
    with writing(writers):  # 429 is for a merge that takes long, as long as it has not failed
        wait_until(lambda: all(writer.refusals.count(503) > 1 for writer in writers))


def write_more(writers: list[Writer]) -> None:
    goals = [writer.acknowledged + 25 for writer in writers]
    with writing(writers):
        wait_until(lambda: all(one.acknowledged >= goal for one, goal in zip(writers, goals, strict=True)))


def assert_readable(server: Served, writers: list[Writer]) -> None:
    """Exactly what was acknowledged is there; what the tasks tell of it may wait for room."""
    for writer in writers:
        assert Task(server, writer.task).stored(writer) == writer.expected(writer.acknowledged)


def answers(server: Served) -> bool:
    try:
        with server.client() as client:
            return client.get("/debug.ping").status_code == 200
    except httpx.HTTPError:
        return False


def test_a_full_disk_is_waited_for(tmp_path: Path, disk: Disk) -> None:
    data, durability = tmp_path / "disk" / "data", "fsync" if disk == Limited(0) else "process"
    with served(data, durability=durability, merge_events=200, max_unmerged_bytes=WAITING) as server:
        writers = [Writer(server, new_task(server), name) for name in ("one", "two")]
        write_more(writers)
        disk.fill(server)
        write_until_refused(writers)
        assert_readable(server, writers)
        disk.free(server)
        write_more(writers)
        assert_stored(server, writers)
        assert "Traceback" not in server.log.read_text()


def test_a_server_starts_with_a_full_disk(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk, served(disk.folder / "data", merge_events=200) as server:
        writers = [Writer(server, new_task(server), name) for name in ("one", "two")]
        write_more(writers)
        disk.fill(server)
        write_until_refused(writers)
        server.kill()
        server.launch()
        wait_until(lambda: answers(server))
        assert_readable(server, writers)
        write_until_refused(writers)
        with server.client() as client:
            assert client.get("/health").status_code == 503
        disk.free(server)
        write_more(writers)
        assert_stored(server, writers)


def test_a_full_disk_is_freed_by_deleting(tmp_path: Path) -> None:
    room = 4 * 2**20
    with (
        mounted(tmp_path / "disk") as disk,
        served(disk.folder / "data", merge_events=200, max_unmerged_bytes=room // 2, reserve_bytes=room) as server,
        server.client() as client,
    ):
        large, writer = new_task(server), Writer(server, new_task(server), "one")
        write_more([writer])
        text = random.Random(0).randbytes(2**17).hex()
        for iteration in range(2 * room // 2**17):
            plot = {"type": "plot", "task": large, "iter": iteration, "plot_str": f"{iteration}{text}"}
            wait_until(lambda plot=plot: client.post("/events.add", json=plot).status_code == 200)  # type: ignore[misc]
        disk.fill(server)
        write_until_refused([writer])
        deleted = client.post("/tasks.delete", json={"task": large, "force": True})
        assert deleted.status_code == 200, deleted.json()["meta"]["result_msg"]
        write_more([writer])
        assert_stored(server, [writer])
        assert "no events are taken until there is room" in server.log.read_text()


def test_documents_and_files_wait_for_room(tmp_path: Path) -> None:
    disk = Limited(0)
    with served(tmp_path / "data") as server, server.client() as client:
        task = new_task(server)
        disk.fill(server)
        create = ("/tasks.create", {"name": "another", "type": "training"})
        for path, request in (create, ("/tasks.edit", {"task": task, "comment": "long" * 10_000})):
            refused = client.post(path, json=request)
            assert (refused.status_code, int(refused.headers["Retry-After"]) >= 1) == (503, True)
        refused = client.post("/files/", files={"a/file": b"content"})
        assert refused.status_code == 507
        assert server.call("tasks.get_by_id", {"task": task})["task"]["name"] == "a task"
        disk.free(server)
        assert client.post(create[0], json=create[1]).status_code == 200
        assert client.post("/files/", files={"a/file": b"content"}).status_code == 200
