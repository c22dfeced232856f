"""How many bytes answers may take, as they are made in memory: what is read for one, and all that are under way.

What is read for an answer is counted while it is read (`hold`), and once the answer is made, its JSON until the client
has taken it. An answer alone may read 64 MB. When all together have more than that, whoever would read more gives up
what it has, waits until there is room for as much, and reads again. Nobody waits with much in hand, so memory stays
bounded by what is counted, however many ask at once.

Answers of up to 1 MB may go on to twice that bound, so that large ones which are taken slowly do not hold them up. Tiny
ones are not counted.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

#: What may be read for one answer, in bytes: of a single document or event that is larger, that one.
LARGEST = 64 * 2**20
#: An answer of up to this size finds room until all answers together have twice their bound.
SMALL = 2**20
#: Answers that are no larger are not counted.
TINY = 64 * 2**10
#: Seconds that who makes an answer waits for room.
PATIENCE = 10

T = TypeVar("T")


class AnswerTooLarge(Exception):
    """More would be read for an answer than it may have."""


class NoRoom(Exception):
    """All answers together have too much; `Held.room` waits until they have less."""


class NoRoomForLong(Exception):
    """That was waited for in vain."""


@dataclass(eq=False, slots=True)
class _Waiting:
    size: int
    admitted: asyncio.Future[None]


class Answers:
    """Counts the bytes of all answers under way, up to `limit`. For one event loop; `take` is for any thread."""

    def __init__(self, limit: int = LARGEST) -> None:
        self._limit = limit
        self._bytes = 0
        self._lock = threading.Lock()
        self._queue: list[_Waiting] = []

    def take(self, size: int, of: int) -> None:
        """`size` bytes more are held, for one of `of`; NoRoom, and they are not, when these are too many."""
        with self._lock:
            if not self._has_room(size, of):
                raise NoRoom
            self._bytes += size

    def change(self, size: int) -> None:
        """So many bytes more are held whether there is room or not, or, when `size` is negative, so many less."""
        with self._lock:
            self._bytes += size
        self._admit()

    async def room(self, size: int) -> None:
        """Return when so many bytes are held for the caller; who waits longest comes first. NoRoomForLong."""
        waiting = _Waiting(size, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._admit()
        try:
            async with asyncio.timeout(PATIENCE):
                await waiting.admitted
        except BaseException as error:
            if waiting in self._queue:
                self._queue.remove(waiting)
            elif not waiting.admitted.cancelled():
                self.change(-size)
            if isinstance(error, TimeoutError):
                raise NoRoomForLong from None
            raise

    def _admit(self) -> None:
        while self._queue:
            first = self._queue[0]
            with self._lock:
                if not first.admitted.done():
                    if not self._has_room(first.size, first.size):
                        return
                    self._bytes += first.size
            self._queue.pop(0)
            if not first.admitted.done():  # else its client has left
                first.admitted.set_result(None)

    def _has_room(self, size: int, of: int) -> bool:
        return not self._bytes or self._bytes + size <= self._limit * (1 if of > SMALL else 2)


class Held:
    """What one answer holds. Whoever makes one has to `end` it."""

    __slots__ = ("_answers", "_counted", "_ended", "_lock", "_wanted", "size")

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._counted = self._wanted = 0
        self._ended = False
        self.size = 0
        """Bytes of what was read, or of the answer that was made of it."""

    def add(self, size: int) -> None:
        """`size` bytes more were read, in any thread; AnswerTooLarge when that is too much for one, NoRoom for all."""
        with self._lock:
            total = self.size + size
            if total > LARGEST and self.size:
                raise AnswerTooLarge
            if total > TINY and total > self._counted:
                self._wanted = total
                if self._ended:  # what still reads is to end, too
                    raise NoRoom
                self._answers.take(total - self._counted, total)
                self._counted = total
            self.size = total

    def settle(self, size: int) -> None:
        """All that was read is an answer of `size` bytes now; 0: nothing is left of it."""
        with self._lock:
            less, self.size = self._counted, size
            self._counted = size if size > TINY and not self._ended else 0
            less -= self._counted
        if less:
            self._answers.change(-less)

    def end(self) -> None:
        """The client has the answer, or will get none."""
        with self._lock:
            self._ended = True
        self.settle(0)

    async def room(self) -> None:
        """Give up what was read, and return when there is room to read it again; NoRoomForLong."""
        self.settle(0)
        await self._answers.room(self._wanted)
        with self._lock:
            self._counted = self._wanted


_current: ContextVar[Held | None] = ContextVar("answer", default=None)


def begin(held: Held | None) -> None:
    """What this task reads from now on is for this answer, or for none."""
    _current.set(held)


def hold(size: int) -> None:
    """`size` bytes more were read for the answer that this task makes, as `Held.add`; nothing if it makes none."""
    held = _current.get()
    if held is not None:
        held.add(size)


def held_size() -> int:
    """Bytes of what was read for the answer that this task makes."""
    held = _current.get()
    return 0 if held is None else held.size


def counter() -> Callable[[int], None] | None:
    """The function that does the same from other threads; None if this task makes no answer."""
    held = _current.get()
    return None if held is None else held.add


async def held_page(read: Callable[[], Awaitable[T]], size: Callable[[T], int], *, first: bool) -> T:
    """What `read` returns, once there is room for it: a part of an answer that is sent while it is made.

    It takes the place of the part before, which was sent. For the `first`, NoRoomForLong; others wait.
    """
    held = _current.get()
    if held is None:
        return await read()
    held.settle(0)
    while True:
        page = await read()
        try:
            held.add(size(page))
            return page
        except NoRoom:
            del page
        try:
            await held.room()
        except NoRoomForLong:
            if first:
                raise
