"""Goes over all tasks, and deletes what no rule keeps, or only tells what that is. It thins scalars if a rule says so.

What is published is never taken, and neither are reports, nor what is public. Tasks that are queued or running are left
alone until they are at rest. A task is looked at again just before something of it is deleted: if it is not at rest any
more, or another rule counts for it now, or events of this type came meanwhile, it is left for the next run. Events that
come even later stay: the store deletes only what was there when the run began to read the task's events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from apiserver.common.times import epoch_millis, utc_now
from apiserver.events.changes import ChangesQuery, Cursor
from apiserver.events.model import EventType, Owner
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.retention import due
from apiserver.operating.retention.archive import Archive
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.due import Due, PartlyDeleted
from apiserver.operating.retention.shown_files import ShownFiles
from apiserver.operating.retention.tables import Part
from apiserver.services.tasks.import_times import EVENTS_DELETED, IMPORTED
from apiserver.settings.retention_rules import RetentionRule, rule_for
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.paging import pages_by_id
from apiserver.stores.documents.query import Document, In, Update
from apiserver.stores.events.base import EventStore
from apiserver.tables.table import Batch

#: The statuses of tasks whose events may go.
AT_REST = ("created", "stopped", "closed", "failed", "completed")
_REPORT = "report"
_FIELDS = ("company", "name", "project", "type", "status", "public", "created", IMPORTED)
#: A run is given up after this many failures in a row. So a few tasks that always fail do not stop the others.
MOST_FAILURES = 10

log = logging.getLogger(__name__)


class RetentionError(Exception):
    """A run was given up."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Events of one type of a task that were deleted, or would be."""

    company: str
    project: str
    task: str
    name: str
    type: EventType
    keep: str
    """The rule in words, for people: how much it keeps."""
    events: int
    bytes: int
    """Of texts and documents; 0 for scalars."""
    oldest: int
    newest: int


class Run:
    """One look at all tasks, or at the tasks of one `company`, as of `now` (epoch ms)."""

    def __init__(
        self,
        events: EventStore,
        documents: DocumentStore,
        rules: Sequence[RetentionRule],
        *,
        now: int,
        company: str | None = None,
        bounds: RetentionBounds | None = None,
    ) -> None:
        self._events = events
        self._documents = documents
        self._rules = rules
        self._now = now
        self._company = company
        self._bounds = bounds or RetentionBounds()
        self._found_rules: dict[tuple[str | None, EventType], RetentionRule | None] = {}
        self.failures: list[str] = []
        """The events and files that could not be deleted, and why."""

    async def would_go(self) -> AsyncGenerator[Gone, None]:
        """The events that would be deleted now."""
        async for task, project, type, rule in self._looked_at():
            due_events = await self._due(Owner(task["company"], task["id"]), type, rule)
            if due_events is not None:
                summary = await self._summed(due_events)
                if summary.events:
                    yield summary.gone(task, project, type, rule)

    async def delete(
        self, archive: Archive | None, files: FileDeletions, before_each: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[Gone, None]:
        """Delete due events, with the files that only they show; RetentionError if that fails again and again.

        What is deleted is told at once, before anything else can fail. Before each task and type, `before_each` may
        wait, or raise to end the run.
        """
        shown = ShownFiles(self._events, self._documents, files, self._bounds)
        await self._delete_left(shown, before_each)
        in_a_row = 0
        async for task, project, type, rule in self._looked_at():
            await before_each()
            try:
                async with aclosing(self._delete_of(task, project, type, rule, archive, shown)) as deleted:
                    async for gone in deleted:
                        in_a_row = 0
                        yield gone
                in_a_row = 0
            except Exception as error:
                self._failed(type.plural, task["id"], error)
                in_a_row += 1
                if in_a_row >= MOST_FAILURES:
                    raise RetentionError(f"it failed {in_a_row} times in a row, at last: {error}") from error

    async def _delete_left(self, shown: ShownFiles, before_each: Callable[[], Awaitable[None]]) -> None:
        """Delete the files that an interrupted run has left."""
        async for left in shown.left():
            await before_each()
            try:
                await shown.delete(left)
            except Exception as error:
                self._failed("files", left.owner.id, error)

    def _failed(self, what: str, task: str, error: Exception) -> None:
        log.warning("%s of task %s stay: %s", what, task, error)
        self.failures.append(f"{what} of task {task}: {error}")

    async def _looked_at(self) -> AsyncIterator[tuple[Document, str | None, EventType, RetentionRule]]:
        """The tasks at rest, with each type that a rule does not keep for ever."""
        if not self._rules:
            return
        of = {} if self._company is None else {"company": self._company}
        async for some in pages_by_id(
            self._documents, "tasks", wanted=of, projection=_FIELDS, limit=self._bounds.tasks
        ):
            tasks = [task for task in some if _may_go(task)]
            projects = await self._project_names(tasks)
            await asyncio.to_thread(self._find_rules, {None, *projects.values()})
            for task in tasks:
                project = projects.get(task.get("project") or "")
                for type in EventType:
                    rule = self._found_rules[project, type]
                    if rule is not None and not self._is_young(task, rule):
                        yield task, project, type, rule

    async def _project_names(self, tasks: Sequence[Document]) -> dict[str, str]:
        ids = sorted({task["project"] for task in tasks if task.get("project")})
        documents = await self._documents.find("projects", {"id": In(ids)}, projection=["name"])
        return {document["id"]: document["name"] for document in documents}

    def _find_rules(self, projects: Collection[str | None]) -> None:
        """Find the rules of projects that were not seen yet. Long patterns take long, so this is for another thread."""
        for project in projects:
            if (project, EventType.LOG) not in self._found_rules:
                for type in EventType:
                    self._found_rules[project, type] = rule_for(self._rules, project, type.plural)

    def _is_young(self, task: Document, rule: RetentionRule) -> bool:
        """Whether the task itself is not as old as its events would have to be. Then they are not read at all."""
        before, since = rule.before(self._now), epoch_millis(task.get(IMPORTED) or task.get("created"))
        return before is not None and since is not None and since >= before

    async def _delete_of(
        self,
        task: Document,
        project: str | None,
        type: EventType,
        rule: RetentionRule,
        archive: Archive | None,
        shown: ShownFiles,
    ) -> AsyncGenerator[Gone, None]:
        """Delete the due events of a task and type, and tell of them; none if they are left for the next run."""
        owner = Owner(task["company"], task["id"])
        # Mostly nothing is due, and that is known sooner than a cursor.
        if await self._due(owner, type, rule) is None:
            await self._finish(archive, owner, type, None)
            return
        cursor = (await self._events.changes(ChangesQuery([owner]))).cursor
        due_events = await self._due(owner, type, rule)
        if due_events is None:
            return
        summary, path = await self._archived(task, project, rule, due_events, archive)
        if summary.events:
            if not await self._is_still_due(task, rule, type, owner, cursor):
                if path is not None:
                    await asyncio.to_thread(path.unlink)
                return
            gone = summary.gone(task, project, type, rule)
            noted = await shown.note(owner, summary.urls)
            if IMPORTED in task:
                await self._documents.update("tasks", {"id": owner.id}, Update(set={EVENTS_DELETED: utc_now()}))
            try:
                deleted = await due.delete(self._events, due_events, cursor)
            except PartlyDeleted as partly:
                yield replace(gone, events=partly.events)
                await shown.delete(noted)
                raise
            if deleted:
                yield replace(gone, events=min(deleted, summary.events))
            await shown.delete(noted)
            if deleted < summary.events:  # other events came in that very moment
                if (
                    path is not None and not deleted
                ):  # else the file has the events that stay; the next run completes it
                    await asyncio.to_thread(path.unlink)
                return
        await self._finish(archive, owner, type, path)

    async def _due(self, owner: Owner, type: EventType, rule: RetentionRule) -> Due | None:
        return await due.find(self._events, owner, type, rule, self._now, self._bounds)

    async def _archived(
        self, task: Document, project: str | None, rule: RetentionRule, due_events: Due, archive: Archive | None
    ) -> tuple[_Summary, Path | None]:
        """How much is due; with an archive, also the file to which the due events were written, unless it has all."""
        if archive is None:
            return await self._summed(due_events), None
        owner, type = due_events.owner, due_events.type
        about = {"company": owner.company, "task": owner.id, "name": task.get("name", ""), "project": project or ""}
        summary = _Summary()
        batches = summary.of(due.parts(self._events, due_events))
        path = await archive.write(owner, type, batches, {**about, "type": type.value, "keep": rule.kept})
        return summary, path

    async def _summed(self, due_events: Due) -> _Summary:
        """How much is due. If the store does not tell it, all due events are read, once."""
        summary = _Summary()
        if totals := await due.totals(self._events, due_events):
            summary.events, summary.oldest, summary.newest = totals
            return summary
        async with aclosing(due.parts(self._events, due_events)) as parts:
            async for part in parts:
                summary.add(part)
        return summary

    async def _finish(self, archive: Archive | None, owner: Owner, type: EventType, path: Path | None) -> None:
        if archive is not None:
            stored = _Summary().of(due.parts(self._events, due.everything(owner, type)))
            await archive.finish(owner, type, path, stored)

    async def _is_still_due(
        self, task: Document, rule: RetentionRule, type: EventType, owner: Owner, cursor: Cursor
    ) -> bool:
        """Whether the task is as it was, and no events of this type came since the cursor."""
        task_now = await self._documents.find_one("tasks", {"id": task["id"]}, projection=_FIELDS)
        if task_now is None or not _may_go(task_now) or self._is_young(task_now, rule):
            return False
        project = (await self._project_names([task_now])).get(task_now.get("project") or "")
        if rule_for(self._rules, project, type.plural) != rule:
            return False
        changed = (await self._events.changes(ChangesQuery([owner], cursor))).owners.get(owner)
        return changed is None or not changed.may_have(type)


def _may_go(task: Document) -> bool:
    """Whether a rule may take events of the task: it is at rest, private, and no report."""
    return task.get("status") in AT_REST and task.get("type") != _REPORT and not task.get("public")


class _Summary:
    """Adds up the due events of a task and type."""

    def __init__(self) -> None:
        self.events = self.bytes = 0
        self.oldest, self.newest = 2**63 - 1, -(2**63)
        self.urls: set[str] = set()

    def add(self, part: Part) -> None:
        self.events += part.batch.rows
        self.bytes += part.bytes
        self.oldest, self.newest = min(self.oldest, part.oldest), max(self.newest, part.newest)
        self.urls |= part.urls

    async def of(self, parts: AsyncGenerator[Part, None]) -> AsyncGenerator[Batch, None]:
        """The batches of the parts, which are added up meanwhile."""
        async with aclosing(parts):
            async for part in parts:
                self.add(part)
                yield part.batch

    def gone(self, task: Document, project: str | None, type: EventType, rule: RetentionRule) -> Gone:
        amounts = (self.events, self.bytes, self.oldest, self.newest)
        return Gone(task["company"], project or "", task["id"], task.get("name", ""), type, rule.kept, *amounts)
