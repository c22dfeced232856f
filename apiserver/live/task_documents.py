"""Reads what live streams tell of documents: which tasks lie in projects, and the statuses of tasks."""

from __future__ import annotations

import time
from collections.abc import Collection

from apiserver.live.statuses import FIELDS, READ, Status, status_of
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import In
from apiserver.stores.documents.scoped import PUBLIC, VisibleDocuments

#: Documents that are read at a time.
_AT_ONCE = 500
#: Seconds between two looks, as between two rounds of the follower.
PAUSE = 0.25
#: The same at documents that other servers may change.
_PAUSE_IF_SHARED = 1.0
#: Looking takes a tenth of the time at most.
_REST = 10


class TaskDocuments:
    """The tasks and projects of which the readers of one company may know."""

    def __init__(self, documents: VisibleDocuments, most_tasks: int) -> None:
        """`most_tasks`: of a project that has more, only one more is read."""
        self._documents = documents
        self._most_tasks = most_tasks

    async def statuses(self, tasks: Collection[str]) -> dict[str, Status]:
        """The statuses of tasks by their ids; a task that is not there has none."""
        ids, statuses = list(tasks), dict[str, Status]()
        for start in range(0, len(ids), _AT_ONCE):
            documents = await self._documents.find_kept("tasks", ids[start : start + _AT_ONCE], READ)
            statuses |= {document["id"]: status_of(document) for document in documents}
        return statuses

    async def by_project(self, projects: Collection[str]) -> dict[str, set[str]]:
        """The ids of the tasks that lie in each of these projects: of all, unless they are too many for a watcher."""
        ids: dict[str, set[str]] = {}
        if projects:
            inside = {"project": In(list(projects))}
            most = (self._most_tasks + 1) * len(projects)
            for task in await self._documents.find("tasks", inside, projection=("id", "project"), limit=most):
                ids.setdefault(task["project"], set()).add(task["id"])
        return ids

    async def has_any(self, projects: Collection[str]) -> bool:
        """Whether at least one of the projects exists."""
        return bool(projects) and await self._documents.count("projects", {"id": In(list(projects))}) > 0


class Looks:
    """When to look at documents again: not before they may have changed, nor too soon after the last look."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._seen: int | None = None
        """The number of the store's changes (see `DocumentStore.changes`) of which a look has seen the documents."""
        self._looking: int | None = None
        self._began = 0.0
        self._next = 0.0
        """When (monotonic) the next look may begin."""

    def begin(self) -> bool:
        """Whether a look is due, which begins now."""
        number, now = self._store.changes("tasks", (*FIELDS, "company", PUBLIC)), time.monotonic()
        if now < self._next or (number == self._seen and not self._store.shared):
            return False
        self._looking, self._began = number, now
        return True

    def end(self) -> None:
        """The look has seen all documents."""
        self._seen = self._looking
        took = time.monotonic() - self._began
        self._next = self._began + max(_PAUSE_IF_SHARED if self._store.shared else PAUSE, _REST * took)

    def fail(self, seconds: float) -> None:
        """The look failed: the next one begins so many seconds later."""
        self._next = time.monotonic() + seconds

    def forget(self) -> None:
        """A document was read beside looks, and may have changed since: neither this look nor the last has seen it."""
        self._seen = self._looking = None
