"""Follows the tasks that anybody of one company watches: one look at the stores serves all watchers.

A round waits until something changes, looks at the stores, and gives each audience a chunk. Then it rests for `PAUSE`,
in which further changes come together. So no task is told of more often than that.

The events are followed with a cursor, so no change is missed whatever happens between two looks. A watcher who joins is
first told what changed since its own cursor, and only after the follower has begun to look for its tasks:

    the follower looks        cursor A; task t is not followed yet
    a watcher of t joins      t is followed from now on, and the follower looks again: cursor B
    what changed since C      is told to the watcher, from the cursor that it came with to cursor D
    the follower looks        what changed since B, perhaps some of it again
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from apiserver.common.off_loop import off_loop
from apiserver.events.changes import Changes, ChangesQuery, Cursor
from apiserver.events.model import Owner
from apiserver.live import telling
from apiserver.live.bounds import LiveBounds
from apiserver.live.cursors import Place, with_statuses
from apiserver.live.statuses import FIELDS, READ, Status, status_of
from apiserver.live.telling import Chunk, Event
from apiserver.live.watchers import Audience, Subscription, Waiting, Watcher
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.documents.query import In
from apiserver.stores.documents.scoped import PUBLIC, VisibleDocuments
from apiserver.stores.events.base import EventStore, EventStoreBusy, EventStoreError

log = logging.getLogger(__name__)

#: Seconds between two rounds.
PAUSE = 0.25
#: Seconds between two reads of documents that other servers may change. Reading takes a tenth of the time at most.
LOOK, _REST = 1.0, 10
#: Seconds after an error of a store.
RETRY = 1.0
#: Seconds for which a watcher who joins waits until its tasks are followed.
PATIENCE = 15.0
#: Bytes of chunks that are made before others have their turn on the event loop. Giving one to a watcher, who then
#: sends it, takes as long as making so many bytes.
_AT_ONCE, _GIVING = 2**20, 2**14
#: Documents that are read at a time, and statuses that are told together when a watcher joins.
_READ_AT_ONCE, _TOLD_AT_ONCE = 500, 100


class NothingToFollow(Exception):
    """None of the tasks and projects is there for this company."""


class TooManyTasks(Exception):
    """The projects have more tasks than one watcher may follow."""


class Closed(Exception):
    """Nobody is followed any more, because the server stops."""


class Follower:
    """Follows tasks for the watchers of one company, who may read `documents` of the `store`.

    `sign` makes the text of a cursor. `ended` is called when nobody has watched for a while.
    """

    def __init__(
        self,
        events: EventStore,
        store: DocumentStore,
        documents: VisibleDocuments,
        waiting: Waiting,
        bounds: LiveBounds,
        sign: Callable[[Cursor], str],
        ended: Callable[[], None],
    ) -> None:
        self._events = events
        self._store = store
        self._documents = documents
        self._waiting = waiting
        self._bounds = bounds
        self._sign = sign
        self._ended = ended
        self._audiences: dict[Subscription, Audience] = {}
        """The audiences that newcomers may join."""
        self._open: set[Audience] = set()
        """All audiences."""
        self._of_task: defaultdict[str, set[Audience]] = defaultdict(set)
        self._statuses: dict[str, Status] = {}
        """Of each task in `_of_task`."""
        self._followed: frozenset[Owner] = frozenset()
        self._cursor: Cursor = None
        self._text = ""
        """The signed text of the cursor."""
        self._begun: list[asyncio.Future[None]] = []
        """Those who wait until more tasks are followed."""
        self._more = asyncio.Event()
        """More tasks are to be followed."""
        self._due: set[Audience] = set()
        """Audiences that have to be told something."""
        self._number = -1
        """Differs when documents have changed since they were read (see `DocumentStore.changes`)."""
        self._look_at = 0.0
        """When (monotonic) documents may be read again."""
        self._is_closed = False
        self._is_failing = False
        self._users = 0
        """Watchers, and those who are about to be."""
        self._task = asyncio.create_task(self._follow(), name="live")

    # --- watchers ------------------------------------------------------------------------------------

    async def join(self, asked: Subscription, since: Place | None) -> Watcher:
        """A new watcher, who begins with what changed since its place. The caller calls `leave` at the end.

        Raises NothingToFollow, TooManyTasks, Closed, EventStoreError and DocumentStoreError.
        """
        self._users += 1
        try:
            audience = await self._audience(asked)
        except BaseException:
            self._users -= 1
            raise
        watcher = Watcher(audience, self._waiting)
        audience.watchers.add(watcher)
        try:
            await self._until_followed(audience)
            watcher.begin(await self._beginning(audience, since))
            if self._is_closed:
                raise Closed
        except BaseException:
            self.leave(watcher)
            raise
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        watcher.forget()
        watcher.audience.watchers.discard(watcher)
        self._users -= 1
        if not watcher.audience.watchers:
            self._retire(watcher.audience)

    def close(self, reason: str) -> None:
        """End all watchers, who are told why."""
        self._is_closed = True
        self._task.cancel()
        self._let_begin()
        for audience in self._open:
            self._end(audience, reason)

    def _end(self, audience: Audience, reason: str) -> None:
        chunk = Chunk([telling.end(reason)], self._cursor_of(audience))
        for watcher in audience.watchers:
            watcher.put(chunk)
            watcher.end(reason)

    async def _audience(self, asked: Subscription) -> Audience:
        """The audience of a subscription. An audience that lacks a task is not for newcomers: it may be there now."""
        known = self._audiences.get(asked)
        if known is not None and not known.missing:
            return known
        ids = asked.tasks.union(*(await self._by_project(asked.projects)).values())
        if len(ids) > self._bounds.tasks:
            raise TooManyTasks
        found = await self._read(ids)
        if not found and not await self._are_there(asked.projects):
            raise NothingToFollow
        if len(self._of_task.keys() | found.keys()) > self._bounds.followed:
            raise EventStoreBusy("too many tasks are followed", retry_after=10, overloaded=False)
        known = self._audiences.get(asked)
        if known is not None and not known.missing:  # somebody else made it meanwhile
            return known
        audience = self._audiences[asked] = Audience(asked, asked.tasks - found.keys())
        self._open.add(audience)
        self._number = -1  # what was read may have changed since
        for id, status in found.items():
            self._add(audience, id, status)
        return audience

    def _add(self, audience: Audience, id: str, status: Status) -> None:
        """The audience watches this task from now on."""
        audience.tasks.add(id)
        self._of_task[id].add(audience)
        audience.mark ^= self._statuses.setdefault(id, status).mark

    def _remove(self, audience: Audience, id: str) -> None:
        """The audience watches this task no more."""
        audience.tasks.discard(id)
        audience.mark ^= self._statuses[id].mark
        self._of_task[id].discard(audience)
        if not self._of_task[id]:
            del self._of_task[id], self._statuses[id]

    def _retire(self, audience: Audience) -> None:
        """Nobody watches this audience's tasks any more."""
        if self._audiences.get(audience.asked) is audience:
            del self._audiences[audience.asked]
        self._open.discard(audience)
        for id in list(audience.tasks):
            self._remove(audience, id)

    async def _until_followed(self, audience: Audience) -> None:
        """Return when the follower looks for all of the audience's tasks."""
        try:
            async with asyncio.timeout(PATIENCE):
                while self._cursor is None or not self._owners(audience.tasks) <= self._followed:
                    if self._is_closed:
                        raise Closed
                    begun = asyncio.get_running_loop().create_future()
                    self._begun.append(begun)
                    self._more.set()
                    await begun
        except TimeoutError:
            raise EventStoreBusy("tasks cannot be followed now", retry_after=2, overloaded=False) from None

    def _owners(self, tasks: Iterable[str]) -> set[Owner]:
        """The owners of the tasks' events, and one without events: cursors of some engines name the companies asked."""
        return {Owner(self._documents.company, ""), *(Owner(self._statuses[id].company, id) for id in tasks)}

    async def _beginning(self, audience: Audience, since: Place | None) -> Iterator[Chunk]:
        """What a newcomer is told first."""
        events, text = [telling.gone(id) for id in sorted(audience.missing)], self._text
        if since is not None:
            changes = await self._events.changes(ChangesQuery(self._owners(audience.tasks), since.cursor))
            for told in (await self._encoded(changes)).values():
                events += told
            text = self._sign(changes.cursor)
        if sum([len(event.data) for event in events]) > telling.MOST_BYTES:
            events = [telling.reset(None)]
        anew = since is None or since.statuses != audience.mark
        return self._chunks(audience, events, text, list(audience.tasks) if anew else [])

    def _chunks(self, audience: Audience, events: Sequence[Event], text: str, tasks: Sequence[str]) -> Iterator[Chunk]:
        mark = audience.mark  # a status that changes later is told later, too
        while len(tasks) > _TOLD_AT_ONCE:
            yield Chunk(self._statuses_of(tasks[:_TOLD_AT_ONCE]), None)
            tasks = tasks[_TOLD_AT_ONCE:]
        yield Chunk([*self._statuses_of(tasks), *events], with_statuses(text, mark))

    def _statuses_of(self, tasks: Sequence[str]) -> list[Event]:
        return [self._statuses[id].event for id in tasks if id in self._statuses]

    def _cursor_of(self, audience: Audience) -> str | None:
        return with_statuses(self._text, audience.mark) if self._text else None

    # --- rounds --------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        used = time.monotonic()
        while self._users or time.monotonic() - used < self._bounds.linger_seconds:
            used = time.monotonic() if self._users else used
            try:
                self._more.clear()
                owners = frozenset(self._owners(self._of_task))
                async with aclosing(self._events.watch(ChangesQuery(owners, self._cursor))) as watch:
                    await self._rounds(watch, owners)
            except Exception as error:
                self._fails(error)
                await asyncio.sleep(RETRY)
        self._ended()

    async def _rounds(self, watch: AsyncGenerator[Changes, None], owners: frozenset[Owner]) -> None:
        """Tell what changes, until more tasks are to be followed, or nobody has watched for a while."""
        changes: Changes | None = await anext(watch)
        more = asyncio.ensure_future(self._more.wait())
        asking: asyncio.Future[Changes] | None = None
        used = time.monotonic()
        try:
            while True:
                await self._note(changes)
                self._followed = owners
                self._let_begin()
                try:
                    await self._look_at_documents()
                    self._is_failing = False
                except DocumentStoreError as error:  # events are told meanwhile
                    self._fails(error)
                    self._look_at = time.monotonic() + RETRY
                if await self._tell():
                    await asyncio.sleep(PAUSE)  # before asking, so that changes meanwhile come together
                used = time.monotonic() if self._users else used
                if more.done() or time.monotonic() - used > self._bounds.linger_seconds:
                    return
                asking = asking or asyncio.ensure_future(anext(watch))
                either: list[asyncio.Future[Any]] = [asking, more]
                await asyncio.wait(either, timeout=PAUSE, return_when=asyncio.FIRST_COMPLETED)
                changes = None
                if asking.done():
                    changes, asking = asking.result(), None
        finally:
            for future in (more, asking):
                if future is not None:
                    future.cancel()
                    await asyncio.gather(future, return_exceptions=True)

    def _fails(self, error: Exception) -> None:
        """Log why nothing can be told for now, but not again and again."""
        if not self._is_failing:
            expected = isinstance(error, (EventStoreError, DocumentStoreError))
            log.warning("live streams wait: %s", error, exc_info=None if expected else error)
        self._is_failing = True

    def _let_begin(self) -> None:
        """Let those go on who wait until their tasks are followed."""
        begun, self._begun = self._begun, []
        for future in begun:
            if not future.done():
                future.set_result(None)

    async def _note(self, changes: Changes | None) -> None:
        """Note what the audiences have to be told of events."""
        if changes is None:
            return
        encoded = await self._encoded(changes)
        for task, events in encoded.items():
            self._put(task, *events)
        self._cursor, self._text = changes.cursor, self._sign(changes.cursor)

    async def _encoded(self, changes: Changes) -> dict[str, list[Event]]:
        """The events of each task of which something changed."""
        size = sum([len(changed.series) for changed in changes.owners.values()])
        each = [(one.id, changed) for one, changed in changes.owners.items() if one.id]
        return await off_loop(size, lambda: {id: telling.changes(id, changed) for id, changed in each})

    def _put(self, task: str, *events: Event) -> None:
        """Tell these events to all who watch the task."""
        for audience in self._of_task.get(task, ()):
            audience.due += events
            self._due.add(audience)

    async def _tell(self) -> bool:
        """Give audiences what they have to be told; returns whether there was anything."""
        due, self._due = self._due, set()
        work = 0
        for audience in due:
            chunk, audience.due = Chunk(audience.due, self._cursor_of(audience)), []
            work += len(chunk.stream())
            for watcher in list(audience.watchers):
                watcher.put(chunk)
                work += _GIVING
                if work > _AT_ONCE:
                    work = 0
                    await asyncio.sleep(0)
            if not audience.tasks and not audience.asked.projects:
                self._end(audience, "no task is left")
        return bool(due)

    # --- documents -----------------------------------------------------------------------------------

    async def _look_at_documents(self) -> None:
        """Note what the audiences have to be told of documents."""
        number, begun = self._store.changes("tasks", (*FIELDS, "company", PUBLIC)), time.monotonic()
        if (number == self._number and not self._store.shared) or begun < self._look_at:
            return
        await self._look_at_projects()
        asked = list(self._of_task)
        found = await self._read(asked)
        for id in asked:
            if id in self._of_task:
                self._compare(id, found.get(id))
        self._number = number
        took = time.monotonic() - begun
        self._look_at = begun + max(LOOK if self._store.shared else PAUSE, _REST * took)

    def _compare(self, id: str, status: Status | None) -> None:
        """Note whether a task's status is another one than before; None: there is no such task any more."""
        if status is None:
            self._put(id, telling.gone(id))
            for audience in list(self._of_task[id]):
                self._lose(audience, id)
            return
        before, self._statuses[id] = self._statuses[id], status
        if before.mark != status.mark:
            self._put(id, status.event)
            for audience in self._of_task[id]:
                audience.mark ^= before.mark ^ status.mark

    def _lose(self, audience: Audience, id: str) -> None:
        """The audience lost a task. If it was named, newcomers who name it get an audience of their own."""
        self._remove(audience, id)
        if id in audience.asked.tasks and self._audiences.get(audience.asked) is audience:
            del self._audiences[audience.asked]

    async def _look_at_projects(self) -> None:
        """Note which tasks came into projects, and which left them."""
        audiences = [audience for audience in self._open if audience.asked.projects]
        if not audiences:
            return
        now = await self._by_project(frozenset().union(*[audience.asked.projects for audience in audiences]))
        new = set().union(*now.values()) - self._of_task.keys()
        statuses = {**await self._read(new), **self._statuses}
        for audience in self._open.intersection(audiences):
            inside = set().union(*[now[project] for project in audience.asked.projects if project in now])
            if len(inside) > self._bounds.tasks:
                self._end(audience, f"there are more than {self._bounds.tasks} tasks in these projects")
                continue
            for id in audience.tasks - inside - audience.asked.tasks:
                audience.due.append(telling.gone(id))
                self._due.add(audience)
                self._remove(audience, id)
            for id in inside - audience.tasks:
                if id in statuses and len(self._of_task) < self._bounds.followed:
                    self._add(audience, id, statuses[id])
                    audience.due.append(self._statuses[id].event)
                    self._due.add(audience)
                    self._more.set()

    async def _by_project(self, projects: Collection[str]) -> dict[str, set[str]]:
        """The ids of the tasks that lie in these projects: of all, unless they are too many for a watcher."""
        found: dict[str, set[str]] = {}
        if projects:
            inside = {"project": In(list(projects))}
            most = (self._bounds.tasks + 1) * len(projects)
            for task in await self._documents.find("tasks", inside, projection=("id", "project"), limit=most):
                found.setdefault(task["project"], set()).add(task["id"])
        return found

    async def _are_there(self, projects: Collection[str]) -> bool:
        """Whether at least one of the projects exists."""
        return bool(projects) and await self._documents.count("projects", {"id": In(list(projects))}) > 0

    async def _read(self, tasks: Collection[str]) -> dict[str, Status]:
        """The statuses of those of these tasks that exist."""
        ids, found = list(tasks), dict[str, Status]()
        for start in range(0, len(ids), _READ_AT_ONCE):
            documents = await self._documents.find_kept("tasks", ids[start : start + _READ_AT_ONCE], READ)
            found |= {document["id"]: status_of(document) for document in documents}
        return found
