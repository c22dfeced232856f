"""A pair of stores with tasks and events, and short ways to fill them and to run retention on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from apiserver.events.model import EventType, Owner
from apiserver.fileserver.addresses import LOCAL
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.retention.archive import Archive
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.run import Gone, Run
from apiserver.settings.retention_rules import RetentionRule
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.embedded.store import EmbeddedEventStore

COMPANY = "company"
DAY = 86_400_000
#: The day of the run, 2023-11-14, in epoch milliseconds.
NOW = 1_700_000_000_000
OWNER = Owner(COMPANY, "task")

LOGS = RetentionRule(("logs",), "90 d")
IMAGES = RetentionRule(("images",), "2 iterations")


async def _at_once() -> None:
    pass


class NotedFiles:
    """Notes which files are to be deleted."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.before: list[int] = []
        """Files that were uploaded after these times stay."""

    async def hosts(self, company: str) -> set[str]:
        return {"files.example", *LOCAL}

    async def add_names(self, company: str, files: Collection[str], before: int) -> None:
        self.names |= set(files)
        self.before.append(before)


class Stores:
    """Both stores, and a run on them."""

    def __init__(self, events: EventStore, documents: DocumentStore) -> None:
        self.events = events
        self.documents = documents
        self.files = NotedFiles()
        self.bounds = RetentionBounds()
        self.failures: list[str] = []

    async def task(self, id: str = "task", **fields: Any) -> Owner:
        """A completed task, a year old."""
        usual = {"company": COMPANY, "name": f"name of {id}", "status": "completed", "type": "training"}
        await self.documents.insert("tasks", [{"id": id, **usual, "created": "2022-01-01T00:00:00+00:00", **fields}])
        return Owner(COMPANY, id)

    async def project(self, name: str) -> str:
        """The id of a new project."""
        await self.documents.insert("projects", [{"id": f"id of {name}", "company": COMPANY, "name": name}])
        return f"id of {name}"

    async def would_go(self, *rules: RetentionRule, now: int = NOW) -> list[Gone]:
        return [gone async for gone in Run(self.events, self.documents, rules, now=now, bounds=self.bounds).would_go()]

    async def run(
        self,
        *rules: RetentionRule,
        now: int = NOW,
        archive: Path | None = None,
        moment: str = "now",
        before_each: Callable[[], Awaitable[None]] = _at_once,
        tell: Callable[[Gone], None] = lambda gone: None,
    ) -> list[Gone]:
        """Delete, and `tell` of each part; what could not be deleted is in `failures`."""
        run = Run(self.events, self.documents, rules, now=now, bounds=self.bounds)
        self.failures = run.failures
        kept = Archive(archive, moment) if archive is not None else None
        deleted = []
        async for gone in run.delete(kept, cast(FileDeletions, self.files), before_each):
            tell(gone)
            deleted.append(gone)
        return deleted

    async def count(self, type: EventType, owner: Owner = OWNER) -> int:
        return await self.events.events_count(owner, [type])


@asynccontextmanager
async def stores_in(folder: Path, events: EventStore | None = None) -> AsyncIterator[Stores]:
    """Stores in a folder, of which the one of events may be another one."""
    documents = SqliteDocumentStore(folder / "documents.db")
    made = events or EmbeddedEventStore(folder / "events")
    async with AsyncExitStack() as opened:
        for store in (made, documents):
            opened.push_async_callback(store.close)
            await store.open()
        yield Stores(made, documents)
