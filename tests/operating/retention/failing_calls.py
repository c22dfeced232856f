"""Old events that retention archives and deletes while calls to the disk fail (`injecting.py`)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from apiserver.events.model import EventType
from apiserver.operating.retention.run import Gone
from apiserver.operating.retention.tables import COLUMNS
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.operating.retention.stores import NOW, Stores, stores_in
from tests.operating.retention.test_archive import ALL, CONTENT, OLD, contents, rows
from tests.robustness.injecting import main

#: What is due of each type, and what is not.
DUE = {
    EventType.SCALAR: {"1.5", "2.5", "3.5"},
    EventType.LOG: {"one", "two"},
    EventType.PLOT: {'{"iter": 1}', '{"iter": 2}'},
}
YOUNG = {EventType.SCALAR: set[str](), EventType.LOG: {"young"}, EventType.PLOT: {'{"iter": 3}'}}


@dataclass
class Attempt:
    """Stores and an archive in one folder."""

    folder: Path
    acknowledged: int = 0
    """How many events were told to be deleted."""

    def __post_init__(self) -> None:
        asyncio.run(self._add_events())

    async def _add_events(self) -> None:
        async with self._opened() as stores:
            await stores.task()
            await stores.events.add(
                batch(
                    scalars([1.5, 2.5], timestamps=[OLD, OLD]),
                    scalars([3.5], variant="test", timestamps=[OLD]),
                    lines(["one", "two", "young"], timestamps=[OLD, OLD + 1, NOW]),
                    *(sample(n, timestamp=OLD) for n in (1, 2)),
                    sample(3, timestamp=NOW),
                )
            )

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Stores]:
        data = self.folder / "data"
        async with stores_in(data, EmbeddedEventStore(data / "events", fsync=True)) as stores:
            yield stores

    async def fill(self) -> None:
        with suppress(EventStoreError, DocumentStoreError):
            async with self._opened() as stores:
                await stores.run(*ALL, archive=self._archive, moment="M", tell=self._told)

    def _told(self, gone: Gone) -> None:
        self.acknowledged += gone.events

    async def check(self) -> None:
        async with self._opened() as stores:
            left = {type: await contents(stores, type) for type in DUE}
            assert self.acknowledged <= sum(len(due - left[type]) for type, due in DUE.items())
            for type, due in DUE.items():
                assert due - left[type] <= {*self._archived(type)}
                assert YOUNG[type] <= left[type]
            await stores.run(*ALL, archive=self._archive, moment="N")
            assert stores.failures == []
            for type, due in DUE.items():
                assert await contents(stores, type) == YOUNG[type]
                assert sorted(self._archived(type)) == sorted(due)
        assert not list(self._archive.rglob("*.going.parquet"))
        assert not list(self._archive.rglob("*.part"))

    @property
    def _archive(self) -> Path:
        return self.folder / "archive"

    def _archived(self, type: EventType) -> list[str]:
        place = [column.name for column in COLUMNS[type]].index(CONTENT[type])
        return [str(row[place]) for path in self._archive.rglob(f"{type.plural}-*.parquet") for row in rows(path)]


if __name__ == "__main__":
    main(Attempt, sys.argv[1:])
