"""The archive: events are written here, as Parquet, before they are deleted.

A run writes a file for each task and type that it deletes something of. The file is durable before anything is deleted,
and says in its name whether the deletion is done:

    <company>/<task>/logs-20261124T203000.125Z.going.parquet    the lines are about to be deleted
    <company>/<task>/logs-20261124T203000.125Z.parquet          they are deleted

A run that is cut short leaves a file of the first kind. The next runs leave out what is in the file already, so no
event is in the archive twice. The file is renamed once none of its events is stored any more.

If events come in the very moment in which others of their type are deleted, or thinned, they stay, and so may some of
the others. The file has these, too, so it keeps its first name.

The metadata of a file have the number of its format (`formats.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from apiserver import __version__
from apiserver.common.escaping import shown
from apiserver.events.aggregates import BoolArray
from apiserver.events.model import EventType, Owner
from apiserver.operating.retention.tables import COLUMNS
from apiserver.stores import formats
from apiserver.stores.syncing import sync_folder
from apiserver.tables.formats.to_files import write_parquet
from apiserver.tables.table import Batch, Kind, Repeated, Table, Values

_GOING, _DONE, _PART = ".going.parquet", ".parquet", ".part"
#: Rows that are in memory together when files are written and read. A document or a message may be large.
_POINTS, _LINES, _SAMPLES = 2**17, 5000, 200


class ArchiveError(Exception):
    """A file of the archive cannot be read; the message says why."""


class Archive:
    """A folder of archived events. `moment` says when the run began, and is in the names of its files."""

    def __init__(self, folder: Path, moment: str) -> None:
        self._folder = folder
        self._moment = moment

    async def write(
        self, owner: Owner, type: EventType, batches: AsyncGenerator[Batch, None], about: Mapping[str, str]
    ) -> Path | None:
        """Write events durably, without events that an interrupted run wrote; returns the file, if any were left.

        ImportError without the extra `parquet`; ArchiveError if a newer release wrote what the earlier run left.
        """
        about = {**about, "format": str(formats.ARCHIVES.number), "server": f"events-apiserver {__version__}"}
        path = self._of(owner) / f"{type.plural}-{self._moment}{_GOING}"
        left = await asyncio.to_thread(self.left, owner, type)
        archived = await asyncio.to_thread(_known_rows, left, type)
        await asyncio.to_thread(_make_ready, path.parent, type)
        part, written = path.with_name(path.name + _PART), 0

        async def new() -> AsyncGenerator[Batch, None]:
            nonlocal written
            async with aclosing(batches):
                async for batch in batches:
                    missing = await asyncio.to_thread(_without, batch, type, archived) if len(archived) else batch
                    written += missing.rows
                    if missing.rows:
                        yield missing

        try:
            await write_parquet(part, Table(COLUMNS[type], new(), about), _rows_together(type))
            if not written:
                return None
            await asyncio.to_thread(keep, part, path)
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)
        return path

    def left(self, owner: Owner, type: EventType) -> list[Path]:
        """The files of this task and type whose events were perhaps not deleted."""
        return sorted(self._of(owner).glob(f"{type.plural}-*{_GOING}"))

    async def finish(
        self, owner: Owner, type: EventType, path: Path | None, stored: AsyncGenerator[Batch, None]
    ) -> None:
        """Rename the file at `path`, as its events are deleted.

        Files that earlier runs left are renamed, too, if none of their events is among those `stored`: all of this task
        and type.
        """
        async with aclosing(stored):
            if path is not None:
                await asyncio.to_thread(rename_each, [path])
            if not (left := await asyncio.to_thread(self.left, owner, type)):
                return
            known = await asyncio.to_thread(_known_rows, left, type)
            async for batch in stored:
                if (await asyncio.to_thread(_without, batch, type, known)).rows < batch.rows:
                    return
            await asyncio.to_thread(rename_each, left)

    def _of(self, owner: Owner) -> Path:
        return self._folder / _name(owner.company) / _name(owner.id)


def _rows_together(type: EventType) -> int:
    """Rows of a row group."""
    return {EventType.SCALAR: _POINTS, EventType.LOG: _LINES}.get(type, _SAMPLES)


def _name(id: str) -> str:
    """An id as the name of a folder: an id from elsewhere may be ".." or have a slash."""
    return quote(id, safe="").replace(".", "%2E") or "%"


def _make_ready(folder: Path, type: EventType) -> None:
    """Make the folder, and delete what a process that was killed wrote of a file of this type."""
    _make_folder(folder)
    for half in folder.glob(f"{type.plural}-*{_PART}"):
        half.unlink()


def _make_folder(folder: Path) -> None:
    """Make the folder durably, with those above it."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def keep(part: Path, path: Path) -> None:
    """Give a file its name once it is durable."""
    descriptor = os.open(part, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.rename(path)
    sync_folder(path.parent)


def rename_each(paths: Sequence[Path]) -> None:
    for path in paths:
        path.rename(path.with_name(path.name.removesuffix(_GOING) + _DONE))
    sync_folder(paths[0].parent)


# --- which rows are in a file already ----------------------------------------------------------------


class _Rows:
    """Which rows there are, by digests of 16 bytes: a million of them take 16 MB."""

    def __init__(self, digests: bytes | bytearray) -> None:
        pairs = np.frombuffer(digests, "<u8").reshape(-1, 2)
        order = np.argsort(pairs[:, 0])
        self._first, self._second = pairs[order, 0], pairs[order, 1]

    def __len__(self) -> int:
        return len(self._first)

    def has(self, digests: bytes) -> BoolArray:
        """Whether each row is one of these."""
        pairs = np.frombuffer(digests, "<u8").reshape(-1, 2)
        if not len(self):
            return np.zeros(len(pairs), np.bool_)
        at = np.minimum(np.searchsorted(self._first, pairs[:, 0]), len(self) - 1)
        same: BoolArray = (self._first[at] == pairs[:, 0]) & (self._second[at] == pairs[:, 1])
        return same


def _known_rows(paths: Sequence[Path], type: EventType) -> _Rows:
    """All rows of these files; ArchiveError if a newer release wrote one."""
    from arro3.core import DataType
    from arro3.io import read_parquet

    digests = bytearray()
    for path in paths:
        reader = read_parquet(path, batch_size=min(_rows_together(type), _LINES))
        _require_known(path, reader.schema.metadata_str)
        for batch in reader:
            values: list[list[Any]] = []
            for column in COLUMNS[type]:
                of = batch.column(column.name)
                values.append(list((of.cast(DataType.int64()) if column.kind is Kind.TIME else of).to_pylist()))
            digests += _digests(values)
    return _Rows(digests)


def _require_known(path: Path, about: Mapping[str, str]) -> None:
    """ArchiveError unless this release reads the format that the metadata of a file say."""
    said, newest = about.get("format", "none"), formats.ARCHIVES.number
    if not (said.isdecimal() and 1 <= int(said[:5]) <= newest):
        wrote = shown(about.get("server", "another release"), longest=60)
        raise ArchiveError(
            f"'{path}' has format {shown(said, longest=40)} of archives, which {wrote} wrote. This is apiserver"
            f" {__version__}, which reads up to {newest}. Start the release that wrote it, so that it deletes what is"
            " in the file"
        )


def _without(batch: Batch, type: EventType, known: _Rows) -> Batch:
    """The rows that are not known."""
    values = [_plain(of, column.kind) for of, column in zip(batch.columns, COLUMNS[type], strict=True)]
    places = np.flatnonzero(~known.has(_digests(values))).tolist()
    return Batch(len(places), [_taken(of, places) for of in batch.columns])


def _digests(columns: Sequence[Sequence[Any]]) -> bytes:
    rows = (repr(row).encode("utf-8", "surrogatepass") for row in zip(*columns, strict=True))
    return b"".join([blake2b(row, digest_size=16).digest() for row in rows])


def _plain(values: Values, kind: Kind) -> list[Any]:
    """The values of a column as a file gives them back."""
    if isinstance(values, Repeated):
        return [values.names[code] for code in values.codes.tolist()]
    if isinstance(values, np.ndarray):
        found: list[Any] = values.tolist()
        return found
    return [one if one is None else one.decode() for one in values] if kind is Kind.JSON else values


def _taken(values: Values, places: list[int]) -> Values:
    if isinstance(values, Repeated):
        return Repeated(values.codes[places], values.names)
    return values[places] if isinstance(values, np.ndarray) else [values[place] for place in places]
