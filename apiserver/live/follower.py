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
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence, Set
from contextlib import aclosing
from typing import Any

from apiserver.common.off_loop import off_loop
from apiserver.events.changes import Changes, ChangesQuery, Cursor
from apiserver.events.model import Owner
from apiserver.live import telling
from apiserver.live.audiences import Audiences
from apiserver.live.bounds import LiveBounds
from apiserver.live.cursors import Place, with_statuses
from apiserver.live.reach import Closed, Reach
from apiserver.live.task_documents import PAUSE, Looks, TaskDocuments
from apiserver.live.telling import Chunk, Event
from apiserver.live.watchers import Audience, Subscription, Waiting, Watcher
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.documents.scoped import VisibleDocuments
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.protocols.changes import ChangeFeed

log = logging.getLogger(__name__)

#: Seconds after an error of a store.
RETRY = 1.0
#: Bytes of chunks that are made before others have their turn on the event loop. Giving one to a watcher, who then
#: sends it, takes as long as making so many bytes.
_AT_ONCE, _GIVING = 2**20, 2**14
#: Statuses that are told together when a watcher joins.
_TOLD_AT_ONCE = 100


class NothingToFollow(Exception):
    """None of the tasks and projects is there for this company."""


class TooManyTasks(Exception):
    """The projects have more tasks than one watcher may follow."""


class Follower:
    """Follows tasks for the watchers of one company, who may read `documents` of the `store`.

    `sign` makes the text of a cursor. `ended` is called when nobody has watched for a while.
    """

    def __init__(
        self,
        events: ChangeFeed,
        store: DocumentStore,
        documents: VisibleDocuments,
        waiting: Waiting,
        bounds: LiveBounds,
        sign: Callable[[Cursor], str],
        ended: Callable[[], None],
    ) -> None:
        self._events = events
        self._documents = TaskDocuments(documents, bounds.tasks)
        self._company = documents.company
        self._waiting = waiting
        self._bounds = bounds
        self._sign = sign
        self._ended = ended
        self._audiences = Audiences()
        self._reach = Reach()
        self._looks = Looks(store)
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
            await self._reach.until_covered(lambda: self._owners(audience.tasks))
            watcher.begin(await self._beginning(audience, since))
            if self._reach.is_closed:
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
            self._audiences.retire(watcher.audience)

    def close(self, reason: str) -> None:
        """End all watchers, who are told why."""
        self._task.cancel()
        self._reach.close()
        for audience in self._audiences:
            self._end(audience, reason)

    def _end(self, audience: Audience, reason: str) -> None:
        chunk = Chunk([telling.end(reason)], self._cursor_of(audience))
        for watcher in audience.watchers:
            watcher.put(chunk)
            watcher.end(reason)

    async def _audience(self, asked: Subscription) -> Audience:
        """The audience of a subscription, which may be a new one."""
        if (audience := self._audiences.of(asked)) is not None:
            return audience
        ids = asked.tasks.union(*(await self._documents.by_project(asked.projects)).values())
        if len(ids) > self._bounds.tasks:
            raise TooManyTasks
        statuses = await self._documents.statuses(ids)
        if not statuses and not await self._documents.has_any(asked.projects):
            raise NothingToFollow
        if len(self._audiences.tasks | statuses.keys()) > self._bounds.followed:
            raise EventStoreBusy("too many tasks are followed", retry_after=10, overloaded=False)
        if (audience := self._audiences.of(asked)) is not None:  # somebody else made it meanwhile
            return audience
        self._looks.forget()
        return self._audiences.open(asked, statuses)

    def _owners(self, tasks: Iterable[str]) -> Set[Owner]:
        """The owners of the tasks' events, and one without events: cursors of some engines name the companies asked."""
        return {Owner(self._company, ""), *self._audiences.owners(tasks)}

    async def _beginning(self, audience: Audience, since: Place | None) -> Iterator[Chunk]:
        """What a newcomer is told first."""
        events, text = [telling.gone(id) for id in sorted(audience.missing)], self._reach.text
        if since is not None:
            changes = await self._events.changes(ChangesQuery(self._owners(audience.tasks), since.cursor))
            for of_task in (await _encoded(changes)).values():
                events += of_task
            text = self._sign(changes.cursor)
        if sum([len(event.data) for event in events]) > telling.MOST_BYTES:
            events = [telling.reset(None)]
        knows_statuses = since is not None and since.statuses == audience.mark
        return self._chunks(audience, events, text, [] if knows_statuses else list(audience.tasks))

    def _chunks(self, audience: Audience, events: Sequence[Event], text: str, tasks: Sequence[str]) -> Iterator[Chunk]:
        mark = audience.mark  # a status that changes later is told later, too
        while len(tasks) > _TOLD_AT_ONCE:
            yield Chunk(self._audiences.statuses(tasks[:_TOLD_AT_ONCE]), None)
            tasks = tasks[_TOLD_AT_ONCE:]
        yield Chunk([*self._audiences.statuses(tasks), *events], with_statuses(text, mark))

    def _cursor_of(self, audience: Audience) -> str | None:
        return with_statuses(self._reach.text, audience.mark) if self._reach.text else None

    # --- rounds --------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        used = time.monotonic()
        while self._users or time.monotonic() - used < self._bounds.linger_seconds:
            used = time.monotonic() if self._users else used
            try:
                self._reach.more.clear()
                owners = self._owners(self._audiences.tasks)
                async with aclosing(self._events.watch(ChangesQuery(owners, self._reach.cursor))) as watch:
                    await self._rounds(watch, owners)
            except Exception as error:
                self._fails(error)
                await asyncio.sleep(RETRY)
        self._ended()

    async def _rounds(self, watch: AsyncGenerator[Changes, None], owners: Set[Owner]) -> None:
        """Tell what changes, until more tasks are to be followed, or nobody has watched for a while."""
        changes: Changes | None = await anext(watch)
        more = asyncio.ensure_future(self._reach.more.wait())
        asking: asyncio.Future[Changes] | None = None
        used = time.monotonic()
        try:
            while True:
                if changes is not None:
                    await self._note(changes)
                self._reach.cover(owners)
                await self._look()
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

    async def _note(self, changes: Changes) -> None:
        """Note what the audiences have to be told of events."""
        for task, events in (await _encoded(changes)).items():
            self._audiences.tell(task, *events)
        self._reach.advance(changes.cursor, self._sign(changes.cursor))

    async def _tell(self) -> bool:
        """Give audiences what they have to be told; returns whether there was anything."""
        due = self._audiences.take_due()
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

    async def _look(self) -> None:
        """Look at documents if that is due. Where it fails, events are told meanwhile."""
        try:
            if self._looks.begin():
                await self._look_at_projects()
                await self._look_at_statuses()
                self._looks.end()
            self._is_failing = False
        except DocumentStoreError as error:
            self._fails(error)
            self._looks.fail(RETRY)

    async def _look_at_statuses(self) -> None:
        """Note which tasks have another status, and which are gone."""
        ids = list(self._audiences.tasks)
        statuses = await self._documents.statuses(ids)
        for id in ids:
            if id not in self._audiences.tasks:  # nobody watches it any more
                continue
            if id in statuses:
                self._audiences.update(id, statuses[id])
            else:
                self._audiences.lose(id)

    async def _look_at_projects(self) -> None:
        """Note which tasks came into projects, and which left them."""
        audiences = [audience for audience in self._audiences if audience.asked.projects]
        if not audiences:
            return
        by_project = await self._documents.by_project(
            frozenset().union(*[audience.asked.projects for audience in audiences])
        )
        watched = self._audiences.tasks
        new = {id for ids in by_project.values() for id in ids if id not in watched}
        statuses = await self._documents.statuses(new)
        for audience in audiences:
            if audience not in self._audiences:  # it has ended meanwhile
                continue
            inside = set().union(*[by_project.get(project, ()) for project in audience.asked.projects])
            if len(inside) > self._bounds.tasks:
                self._end(audience, f"there are more than {self._bounds.tasks} tasks in these projects")
                continue
            for id in audience.tasks - inside - audience.asked.tasks:
                self._audiences.leave(audience, id)
            for id in inside - audience.tasks:
                status = self._audiences.status(id) or statuses.get(id)
                if status is not None and len(self._audiences.tasks) < self._bounds.followed:
                    self._audiences.enter(audience, id, status)
                    self._reach.more.set()


async def _encoded(changes: Changes) -> dict[str, list[Event]]:
    """The events of each task of which something changed."""
    size = sum([len(changed.series) for changed in changes.owners.values()])
    tasks = [(owner.id, changed) for owner, changed in changes.owners.items() if owner.id]
    return await off_loop(size, lambda: {id: telling.changes(id, changed) for id, changed in tasks})
