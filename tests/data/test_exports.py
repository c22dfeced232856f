"""Files that are kept for readers who come back for parts: which one is answered, and when they go."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import arro3.io
import pytest

from apiserver.common.errors import Refusal, Why
from apiserver.data.exports import ExportBounds, Exports
from apiserver.stores.events.base import EventStoreBusy
from tests.data.conftest import ON_EACH, Data, scalar
from tests.data.test_scalars import columns

pytestmark = pytest.mark.anyio


async def iterations(data: Data, address: str, **headers: str) -> list[int]:
    answer = await data.get(address, headers=headers, expect=206 if "range" in headers else 200)
    found: list[int] = columns(arro3.io.read_parquet(io.BytesIO(answer.content)))["iter"]
    return found


@pytest.mark.test
@ON_EACH
async def test_parts_are_of_one_file_while_the_run_goes_on(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(scalar("m", "v", 1, 1))
    assert await iterations(data, "scalars.parquet") == [1]
    await data.add(scalar("m", "v", 2, 1))
    assert await iterations(data, "scalars.parquet", range="bytes=0-") == [1]
    assert await iterations(data, "scalars.parquet") == [1, 2]
    assert await iterations(data, "scalars.parquet", range="bytes=0-") == [1, 2]


async def test_deleted_points_are_in_no_part(data_anywhere: Data) -> None:
    data = data_anywhere
    await data.add(scalar("m", "v", 1, 1))
    await data.get("scalars.parquet")
    await data.api.call("events.delete_for_task", {"task": data.task})
    assert await iterations(data, "scalars.parquet", range="bytes=0-") == []


async def test_parameters_keep_their_order(data: Data) -> None:
    await data.add(*(scalar("m", "v", n, 1) for n in range(5)))
    assert await iterations(data, "scalars.parquet?from=1&from=3", range="bytes=0-") == [3, 4]
    assert await iterations(data, "scalars.parquet?from=3&from=1", range="bytes=0-") == [1, 2, 3, 4]


async def test_a_name_that_looks_like_more_parameters_has_a_file_of_its_own(data: Data) -> None:
    await data.add(scalar("m", "v", 1, 1))
    assert await iterations(data, "scalars.parquet?metric=m%00variant=v") == []
    assert await iterations(data, "scalars.parquet?metric=m&variant=v") == [1]


async def test_sizes_of_other_formats(data: Data) -> None:
    await data.add(*(scalar("m", "v", n, 1) for n in range(5)))
    whole = await data.get("scalars.csv")
    head = await data.api.raw("HEAD", f"/data/tasks/{data.task}/scalars.csv")
    assert head.headers["content-length"] == str(len(whole.content))
    part = await data.get("scalars.csv", headers={"range": "bytes=7-20"}, expect=206)
    assert part.content == whole.content[7:21]


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[None]:
    """The client does not leave."""
    yield


class Kept:
    """Exports in a folder, and requests for files whose content is a text."""

    def __init__(self, folder: Path, bounds: ExportBounds | None = None) -> None:
        self.folder = folder
        self.exports = Exports(folder, bounds)

    async def ask(self, name: str, content: str | BaseException = "x", *, part: bool = False, wait: Any = None) -> str:
        async def write(path: Path) -> None:
            if wait is not None:
                await wait
            if isinstance(content, BaseException):
                raise content
            await asyncio.to_thread(path.write_text, content)

        file = await self.exports.file(name.encode(), write, None, connected, is_part=part)
        try:
            return (await file.read(0, 100)).decode()
        finally:
            file.close()

    @property
    def files(self) -> int:
        return sum(len(names) for _, _, names in os.walk(self.folder))


async def test_failures_and_clients_that_leave_cost_no_turn(tmp_path: Path) -> None:
    kept = Kept(tmp_path, ExportBounds(patience_seconds=1))
    for number in range(4):
        with pytest.raises(EventStoreBusy):
            await kept.ask(f"failed {number}", EventStoreBusy("down"))
        leaving = asyncio.create_task(kept.ask(f"left {number}", wait=asyncio.Event().wait()))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
    assert await kept.ask("a", "1") == "1"
    assert kept.files == 1


async def test_more_than_a_few_at_once_are_refused(tmp_path: Path) -> None:
    kept, going_on = Kept(tmp_path, ExportBounds(patience_seconds=0.05)), asyncio.Event()
    some = [asyncio.create_task(kept.ask(str(n), wait=going_on.wait())) for n in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Refusal) as refused:
        await kept.ask("one more")
    assert refused.value.why is Why.OVERLOADED
    going_on.set()
    assert await asyncio.gather(*some) == ["x", "x"]


async def test_files_go(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kept", ExportBounds(files=20))
    assert await kept.ask("a", "1") == "1"
    assert await kept.ask("a", "2", part=True) == "1"
    for number in range(40):
        await kept.ask(str(number))
    assert kept.files == 20
    kept = Kept(tmp_path / "old", ExportBounds(made_seconds=-1))
    assert await kept.ask("a", "1") == "1"
    assert await kept.ask("a", "3", part=True) == "3"
    kept = Kept(tmp_path / "not asked for", ExportBounds(asked_seconds=-1))
    assert await kept.ask("took long", "4") == "4"  # it is opened before it goes
    await kept.exports.forget()
    assert kept.files == 0


async def test_what_processes_left_goes_at_the_next_start(tmp_path: Path) -> None:
    for name in ("999999999", "1", str(os.getpid())):
        (tmp_path / name).mkdir()
    Exports(tmp_path).open()
    assert os.listdir(tmp_path) == ["1"]
