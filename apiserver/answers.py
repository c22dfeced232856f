"""How many bytes answers may take, as they are made in memory: what is read for one, and all that are under way.

What is read for an answer is counted while it is read (`hold`), and once the answer is made, its JSON until the client
has taken it. An answer alone may read 64 MB. When all together have more than that, whoever would read more gives up
what it has, waits until some of it is free, and reads again. Nobody waits with much in hand, so memory stays bounded by
what is counted, however many ask at once. Small answers are not counted, and never wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

#: What may be read for one answer, in bytes.
LARGEST = 64 * 2**20
#: Answers that are no larger are not counted.
SMALL = 2**20

T = TypeVar("T")


class AnswerTooLarge(Exception):
    """More would be read for an answer than it may have."""


class NoRoom(Exception):
    """All answers together have too much; `Answers.room` waits until they have less."""


class Answers:
    """Counts the bytes of all answers under way, up to `limit`. For one event loop."""

    def __init__(self, limit: int = LARGEST) -> None:
        self._limit = limit
        self._bytes = 0
        self._lock = threading.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def change(self, size: int, *, if_room: bool = False) -> None:
        """`size` bytes more are held, or fewer when it is negative; NoRoom when these are too many `if_room`."""
        with self._lock:
            if if_room and self._bytes + size > self._limit:
                raise NoRoom
            self._bytes += size

    async def room(self) -> None:
        """Return when an answer has been taken by its client, which may have made room. Who waits longest is first."""
        if not self._bytes:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # it was its turn already
                self.wake()
            raise

    def wake(self) -> None:
        """Let who waits longest look whether there is room now."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():  # else its client has left
                future.set_result(None)
                break


class Held:
    """What one answer holds. Whoever makes one has to `end` it."""

    __slots__ = ("_answers", "_counted", "_ended", "_lock", "size")

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._counted = 0
        self._ended = False
        self.size = 0
        """Bytes of what was read, or of the answer that was made of it."""

    def add(self, size: int) -> None:
        """`size` bytes more were read, in any thread; AnswerTooLarge when that is too much for one, NoRoom for all."""
        with self._lock:
            total = self.size + size
            if total > SMALL:
                if total > LARGEST:
                    raise AnswerTooLarge
                if self._ended:  # what still reads is to end, too
                    raise NoRoom
                self._answers.change(total - self._counted, if_room=True)
                self._counted = total
            self.size = total

    def settle(self, size: int) -> None:
        """All that was read is an answer of `size` bytes now; 0: nothing is left of it."""
        with self._lock:
            counted = size if size > SMALL else 0
            less = counted < self._counted
            if counted != self._counted:
                self._answers.change(counted - self._counted)
            self.size = self._counted = counted
        if less:
            self._answers.wake()

    def end(self) -> None:
        """The client has the answer, or will get none."""
        self._ended = True
        if self._counted:
            self.settle(0)

    async def room(self) -> None:
        """Forget what was read, and return when there may be room to read it again."""
        with self._lock:
            self._answers.change(-self._counted)  # nobody is woken: two who want too much would do so for ever
            self.size = self._counted = 0
        await self._answers.room()


_current: ContextVar[Held | None] = ContextVar("answer", default=None)


def begin(held: Held) -> None:
    """What this task reads from now on is for an answer."""
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


async def held_page(read: Callable[[], Awaitable[T]], size: Callable[[T], int]) -> T:
    """What `read` returns, once there is room for it: a part of an answer that is sent while it is made.

    It takes the place of the part before, which was sent.
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
            await held.room()
