"""Finds what restarts take back, as TensorBoard does when it reads the files of a folder in the order of their names.

A program that goes on from a checkpoint writes the step of it as the start of a session: everything before it that has
this step, or a greater one, was written by an attempt that failed. Files of a version before 2 say no starts. There, an
event whose step is below that of the event before it takes back what its own tags have from that step on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from apiserver.common.protobuf_wire import Malformed
from apiserver.events.model import Int64Array
from apiserver.transfer.importing.runs.protobuf import parsed, text
from apiserver.transfer.importing.runs.tensorboard.messages import Event
from apiserver.transfer.importing.runs.tensorboard.records import BLOCK, HEADER, TRAILER, Block, blocks

#: A start of a session in an event: field 7, its length, and the status 1. A few other records have such bytes, too.
_BEGUN = 1
_START = re.compile(rb":(?:[\x02-\x7f]|[\x80-\xff][\x01-\x7f])\x08\x01", re.DOTALL)
_LONGEST_START = 5
#: A place is the number of the file, shifted by so many bits, and where in it the record is.
_FILE_BITS = 48
_HEADER_BYTES = 4096
#: The first bytes of a tag that are looked for, as all of a long one may not fit into a block.
_TAG_BYTES = 2**16


def byte_of(place: int) -> int:
    """Where the record at a place begins in its file."""
    return place % (1 << _FILE_BITS) - HEADER


def places_of(file: int, block: Block) -> Int64Array:
    """The places of a block's records."""
    return block.starts + ((file << _FILE_BITS) + block.at)


class Restarts:
    """The restarts of a folder: where each is, the step from which on it takes back, and of which tag, or of all."""

    def __init__(self) -> None:
        self._found: defaultdict[str | None, list[tuple[int, int]]] = defaultdict(list)
        """The starts of each tag that count, by place; later starts have greater steps."""
        self._columns: dict[str | None, Int64Array] = {}

    def add(self, tag: str | None, place: int, step: int) -> None:
        """Add one that is behind all others; a tag of None means all tags."""
        found = self._found[tag]
        while found and found[-1][1] >= step:  # what that one takes back, this one does, too
            found.pop()
        found.append((place, step))
        self._columns.pop(tag, None)

    def keep(self, tag: str, places: Int64Array, steps: Int64Array) -> npt.NDArray[np.bool_]:
        """Which values of a tag, by their places and steps, no restart takes back."""
        kept = np.ones(len(steps), bool)
        for key in {None, tag} & self._found.keys():
            if key not in self._columns:
                self._columns[key] = np.array(self._found[key], np.int64).T
            where, least = self._columns[key]
            next_one = np.searchsorted(where, places, side="right")
            is_before = next_one < len(where)
            kept[is_before] &= steps[is_before] < least[next_one[is_before]]
        return kept


class Search:
    """Looks for the restarts in the files of a folder, one file after the other."""

    def __init__(self, **bounds: int) -> None:
        """`bounds`: as `blocks` has them."""
        self._bounds = bounds
        self.restarts = Restarts()
        self.is_new = False
        """Whether there is one that was not known."""
        self._version = 0.0
        self._recent = -1
        self._greatest: dict[str, int] = {}
        """By tag, the greatest step that it still has; of files of an old version."""

    def file(self, number: int, path: Path, at: int, known_end: int, stop: int, least: int | None) -> int | None:
        """Look for starts in a file from `at` to `stop`; a start that ends by `known_end` is not new. Raises OSError.

        `least` is the least step of the starts in this file that were found before; returns it, with those found now.
        """
        self._version = _version_of(path, self._version)
        is_old = self._version < 2
        if least is not None:
            self.restarts.add(None, number << _FILE_BITS, least)
        for block, chosen in self._records(path, 0 if is_old else at, stop, is_old):
            places = places_of(number, block)
            for record in chosen:
                try:
                    event = parsed(Event, block.record(record))
                except Malformed:
                    continue
                step = self._look_at(event, int(places[record]))
                if step is not None:
                    end = block.at + int(block.starts[record] + block.lengths[record]) + TRAILER
                    self.is_new |= end > known_end
                    least = step if least is None else min(least, step)
        return None if is_old else least

    def _records(self, path: Path, at: int, stop: int, is_old: bool) -> Iterator[tuple[Block, list[int]]]:
        """The blocks, and which of their records are to be looked at: all, or those that may be starts."""
        if not is_old and not any(_START.search(data) for data in _pieces(path, at, stop, _LONGEST_START)):
            return
        for block in blocks(path, at, stop=stop, **self._bounds):
            if is_old:
                yield block, list(range(len(block.starts)))
            elif len(block.starts):
                starts = [match.start() for match in _START.finditer(block.data)]
                numbers = np.unique(np.searchsorted(block.starts, starts, side="right") - 1)
                yield block, numbers[numbers >= 0].tolist()

    def _look_at(self, event: Event, place: int) -> int | None:
        """Take an event; returns its step if it takes anything back."""
        if event.HasField("file_version"):
            self._version = _version(event)
        step = event.step
        if self._version >= 2:
            if event.session_log.status != _BEGUN:
                return None
            self.restarts.add(None, place, step)
            return step
        tags = [text(value.tag) for value in event.summary.value]
        is_back = step < self._recent and event.HasField("summary")
        taken = {tag for tag in tags if is_back and self._greatest.get(tag, step - 1) >= step}
        for tag in taken:
            self.restarts.add(tag, place, step)
        for tag in tags:
            self._greatest[tag] = step if tag in taken else max(step, self._greatest.get(tag, step))
        if not is_back:
            self._recent = step
        return step if taken else None


def holds_tag(path: Path, at: int, stop: int, tag: str) -> bool:
    """Whether a part of a file may have values of a tag. Raises OSError."""
    name = tag.encode()
    beginning = (b"\x0a" + _varint(len(name)) + name)[:_TAG_BYTES]
    return any(beginning in data for data in _pieces(path, at, stop, len(beginning)))


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _pieces(path: Path, at: int, stop: int, overlap: int) -> Iterator[bytes]:
    """The bytes of a part of a file; each piece begins with the last bytes of the one before it. Raises OSError."""
    with path.open("rb") as file:
        while at < stop:
            file.seek(at)
            data = file.read(min(BLOCK, stop - at))
            yield data
            if len(data) < BLOCK:
                return
            at += len(data) - overlap


def _version_of(path: Path, before: float) -> float:
    """The version of a file, as its first event says; or else the version of the file before it. Raises OSError."""
    for block in blocks(path, 0, block_bytes=_HEADER_BYTES):
        if len(block.starts):
            try:
                event = parsed(Event, block.record(0))
            except Malformed:
                break
            return _version(event) if event.HasField("file_version") else before
    return before


def _version(event: Event) -> float:
    try:
        return float(text(event.file_version).rpartition("brain.Event:")[2])
    except ValueError:
        return -1.0
