"""A store of documents that is opened, changed and closed while calls to the disk fail (`injecting.py`)."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Awaitable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apiserver.stores.documents.base import DocumentStoreError, Index
from apiserver.stores.documents.query import Update
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.robustness.injecting import main

_DOCUMENTS = 12
_INDEXES = [Index("things", ("id",), unique=True), Index("things", ("value",))]


@dataclass
class Attempt:
    """A store in one folder, and what each document may be."""

    folder: Path
    acknowledged: int = 0
    may_be: dict[str, list[Any]] = field(default_factory=dict)
    """The values that a document may have; None if it may be missing. A change that failed was made or not."""

    def __post_init__(self) -> None:
        self.store = SqliteDocumentStore(self.folder / "documents.db", indexes=_INDEXES, fsync=True)

    async def fill(self) -> None:
        if not await self._is_done(self.store.open()):
            return
        for n in range(_DOCUMENTS):
            await self.insert(f"{n}")
            if n % 3 == 1:
                await self._change(f"{n}", f"new {n}", self._update(f"{n}", f"new {n}"))
            if n % 3 == 2:
                await self._change(f"{n}", None, self.store.delete("things", {"id": f"{n}"}))
        await self._is_done(self.store.find("things", {}, sort=[("value", 1)]))
        await self._is_done(self.store.close())

    async def insert(self, id: str) -> bool:
        done = await self._is_done(self.store.insert("things", [{"id": id, "value": f"old {id}", "text": "x" * 5000}]))
        self.may_be[id] = [f"old {id}"] if done else [f"old {id}", None]
        return done

    async def _change(self, id: str, value: str | None, change: Awaitable[int]) -> None:
        before = self.may_be[id]
        is_known = await self._is_done(change) and len(before) == 1
        # An insert that failed may still be there after the next start, though nothing was found of it until then.
        self.may_be[id] = [value] if is_known else [*before, value]

    async def _update(self, id: str, value: str) -> int:
        return await self.store.update("things", {"id": id}, Update(set={"value": value}))

    async def _is_done(self, call: Awaitable[object]) -> bool:
        try:
            await call
        except DocumentStoreError:
            return False
        self.acknowledged += 1
        return True

    async def check(self) -> None:
        await self._is_done(self.store.close())
        await self.store.open()
        await self._compare()
        assert await self.insert("afterwards")
        await self._update("afterwards", "changed")
        self.may_be["afterwards"] = ["changed"]
        await self.store.close()
        await self.store.open()
        await self._compare()
        await self.store.close()
        with closing(sqlite3.connect(self.folder / "documents.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    async def _compare(self) -> None:
        found = {one["id"]: one["value"] for one in await self.store.find("things", {})}
        assert found.keys() <= self.may_be.keys()
        for id, values in self.may_be.items():
            assert found.get(id) in values, (id, found.get(id), values)


if __name__ == "__main__":
    main(Attempt, sys.argv[1:])
