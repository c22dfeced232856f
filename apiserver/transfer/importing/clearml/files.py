"""Imports files: copies the folder of a ClearML file server into our file store, under the same names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from anyio import to_thread

from apiserver.stores.files.disk import FileStore, FileStoreError
from apiserver.stores.files.names import InvalidName
from apiserver.transfer.importing.report import ImportFailed, Progress, Report

_KIND = "files"
_READ_AT_ONCE = 2**20


async def take_files(folder: Path, target: FileStore, company: str, report: Report) -> None:
    """Copy the files below `folder` to the company's files, but no file that the company has in the same size."""
    count = report.count(_KIND)
    paths = await to_thread.run_sync(lambda: list(_files(folder)))
    progress = Progress(_KIND, len(paths), report.say)
    for path in paths:
        count.found += 1
        name = f"/{path.relative_to(folder).as_posix()}"
        try:
            if await _has(target, company, name, path.stat().st_size):
                count.known += 1
            else:
                await _copy(path, target, company, name)
                count.taken += 1
        except (InvalidName, FileStoreError, OSError) as error:
            count.left += 1
            report.problem(_KIND, name, str(error))
        progress.advance(1)


def _files(folder: Path) -> Iterator[Path]:
    """Regular files, in order; links are not followed. ImportFailed if there is no such folder."""
    if not folder.is_dir():
        raise ImportFailed(f"there is no folder '{folder}'")
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(here, name)
            if path.is_file() and not path.is_symlink():
                yield path


async def _has(target: FileStore, company: str, name: str, size: int) -> bool:
    file = await target.find(company, name)
    if file is None:
        return False
    file.close()
    return file.size == size


async def _copy(path: Path, target: FileStore, company: str, name: str) -> None:
    with path.open("rb") as source:
        async with target.upload(company, name) as upload:
            while data := await to_thread.run_sync(source.read, _READ_AT_ONCE):
                await upload.write(data)
            await upload.finish()
            await upload.commit()
