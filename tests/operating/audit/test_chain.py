"""The audit log's files: lines in a chain, whatever is changed in them, and whoever writes at once."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from apiserver.operating.audit import files as files_module
from apiserver.operating.audit.checking import check
from apiserver.operating.audit.entries import NOTHING, Entry, hash_of
from apiserver.operating.audit.files import PIECE, AuditFiles, files_of, lines_backwards
from apiserver.operating.audit.reading import Wanted, read


def written(folder: Path, count: int = 5, **options: int) -> list[Path]:
    log = AuditFiles(folder, **options)  # type: ignore[arg-type]
    for number in range(count):
        log.append([Entry("tasks.delete", user=f"user {number % 2}", what={"task": f"task {number}"})])
    return files_of(folder)


def test_every_line_carries_the_hash_of_the_one_before(tmp_path: Path) -> None:
    [path] = written(tmp_path / "audit")
    lines = path.read_bytes().splitlines()
    previous = NOTHING
    for number, line in enumerate(lines, 1):
        said = json.loads(line)
        assert (said["n"], said["previous"]) == (number, previous)
        previous = hash_of(line)
    checked = check(tmp_path / "audit")
    assert (checked.lines, checked.first, checked.last, checked.last_hash) == (5, 1, 5, previous)
    assert checked.well
    assert checked.notes == []


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    [path] = written(tmp_path / "audit")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_no_log_is_a_whole_one(tmp_path: Path) -> None:
    checked = check(tmp_path / "audit")
    assert (checked.well, checked.lines, checked.last_hash) == (True, 0, NOTHING)


def changed(line: bytes) -> bytes:
    return line.replace(b"task 2", b"task 9")


DAMAGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a line was changed": lambda lines: [*lines[:2], changed(lines[2]), *lines[3:]],
    "a line is missing": lambda lines: [*lines[:2], *lines[3:]],
    "a line was put in": lambda lines: [*lines[:2], lines[1], *lines[2:]],
    "lines changed places": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "a line became another text": lambda lines: [*lines[:2], b"nonsense", *lines[3:]],
    "the first line is missing": lambda lines: [lines[1].replace(b'"n":2', b'"n":1'), *lines[2:]],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found(tmp_path: Path, damage: str) -> None:
    [path] = written(tmp_path / "audit")
    lines = DAMAGES[damage](path.read_bytes().splitlines())
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    checked = check(tmp_path / "audit")
    assert not checked.well
    assert "00000001.ndjson line" in checked.problems[0]


def test_every_flipped_byte_is_found(tmp_path: Path) -> None:
    [path] = written(tmp_path / "audit", 3)
    content = path.read_bytes()
    end_of_second = content.index(b"\n", content.index(b"\n") + 1)
    for place in range(0, end_of_second, 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert not check(tmp_path / "audit").well, place


def test_full_files_are_followed_by_others_and_the_oldest_go(tmp_path: Path) -> None:
    found = written(tmp_path / "audit", 40, full=1000, most_bytes=4000)
    assert found[0].name != "00000001.ndjson"
    assert sum(path.stat().st_size for path in found) <= 4000
    checked = check(tmp_path / "audit")
    assert checked.well
    assert "older files were deleted" in checked.notes[0]
    actions = [line["action"] for line in read(tmp_path / "audit", Wanted())]
    assert actions.count("audit.forget") >= 1
    kept = found[1].read_bytes()
    found[1].unlink()
    assert not check(tmp_path / "audit").well
    found[1].write_bytes(kept)
    assert check(tmp_path / "audit").well


def test_a_line_that_a_crash_cut_stays_and_the_chain_goes_on(tmp_path: Path) -> None:
    [path] = written(tmp_path / "audit", 3)
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 10)
    assert "was cut by a crash, or is being written" in check(tmp_path / "audit").notes[0]
    written(tmp_path / "audit", 2)
    checked = check(tmp_path / "audit")
    assert (checked.problems, checked.lines, checked.last) == ([], 5, 5)
    assert "line 3 was cut by a crash" in checked.notes[0]
    assert [line["n"] for line in read(tmp_path / "audit", Wanted())] == [5, 4, 2, 1]
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"n":3,', b'"n":9,'))
    assert not check(tmp_path / "audit").well


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "audit"
    log = AuditFiles(folder)
    log.append([Entry("one")])

    def full(descriptor: int, content: memoryview) -> int:
        if len(content) > 20:
            return os.write(descriptor, content[:20])
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(files_module, "write_all", lambda descriptor, content: _write(full, descriptor, content))
        with pytest.raises(OSError, match="no space"):
            log.append([Entry("two"), Entry("three")])
    log.append([Entry("four")])
    assert check(folder).well
    assert [line["action"] for line in read(folder, Wanted())] == ["four", "one"]


def _write(write: Callable[[int, memoryview], int], descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    write(descriptor, view)
    write(descriptor, view[-10:])


def append(folder: Path, name: str, count: int) -> None:
    log = AuditFiles(folder, full=4000)
    for number in range(count):
        log.append([Entry("tasks.delete", user=name, what={"task": f"{name} {number}"})] * 3)


@pytest.mark.test
def test_many_processes_write_one_chain(tmp_path: Path) -> None:
    processes = [
        multiprocessing.get_context("fork").Process(target=append, args=(tmp_path / "audit", f"writer {n}", 30))
        for n in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    checked = check(tmp_path / "audit")
    assert (checked.problems, checked.lines, checked.last) == ([], 270, 270)


def test_strangers_write_no_lines_and_no_long_ones(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    evil = '\n{"n": 99}\x1b[2J\u202e\udc80' + "x" * 10_000
    what = {"name": evil, "ids": [evil] * 1000, "nested": [[evil]], "flag": True, "other": {"a": evil}}
    AuditFiles(folder).append([Entry(evil[:0] + "tasks.delete", name=evil, key=evil, address=evil, what=what)])
    [path] = files_of(folder)
    content = path.read_bytes()
    assert content.isascii()
    assert content.count(b"\n") == 1
    assert len(content) < 10_000
    [said] = read(folder, Wanted())
    assert said["name"] == evil[:200] + "…"
    assert said["what"]["ids"][-1] == "and 980 more"
    assert (said["what"]["nested"], said["what"]["flag"]) == ([], True)


@pytest.mark.parametrize("text", ["é" * 200, "\U0001f600" * 200, '"' * 10_000, "x" * 200, "\x01" * 200])
def test_a_text_is_bounded_as_it_is_written(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "audit"
    AuditFiles(folder).append([Entry("auth.refused", name=text, what={"asked": text, "number": 10**4000})])
    [path] = files_of(folder)
    assert len(path.read_bytes()) < 1500
    [said] = read(folder, Wanted())
    assert text.startswith(said["name"].removesuffix("…"))
    assert said["what"]["asked"] == said["name"]
    assert (said["name"] == text) == (text == "x" * 200)


def test_the_newest_lines_are_read_first_and_by_what_is_wanted(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    written(folder, 10, full=1000)
    assert [line["n"] for line in read(folder, Wanted())] == list(range(10, 0, -1))
    assert [line["n"] for line in read(folder, Wanted(user="user 1"))] == [10, 8, 6, 4, 2]
    assert [line["n"] for line in read(folder, Wanted(before=4))] == [3, 2, 1]
    assert list(read(folder, Wanted(since="2999"))) == []
    assert list(read(folder, Wanted(action="auth."))) == []
    assert len(list(read(folder, Wanted(action="tasks.")))) == 10


@pytest.mark.parametrize("size", [1, 7, 100, PIECE])
def test_lines_are_read_backwards_in_pieces_of_any_size(tmp_path: Path, size: int) -> None:
    path = tmp_path / "lines"
    for content in (b"", b"a", b"a\n", b"a\nbc\n", b"a\nbc\ndef", b"a\n\nb\n"):
        path.write_bytes(content)
        assert list(lines_backwards(path, size)) == content.splitlines()[::-1]
