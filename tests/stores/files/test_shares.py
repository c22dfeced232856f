"""What uploads and downloads hold in memory, by how many they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.stores.files import disk
from apiserver.stores.files.disk import FileStore
from apiserver.stores.files.shares import Shares


def test_many_hold_no_more_than_few() -> None:
    shares = Shares()
    sizes: list[int] = []
    for count in (1, 60, 900):
        while len(sizes) < count:
            sizes.append(shares.size)
            shares.enter(len(sizes))
    assert sizes[0] == 2**20
    assert 900 * shares.size <= 16 * 2**20
    assert sum(sizes) < 100 * 2**20  # of those before, too
    for one in range(901):
        shares.leave(one)
    assert shares.size == sizes[0]


@pytest.mark.anyio
async def test_whatever_becomes_of_an_upload_or_download_its_share_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = Shares()
    monkeypatch.setattr(disk, "Shares", lambda: shares)
    store = FileStore(tmp_path / "files")
    await store.open()
    async with store.upload("c", "x") as upload:
        assert len(shares) == 1
        await upload.finish()
        await upload.commit()
    with pytest.raises(ZeroDivisionError):
        async with store.upload("c", "y"):
            raise ZeroDivisionError
    file = await store.find("c", "x")
    assert file is not None
    assert len(shares) == 1
    file.close()
    assert len(shares) == 0
    await store.close()
