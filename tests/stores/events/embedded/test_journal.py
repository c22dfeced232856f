"""The journal: whole records, in order, whatever happens to the end of a segment."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from apiserver.events.model import EventBatch
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.embedded import journal, records
from apiserver.stores.events.embedded.journal import Journal
from apiserver.stores.events.embedded.records import Record
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import batch, lines, sample, scalars


def a_batch(n: int) -> EventBatch:
    return batch(
        scalars([float(n), 2.0], iters=[n, n + 1]),
        scalars([3.0], variant="valid", worker="w"),
        lines([f"line {n}", ""], digest=b"digest"),
        sample(n, key="k"),
        received=n,
    )


def a_record(n: int) -> Record:
    record = records.make(a_batch(n))
    record.sequence = 10 * n
    return record


def written(folder: Path, count: int, *, fsync: bool = False) -> tuple[Path, list[int]]:
    """A segment of `count` records, and where it ended after each."""
    opened = Journal(folder, 1, fsync=fsync)
    path = journal.segment_path(folder, 1)
    ends = []
    for n in range(count):
        opened.append([a_record(n)])
        ends.append(path.stat().st_size)
    opened.close()
    return path, ends


def replayed(path: Path) -> list[int]:
    """The numbers of the records in a segment."""
    return [record.received for record in journal.replay(path)]


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    path, _ = written(tmp_path, 3)
    for n, record in enumerate(journal.replay(path)):
        sent = a_batch(n)
        assert (record.received, record.sequence, record.lines) == (n, 10 * n, 2)
        assert record.samples == sent.samples
        for found, group in zip(record.scalars, sent.scalars, strict=True):
            assert (found.owner, found.metric, found.variant) == (group.owner, group.metric, group.variant)
            assert found.worker == group.worker
            assert found.iters.tolist() == group.iters.tolist()
            assert found.timestamps.tolist() == group.timestamps.tolist()
            assert found.values.tolist() == group.values.tolist()
        (logs,) = record.logs
        assert (logs.messages, logs.digest) == (sent.logs[0].messages, b"digest")
        assert logs.timestamps.tolist() == sent.logs[0].timestamps.tolist()


def test_columns_need_not_be_contiguous_nor_of_the_right_type(tmp_path: Path) -> None:
    group = scalars([0.0] * 3)
    group.iters, group.values = np.arange(6)[::2], np.arange(3, dtype=np.float32)
    sent = records.make(batch(group)).scalars
    assert (sent.iters.tolist(), sent.values.tolist()) == ([0, 2, 4], [0.0, 1.0, 2.0])


def test_columns_of_different_lengths_are_refused() -> None:
    group = scalars([0.0] * 3)
    group.values = group.values[:2]
    with pytest.raises(ValueError, match="differ in length"):
        records.make(batch(group))


@pytest.mark.test
def test_a_segment_torn_anywhere_ends_at_its_last_whole_record(tmp_path: Path) -> None:
    path, ends = written(tmp_path, 3)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert replayed(path) == [n for n, end in enumerate(ends) if end <= length]


@pytest.mark.test
def test_a_segment_with_a_wrong_byte_anywhere_ends_before_it(tmp_path: Path) -> None:
    path, ends = written(tmp_path, 3)
    content = path.read_bytes()
    for at in range(8, len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :])
        assert replayed(path) == [n for n, end in enumerate(ends) if end <= at]


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"EVJ", b"something else altogether"])
def test_a_file_that_is_no_segment_has_no_records(tmp_path: Path, content: bytes) -> None:
    path = journal.segment_path(tmp_path, 1)
    path.write_bytes(content)
    assert replayed(path) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "unknown",
    [
        replace(a_record(1), meta=b"\x93\x01\x02"),
        replace(a_record(1), meta=b"\x81\x01\x02"),
        replace(a_record(1), columns=b"", meta=a_record(1).meta[:-1] + b"\xff\xff"),
    ],
)
async def test_a_record_of_unknown_form_is_named_at_the_start(tmp_path: Path, unknown: Record) -> None:
    opened = Journal(tmp_path, 1, fsync=False)
    opened.append([a_record(0), unknown])
    opened.close()
    path = journal.segment_path(tmp_path, 1)
    for _ in range(2):  # the folder is left free, and the segment as it is
        with pytest.raises(EventStoreError, match=f"{path} has a record at byte"):
            await EmbeddedEventStore(tmp_path).open()
    assert path.exists()


def test_segments_are_found_in_order(tmp_path: Path) -> None:
    opened = Journal(tmp_path, 8, fsync=True)
    for n in range(3):
        opened.append([a_record(n)])
        opened.rotate()
    opened.close()
    assert [number for number, _ in journal.segments(tmp_path)] == [8, 9, 10]
    assert [replayed(path) for _, path in journal.segments(tmp_path)] == [[0], [1], [2]]


def disk_fills_up(patch: pytest.MonkeyPatch, error: int, room: int) -> None:
    """Let `room` more bytes be written, then fail."""
    real = os.pwritev

    def write(file: int, buffers: Sequence[bytes], at: int) -> int:
        nonlocal room
        content = b"".join(buffers)[:room]
        room -= len(content)
        if not content:
            raise OSError(error, os.strerror(error))
        return real(file, [content], at)

    patch.setattr(os, "pwritev", write)
    patch.setattr(os, "pwrite", lambda file, content, at: write(file, [content], at))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("after", [0, 1, 30, 200])
def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, after: int) -> None:
    opened = Journal(tmp_path, 1, fsync=False)
    opened.append([a_record(0)])
    with monkeypatch.context() as patch:
        disk_fills_up(patch, error, after)
        with pytest.raises(EventStoreBusy) as raised:
            opened.append([a_record(1), a_record(2)])
    assert (raised.value.overloaded, raised.value.retry_after) == (False, 5)
    path = journal.segment_path(tmp_path, 1)
    assert replayed(path) == [0]
    opened.append([a_record(3)])
    opened.close()
    assert replayed(path) == [0, 3]


def test_nothing_is_written_behind_what_cannot_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    opened = Journal(tmp_path, 1, fsync=True)
    opened.append([a_record(0)])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", no)
        patch.setattr(os, "ftruncate", no)
        for n in (1, 2):
            with pytest.raises(EventStoreBusy):
                opened.append([a_record(n)])
    opened.append([a_record(3)])
    opened.close()
    assert replayed(journal.segment_path(tmp_path, 1)) == [0, 3]


def test_what_was_written_and_could_not_be_synced_is_not_read_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused, so its client sends it again."""

    def no(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    opened = Journal(tmp_path, 1, fsync=True)
    opened.append([a_record(0)])
    monkeypatch.setattr(os, "fdatasync", no)
    with pytest.raises(EventStoreBusy):
        opened.append([a_record(1)])
    assert replayed(journal.segment_path(tmp_path, 1)) == [0]
    opened.close()


def test_a_segment_that_cannot_be_begun_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Journal(tmp_path, 1, fsync=False)
    with monkeypatch.context() as patch:
        disk_fills_up(patch, errno.ENOSPC, 3)
        with pytest.raises(EventStoreBusy):
            opened.append([a_record(0)])
    opened.append([a_record(1)])
    opened.close()
    assert replayed(journal.segment_path(tmp_path, 1)) == [1]


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda file, buffers, at: real(file, [b"".join(buffers)[:5]], at))
    path, _ = written(tmp_path, 2)
    assert replayed(path) == [0, 1]
