"""Writes tables to files, while they are read."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from io import FileIO
from pathlib import Path

from apiserver.common import answers
from apiserver.common.errors import unavailable
from apiserver.tables.table import Batch, Table

#: Bytes that must stay free on the disk.
FREE = 2**30
#: Rows of a row group.
_GROUP = 2**17


async def write_parquet(path: Path, table: Table, group: int = _GROUP, *, free: int = FREE) -> None:
    """Write the table in a thread, which asks the event loop for each batch. ImportError without the extra.

    `group`: rows of a row group, which are in memory together. 503 if the disk has fewer than `free` bytes, or does not
    take the file; an error of reading the table comes as it is.
    """
    from apiserver.tables.formats.arrow import write_parquet_file

    loop = asyncio.get_running_loop()
    stopped = threading.Event()
    failures: list[BaseException] = []

    def batches() -> Iterator[Batch]:
        while not stopped.is_set():
            try:
                _check_room(path, free)
                batch = asyncio.run_coroutine_threadsafe(_next(table.batches), loop).result()
            except BaseException as error:
                failures.append(error)  # Rust would make another error of it
                raise
            if batch is None:
                return
            yield batch
        raise InterruptedError

    writing = asyncio.ensure_future(
        asyncio.to_thread(write_parquet_file, path, table.columns, batches(), table.about, group)
    )
    async with aclosing(table.batches):
        try:
            with _taken_by_disk():
                await asyncio.shield(writing)
        except BaseException:
            stopped.set()
            await asyncio.wait([writing])
            if failures:
                raise failures[0] from None
            raise
    answers.made(0)


async def write_pieces(path: Path, pieces: AsyncGenerator[bytes, None], *, free: int = FREE) -> None:
    """Write a file piece by piece. 503 if the disk has fewer than `free` bytes, or does not take the file.

    An error of making the pieces comes as it is.
    """
    async with aclosing(pieces):
        with _taken_by_disk():
            file = await asyncio.to_thread(open, path, "wb", buffering=0)
        with file:
            async for piece in pieces:
                with _taken_by_disk():
                    await asyncio.to_thread(_write, file, piece)
                _check_room(path, free)


def _write(file: FileIO, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[file.write(rest) :]


def _check_room(path: Path, least: int) -> None:
    with _taken_by_disk():
        free = shutil.disk_usage(path.parent).free
    if free < least:
        raise unavailable("There is too little room on the server's disk to make the file", retry_after=60)


@contextmanager
def _taken_by_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unavailable(f"The server cannot write the file: {error.strerror}", retry_after=60) from error


async def _next(batches: AsyncGenerator[Batch, None]) -> Batch | None:
    return await anext(batches, None)
