"""Files deleted behind calls: each exactly when it should be, in the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.fileserver.deletions import FileDeletions
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.files.disk import FileStore, FileStoreError, Former
from tests.contract.document_stores import store as documents

__all__ = ["documents"]

pytestmark = pytest.mark.anyio

COMPANY = "c1"


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[FileStore]:
    opened = FileStore(tmp_path / "files")
    await opened.open()
    yield opened
    await opened.close()


async def put(files: FileStore, *names: str, company: str = COMPANY) -> None:
    for name in names:
        async with files.upload(company, name) as upload:
            await upload.write(b"x")
            await upload.finish()
            await upload.commit()


async def kept(files: FileStore, *names: str, company: str = COMPANY) -> list[str]:
    """Those of the names that files have."""
    found = []
    for name in names:
        if file := await files.find(company, name):
            file.close()
            found.append(name)
    return found


async def worked_off(documents: DocumentStore, collection: str = "file_deletions") -> None:
    """Return when nothing waits any more, and nothing is in the collection."""
    while await documents.count("file_deletions", {}) or await documents.count(collection, {}):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def urls(*names: str) -> list[str]:
    return [f"http://localhost:8081{name}" for name in names]


@pytest.mark.test
async def test_files_are_deleted_and_remembered(files: FileStore, documents: DocumentStore) -> None:
    names = [f"/p/{number}" for number in range(450)]
    await put(files, *names, "/other")
    await put(files, names[0], company="c2")
    deleting = FileDeletions(files, documents)

    await deleting.add(COMPANY, [*urls(*names, "/none"), "http://elsewhere/other", "s3://localhost/other"])
    assert await deleting.covers(COMPANY, names[0])
    assert not await deleting.covers("c2", names[0])
    await deleting.work()

    assert await kept(files, *names, "/other") == ["/other"]
    assert await kept(files, names[0], company="c2") == [names[0]]
    assert await deleting.covers(COMPANY, names[0])
    assert await deleting.covers(COMPANY, "/none")
    assert not await deleting.covers(COMPANY, "/other")


async def test_a_file_that_was_put_there_later_stays(files: FileStore, documents: DocumentStore) -> None:
    await put(files, "/again", "/old")
    deleting = FileDeletions(files, documents)
    await deleting.add(COMPANY, urls("/again", "/old"))
    await put(files, "/again")
    await deleting.work()
    assert await kept(files, "/again", "/old") == ["/again"]

    await deleting.add(COMPANY, urls("/again"))
    await deleting.work()
    assert await kept(files, "/again") == []


async def test_what_waits_is_deleted_after_a_restart(files: FileStore, documents: DocumentStore) -> None:
    await put(files, "/a")
    await FileDeletions(files, documents).add(COMPANY, urls("/a"))

    after = FileDeletions(files, documents)
    after.deleting.start()
    await asyncio.wait_for(worked_off(documents), 120)
    await after.deleting.close()
    assert await kept(files, "/a") == []


async def test_what_a_disk_refuses_waits(
    files: FileStore, documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(files, "/a", "/b")
    deleting = FileDeletions(files, documents)
    await deleting.add(COMPANY, urls("/a", "/b"))

    async def refuse(*arguments: object, **options: object) -> bool:
        raise FileStoreError("the disk refuses")

    with monkeypatch.context() as patched:
        patched.setattr(files, "delete", refuse)
        with pytest.raises(FileStoreError):
            await deleting.work()
    assert await kept(files, "/a", "/b") == ["/a", "/b"]
    await deleting.work()
    assert await kept(files, "/a", "/b") == []


async def test_a_file_that_the_disk_refuses_keeps_no_other(
    files: FileStore, documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"/{number}" for number in range(5)]
    await put(files, *names)
    deleting = FileDeletions(files, documents, at_once=1)
    await deleting.add(COMPANY, urls(*names))
    delete = files.delete

    async def refuse_some(company: str, name: str, *, placed_before: int | None = None) -> Former | None:
        if name in ("/1", "/3"):
            raise FileStoreError("the disk refuses")
        return await delete(company, name, placed_before=placed_before)

    with monkeypatch.context() as patched:
        patched.setattr(files, "delete", refuse_some)
        with pytest.raises(FileStoreError):
            await deleting.work()
    assert await kept(files, *names) == ["/1", "/3"]
    assert await documents.count("file_deletions", {}) == 2


async def test_a_file_that_is_wanted_again_while_others_are_deleted_waits(
    files: FileStore, documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is wanted of a time before the others: retention deletes what was there when it began."""
    deleting = FileDeletions(files, documents)
    await put(files, "/a", "/b")
    delete = files.delete
    between = 0

    async def wanted_again(company: str, name: str, *, placed_before: int | None = None) -> Former | None:
        deleted = await delete(company, name, placed_before=placed_before)
        if name == "/a" and between:
            await deleting.add_names(COMPANY, ["/a"], before=between)
        return deleted

    await deleting.add_names(COMPANY, ["/a"], before=1)  # it was uploaded later, and stays
    between = time.time_ns()
    await deleting.add(COMPANY, urls("/b"))
    with monkeypatch.context() as patch:
        patch.setattr(files, "delete", wanted_again)
        await deleting.work()
    assert await kept(files, "/a", "/b") == ["/a"]
    between = 0
    await deleting.work()
    assert await kept(files, "/a") == []


async def test_two_calls_may_want_the_same(files: FileStore, documents: DocumentStore) -> None:
    await put(files, "/a", "/b")
    one, other = FileDeletions(files, documents), FileDeletions(files, documents)
    await one.add(COMPANY, urls("/a"))
    await other.add(COMPANY, urls("/a", "/b"))
    await one.work()
    await other.work()
    assert await kept(files, "/a", "/b") == []
    await one.add(COMPANY, urls("/a"))  # once more, also remembered as deleted
    await other.work()
    assert await documents.count("deleted_files", {}) == 2


async def test_deleted_files_are_forgotten(files: FileStore, documents: DocumentStore) -> None:
    deleting = FileDeletions(files, documents, remembered=0)
    await deleting.add(COMPANY, urls("/a"))
    deleting.deleting.start()
    await asyncio.wait_for(worked_off(documents, "deleted_files"), 120)
    await deleting.deleting.close()
    assert not await deleting.covers(COMPANY, "/a")


async def test_files_are_deleted_although_replaced_ones_cannot_be_looked_up(
    files: FileStore, documents: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(files, "/a")
    deleting = FileDeletions(files, documents)
    await deleting.add(COMPANY, urls("/a"))

    async def refuse() -> None:
        raise DocumentStoreError("the documents refuse")

    monkeypatch.setattr(deleting, "add_due", refuse)
    with pytest.raises(DocumentStoreError):
        await deleting._work_and_forget()
    assert await kept(files, "/a") == []


async def test_hosts_are_those_that_files_came_by(files: FileStore, documents: DocumentStore) -> None:
    await put(files, "/a", "/b")
    deleting = FileDeletions(files, documents, hosts=4)
    for host in ("files.example:8081", "files.example", "", "localhost:1", "too.many"):
        await deleting.note_host(COMPANY, host)
    assert await deleting.hosts(COMPANY) == {"files.example", "localhost", "127.0.0.1", "::1"}
    assert "files.example" not in await deleting.hosts("c2")

    await FileDeletions(files, documents).add(COMPANY, ["http://files.example/a"])
    await deleting.add(COMPANY, ["http://api.example/b"], "api.example:8008")
    await deleting.work()
    assert await kept(files, "/a", "/b") == []
