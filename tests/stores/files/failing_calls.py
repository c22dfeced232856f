"""A store of files that are uploaded, replaced and deleted while calls to the disk fail (`injecting.py`)."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.stores.files.disk import FileStore, FileStoreError
from tests.robustness.injecting import main
from tests.stores.files.test_disk import get, put

_FILES = 4


@dataclass
class Attempt:
    """A store in one folder, and what each file may have."""

    folder: Path
    acknowledged: int = 0
    may_have: dict[str, list[bytes | None]] = field(default_factory=dict)
    """The contents of which a file may have one, whole; None if it may be missing."""

    def __post_init__(self) -> None:
        self.store = FileStore(self.folder / "files", fsync=True)

    async def fill(self) -> None:
        if not await self._is_done(self.store.open()):
            return
        for n in range(_FILES):
            await self._change(f"a/{n}", large := f"{n}".encode() * 300_000, put(self.store, f"a/{n}", large))
            await self._change(f"a/{n}", b"replaced", put(self.store, f"a/{n}", b"replaced"))
            if n % 2:
                await self._change(f"a/{n}", None, self.store.delete("c", f"a/{n}"))
        await self.store.close()

    async def _change(self, name: str, content: bytes | None, change: Awaitable[object]) -> None:
        before = self.may_have.get(name, [None])
        done = await self._is_done(change)
        self.may_have[name] = [content] if done else [*before, content]

    async def _is_done(self, call: Awaitable[object]) -> bool:
        try:
            await call
        except FileStoreError:
            return False
        self.acknowledged += 1
        return True

    async def check(self) -> None:
        await self.store.close()
        await self.store.open()
        for name, contents in self.may_have.items():
            assert await get(self.store, name) in contents, name
        assert not list((self.folder / "files" / "incoming").iterdir())
        await put(self.store, "a/0", b"afterwards")
        assert await get(self.store, "a/0") == b"afterwards"
        await self.store.close()


if __name__ == "__main__":
    main(Attempt, sys.argv[1:])
