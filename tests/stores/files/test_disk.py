"""Files on disk: whole or not at all, replaced at once, apart by company, never through a link."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.stores.files.disk import FileStore, FileStoreError, FileStoreFull, FileTooLarge
from apiserver.stores.files.names import InvalidName, disk_folder

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileStore]:
    store = FileStore(tmp_path / "files", max_bytes=3_000_000)
    await store.open()
    yield store
    await store.close()
    assert not list((tmp_path / "files" / "incoming").iterdir())


async def put(store: FileStore, name: str, *pieces: bytes, company: str = "c") -> None:
    async with store.upload(company, name) as upload:
        for piece in pieces:
            await upload.write(piece)
        await upload.finish()
        await upload.commit()


async def get(store: FileStore, name: str, company: str = "c") -> bytes | None:
    file = await store.find(company, name)
    if file is None:
        return None
    try:
        pieces: list[bytes] = []
        while piece := await file.read(sum(map(len, pieces)), file.size):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        file.close()


async def test_what_is_put_is_got(store: FileStore) -> None:
    await put(store, "/a/b.bin", b"12", b"", b"345")
    assert await get(store, "/a/b.bin") == b"12345"
    assert await get(store, "/a/other") is None
    assert await get(store, "/a") is None


async def test_a_file_larger_than_the_write_buffer(store: FileStore) -> None:
    content = os.urandom(2_500_000)
    await put(store, "x", *(content[start : start + 65_536] for start in range(0, len(content), 65_536)))
    assert await get(store, "x") == content


async def test_companies_do_not_see_each_other(store: FileStore) -> None:
    await put(store, "x", b"theirs", company="other")
    assert await get(store, "x") is None
    assert not await store.delete("c", "x")
    assert await get(store, "x", company="other") == b"theirs"


async def test_a_file_and_a_folder_of_one_name(store: FileStore) -> None:
    await put(store, "a", b"file")
    await put(store, "a/b", b"inside")
    assert (await get(store, "a"), await get(store, "a/b")) == (b"file", b"inside")


async def test_an_open_file_stays_what_it_was_when_replaced(store: FileStore) -> None:
    await put(store, "x", b"old")
    opened = await store.find("c", "x")
    assert opened is not None
    await put(store, "x", b"newer")
    await store.delete("c", "x")
    assert await opened.read(0, opened.size) == b"old"
    opened.close()
    opened.close()


async def test_what_is_not_committed_leaves_nothing(store: FileStore) -> None:
    await put(store, "x", b"old")
    async with store.upload("c", "x") as upload:
        await upload.write(b"n" * 2_000_000)
    assert await get(store, "x") == b"old"


async def test_a_file_over_the_limit_is_refused(store: FileStore) -> None:
    with pytest.raises(FileTooLarge, match="3000000 bytes"):
        await put(store, "x", b"1" * 2_000_000, b"2" * 1_000_001)
    assert await get(store, "x") is None


async def test_delete_removes_the_file_and_empty_folders(store: FileStore, tmp_path: Path) -> None:
    await put(store, "a/b/c", b"1")
    await put(store, "a/d", b"2")
    assert await store.delete("c", "a/b/c")
    assert not await store.delete("c", "a/b/c")
    assert await get(store, "a/d") == b"2"
    assert await store.delete("c", "a/d")
    assert {entry.name for entry in (tmp_path / "files").iterdir()} == {"incoming", "lock"}


async def test_leftovers_of_a_crash_are_removed_at_start(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.open()
    left = tmp_path / "incoming" / "left"
    left.write_bytes(b"x")
    other = FileStore(tmp_path)
    await other.open()
    assert left.exists()  # it may be an upload of the first
    await store.close()
    await store.close()
    await other.close()
    await store.open()
    assert not left.exists()
    await store.close()


async def test_links_are_never_followed(store: FileStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    await put(store, "a", b"1")
    company = tmp_path / "files" / disk_folder("c")
    (company / "link").symlink_to(outside / "secret")
    (company / disk_folder("folder")).symlink_to(outside)
    for name in ("link", "folder/secret"):
        assert await get(store, name) is None
        assert not await store.delete("c", name)
    with pytest.raises(FileStoreError, match="symbolic link"):
        await put(store, "folder/new", b"x")
    assert [entry.name for entry in outside.iterdir()] == ["secret"]


async def test_things_that_are_no_files_are_not_there(store: FileStore, tmp_path: Path) -> None:
    await put(store, "a", b"1")
    os.mkfifo(tmp_path / "files" / disk_folder("c") / "pipe")
    assert await get(store, "pipe") is None


async def test_impossible_names(store: FileStore) -> None:
    assert await store.find("c", "../x") is None
    assert not await store.delete("c", "../x")
    with pytest.raises(InvalidName):
        store.upload("c", "../x")


async def test_a_full_disk_keeps_what_was_there(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(store, "x", b"old")

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(FileStoreFull):
            await put(store, "x", b"new")
    assert await get(store, "x") == b"old"


async def test_short_writes_are_continued(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, bytes(data)[:3]))
    await put(store, "x", b"0123456789")
    assert await get(store, "x") == b"0123456789"


async def test_with_fsync_files_and_their_folders_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store = FileStore(tmp_path, fsync=True)
    await store.open()
    await put(store, "a/b", b"1")
    await store.close()
    assert len(synced) == len(["the file", "a", "the company", "the root"])


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("in the way")
    with pytest.raises(FileStoreError, match="files"):
        await FileStore(tmp_path / "files").open()


async def test_check_tells_a_folder_that_is_gone(store: FileStore, tmp_path: Path) -> None:
    await store.check()
    (tmp_path / "files" / "incoming").rmdir()
    with pytest.raises(FileStoreError, match="incoming"):
        await store.check()
    (tmp_path / "files" / "incoming").mkdir()


async def test_a_disk_that_does_not_sync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path / "files", fsync=True)
    await store.open()
    await put(store, "x", b"old")

    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(FileStoreError, match="the disk refuses"):
            await put(store, "x", b"new")
    assert await get(store, "x") == b"old"
    await store.close()


async def test_a_disk_that_fails_when_a_file_is_closed_is_told(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS writes some of a file only then. The descriptor is free nevertheless: another file may have its number."""
    closed: list[int] = []
    close = os.close

    def failing(descriptor: int) -> None:
        closed.append(descriptor)
        close(descriptor)
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with monkeypatch.context() as patched:
        patched.setattr(os, "close", failing)
        with pytest.raises(FileStoreFull):
            await put(store, "x", b"new")
    assert len(closed) == 1
    assert await get(store, "x") is None


async def test_why_an_upload_failed_is_told_though_what_is_left_of_it_cannot_be_deleted(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: Path, *, missing_ok: bool = False) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", failing)
        with pytest.raises(FileTooLarge):
            await put(store, "x", b"." * 3_000_001)
    (left,) = (tmp_path / "files" / "incoming").iterdir()
    await store.close()
    await store.open()
    assert not left.exists()
