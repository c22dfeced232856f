"""All live streams of a server: who may open one more, who follows for whom, and when streams end.

Streams hold connections for hours, so their number is bounded: for all, and for each user, so that nobody takes all of
them. Every 15 seconds, each stream says something, and ends if its reader's credentials have ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.live.bounds import LiveBounds
from apiserver.live.cursors import place_of, text_of
from apiserver.live.follower import Follower
from apiserver.live.reach import Closed
from apiserver.live.telling import Chunk, end
from apiserver.live.watchers import Subscription, Waiting, Watcher
from apiserver.reading.scroll import Scrolls
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.scoped import VisibleDocuments
from apiserver.stores.events.protocols.changes import ChangeFeed

log = logging.getLogger(__name__)

STOPPING = "the server stops"
CREDENTIALS = "the credentials have ended"


class TooManyStreams(Exception):
    """There is no room for one more stream: of this user, or of anybody."""

    def __init__(self, *, of_user: bool) -> None:
        super().__init__()
        self.of_user = of_user


@dataclass(frozen=True, slots=True)
class Reader:
    """Who opens a stream. `may_go_on` is asked again and again while the stream is open."""

    company: str
    user: str
    may_go_on: Callable[[], Awaitable[bool]]


class _Open(NamedTuple):
    """An open stream: who follows for it, and what its user has taken for it."""

    follower: Follower
    reader: Reader
    tasks: int


class Hub:
    """Opens live streams. The stores are open as long as there are any."""

    def __init__(
        self, events: ChangeFeed, documents: DocumentStore, scrolls: Scrolls, bounds: LiveBounds | None = None
    ) -> None:
        self._events = events
        self._documents = documents
        self._scrolls = scrolls
        self.bounds = bounds = bounds or LiveBounds()
        self._streams, self._tasks = (_Room(most, bounds.of_one_user) for most in (bounds.streams, bounds.tasks_in_all))
        self._waiting = Waiting(bounds.waiting_bytes, bounds.waiting_bytes_in_all)
        self._followers: dict[str, Follower] = {}
        self._open: dict[Watcher, _Open] = {}
        self._turns: deque[tuple[float, Watcher]] = deque()
        """The streams in the order of their next turn."""
        self._turning: asyncio.Task[None] | None = None
        self._is_closed = False

    async def join(self, reader: Reader, asked: Subscription, since: str | None) -> Watcher:
        """A watcher of what the reader asks for, who begins with what changed since a cursor.

        The caller calls `leave` at the end. Raises InvalidScroll if the reader's company was not given this cursor,
        NothingToFollow, TooManyTasks, TooManyStreams, Closed, EventStoreError and DocumentStoreError.
        """
        place = place_of(self._scrolls, reader.company, since) if since else None
        follower = self._follower(reader.company)
        self._streams.take(reader.user, 1)
        try:
            watcher = await follower.join(asked, place)
        except BaseException:
            self._streams.give(reader.user, 1)
            raise
        tasks = len(watcher.audience.tasks)
        try:
            self._tasks.take(reader.user, tasks)
        except TooManyStreams:
            follower.leave(watcher)
            self._streams.give(reader.user, 1)
            raise
        self._open[watcher] = _Open(follower, reader, tasks)
        self._take_turns(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Nobody reads what the watcher is told any more."""
        opened = self._open.pop(watcher)
        opened.follower.leave(watcher)
        self._streams.give(opened.reader.user, 1)
        self._tasks.give(opened.reader.user, opened.tasks)

    def close(self) -> None:
        """End all streams: their readers come back to another server, or to this one when it runs again."""
        self._is_closed = True
        if self._turning is not None:
            self._turning.cancel()
        for follower in self._followers.values():
            follower.close(STOPPING)
        self._followers.clear()

    def _follower(self, company: str) -> Follower:
        if self._is_closed:
            raise Closed
        if company not in self._followers:
            self._followers[company] = Follower(
                self._events,
                self._documents,
                VisibleDocuments(self._documents, company),
                self._waiting,
                self.bounds,
                lambda cursor: text_of(self._scrolls, company, cursor),
                lambda: self._forget(company),
            )
        return self._followers[company]

    def _forget(self, company: str) -> None:
        self._followers.pop(company, None)

    # --- turns ---------------------------------------------------------------------------------------

    def _take_turns(self, watcher: Watcher) -> None:
        self._turns.append((asyncio.get_running_loop().time() + self.bounds.turn_seconds, watcher))
        if self._turning is None or self._turning.done():
            self._turning = asyncio.create_task(self._turn_around(), name="live turns")

    async def _turn_around(self) -> None:
        """Give each stream its turn when it is due, until there is none."""
        loop = asyncio.get_running_loop()
        while self._turns:
            due, watcher = self._turns[0]
            await asyncio.sleep(due - loop.time())
            self._turns.popleft()
            opened = self._open.get(watcher)
            if opened is None or watcher.reason is not None:
                continue
            if await self._may_go_on(opened.reader):
                watcher.put(Chunk((), None))
                self._turns.append((loop.time() + self.bounds.turn_seconds, watcher))
            else:
                watcher.put(Chunk([end(CREDENTIALS)], None))
                watcher.end(CREDENTIALS)

    async def _may_go_on(self, reader: Reader) -> bool:
        """Whether the reader's credentials are still valid, as far as can be told now."""
        try:
            return await reader.may_go_on()
        except Exception as error:  # the store of documents cannot tell: a later turn will
            log.warning("the credentials of a live stream cannot be checked now: %s", error)
            return True


class _Room:
    """Counts what users take of something that is bounded."""

    def __init__(self, most: int, of_one_user: float) -> None:
        self._most = most
        self._of_one_user = of_one_user
        self._taken: Counter[str] = Counter()
        self._all = 0

    def take(self, user: str, count: int) -> None:
        """The user takes so much. Raises TooManyStreams if that is more than the user may have, or there is."""
        if self._taken[user] + count > max(int(self._most * self._of_one_user), 1):
            raise TooManyStreams(of_user=True)
        if self._all + count > self._most:
            raise TooManyStreams(of_user=False)
        self.give(user, -count)

    def give(self, user: str, count: int) -> None:
        """The user gives so much back."""
        self._all -= count
        self._taken[user] -= count
        if not self._taken[user]:
            del self._taken[user]
