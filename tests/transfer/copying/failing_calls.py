"""A data folder that is copied into another one, whose calls to the disk fail (`injecting.py`).

The environment says which folder is copied (`COPIED`).
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolderError
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.events.base import EventStoreError
from apiserver.transfer.copying.locations import Location, copy, opened
from apiserver.transfer.copying.retrying import CopyError
from tests.robustness.injecting import main
from tests.transfer.copying.test_events import content

COPIED = "COPIED"


def _impatient(line: str) -> None:
    """End a copy that would wait, minutes long, for room on the disk."""
    if line.startswith("waiting: "):
        raise CopyError(line)


@dataclass
class Attempt:
    """Copies into one folder."""

    folder: Path
    acknowledged: int = 0

    def __post_init__(self) -> None:
        self._source = Location(Settings(data=Path(os.environ[COPIED])))
        self._target = Location(Settings(data=self.folder / "new", durability="fsync"))

    async def fill(self) -> None:
        try:
            await copy(self._source, self._target, _impatient)
        except (CopyError, DataFolderError, EventStoreError, DocumentStoreError):  # those that the command tells
            return
        self.acknowledged += 1

    async def check(self) -> None:
        if self.acknowledged:
            await self._assert_whole()
        await copy(self._source, self._target, _impatient)
        await self._assert_whole()

    async def _assert_whole(self) -> None:
        assert await _kept(self._target) == (expected := await _kept(self._source))
        assert all(expected)


async def _kept(location: Location) -> tuple[dict[str, list[str]], dict[str, str]]:
    """All events of each owner, and all documents."""
    async with opened(location) as (events, documents):
        assert events is not None
        assert documents is not None
        return (
            {owner.id: await content(events, owner) async for owner in events.owners()},
            {
                f"{name}/{document['id']}": repr(sorted(document.items()))
                for name in await documents.collections()
                for document in await documents.find(name, {})
            },
        )


if __name__ == "__main__":
    main(Attempt, sys.argv[1:])
