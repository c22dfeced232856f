"""How many bytes answers may take, as they are made in memory: what is read for one, and all that are under way.

What is read for an answer is counted while it is read (`hold`), and once the answer is made, its JSON until the client
has taken it. An answer alone may read 64 MB. When all together have more than that, whoever would read more gives up
what it has, waits until there is room for as much, and reads again. Nobody waits with much in hand, so memory stays
bounded by what is counted, however many ask at once.

While an answer is made it is in memory twice or more: as it was read, and as its JSON. So of answers for which more
than 8 MB are read, one is made at a time. Answers of up to 1 MB may go on until all have twice the bound, so that large
ones whose clients are slow do not hold them up. Tiny ones are not counted.

For example, sixteen clients ask for 40 MB each. One has its turn to read them and to make their JSON. Then the next one
reads: its 40 MB and the 40 MB of JSON that the first client has not taken are more than 64 MB, so it gives up what it
has read, and waits until that client has taken its answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

#: What may be read for one answer, in bytes: of a single document or event that is larger, that one.
LARGEST = 64 * 2**20
#: An answer of up to this size finds room until all answers together have twice their bound.
SMALL = 2**20
#: Of answers that are larger, one is made at a time.
MUCH = 8 * 2**20
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
    """Counts the bytes of all answers under way, for one event loop; `change` is for any thread.

    Answers larger than SMALL have up to `limit` bytes together, or one alone has more. Others find room until all
    answers together have twice as many.
    """

    def __init__(self, limit: int = LARGEST) -> None:
        self._limit = limit
        self._bytes = self._large_bytes = 0
        self._much_is_made = False
        self._lock = threading.Lock()
        self._queue: list[_Waiting] = []

    def change(self, size: int, to: int, *, turn: bool) -> None:
        """An answer grows from `size` bytes to `to`; NoRoom, and nothing is changed, when there is no room for that.

        `turn`: it is larger than MUCH from now on, and being made.
        """
        with self._lock:
            if (turn and self._much_is_made) or not self._has_room(size, to):
                raise NoRoom
            self._count(size, to)
            self._much_is_made |= turn

    def _has_room(self, size: int, to: int) -> bool:
        if to <= SMALL:
            return self._bytes - size + to <= 2 * self._limit
        others = self._large_bytes - _large(size)
        return not others or others + to <= self._limit

    def _count(self, size: int, to: int) -> None:
        self._bytes += to - size
        self._large_bytes += _large(to) - _large(size)

    def give_back(self, size: int, to: int, *, turn: bool) -> None:
        """An answer goes from `size` bytes to `to`, whether there is room or not; `turn`: it gives up its turn."""
        with self._lock:
            self._count(size, to)
            self._much_is_made &= not turn
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
                self.give_back(size, 0, turn=size > MUCH)
            if isinstance(error, TimeoutError):
                raise NoRoomForLong from None
            raise

    def _admit(self) -> None:
        while self._queue:
            first = self._queue[0]
            if not first.admitted.done():  # else its client has left
                try:
                    self.change(0, first.size, turn=first.size > MUCH)
                except NoRoom:
                    return
            self._queue.pop(0)
            if not first.admitted.done():
                first.admitted.set_result(None)


def _large(size: int) -> int:
    return size if size > SMALL else 0


class Held:
    """What one answer holds. Whoever makes one has to `end` it."""

    __slots__ = ("_answers", "_counted", "_ended", "_has_turn", "_lock", "_wanted", "size")

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._counted = self._wanted = 0
        self._has_turn = self._ended = False
        self.size = 0
        """Bytes of what was read, or of the answer that was made of it."""

    def add(self, size: int) -> None:
        """`size` bytes more were read, in any thread; AnswerTooLarge when that is too much for one, NoRoom for all.

        When `size` is negative, so many were let go; room for as many is kept until the answer is made.
        """
        with self._lock:
            total = self.size + size
            if total > LARGEST and self.size and size > 0:
                raise AnswerTooLarge
            if total > max(TINY, self._counted) and size > 0:
                self._wanted = total
                if self._ended:  # what still reads is to end, too
                    raise NoRoom
                turn = total > MUCH and not self._has_turn
                self._answers.change(self._counted, total, turn=turn)
                self._counted = total
                self._has_turn |= turn
            self.size = total

    def settle(self, size: int) -> None:
        """All that was read is an answer of `size` bytes now; 0: nothing is left of it."""
        with self._lock:
            counted, self.size = self._counted, size
            self._counted = size if size > TINY and not self._ended else 0
            turn, self._has_turn = self._has_turn, False
        if turn or self._counted != counted:
            self._answers.give_back(counted, self._counted, turn=turn)

    def end(self) -> None:
        """The client has the answer, or will get none."""
        with self._lock:
            self._ended = True
        self.settle(0)

    def anew(self) -> Held:
        """For another attempt at the same answer. What still reads for this one, in some thread, is ended."""
        self.end()
        another = Held(self._answers)
        another._wanted = self._wanted
        return another

    async def room(self) -> None:
        """Give up what was read, and return when there is room to read it again; NoRoomForLong."""
        self.settle(0)
        await self._answers.room(self._wanted)
        with self._lock:
            self._counted = self._wanted
            self._has_turn = self._wanted > MUCH


_current: ContextVar[Held | None] = ContextVar("answer", default=None)


def begin(held: Held | None) -> None:
    """What this task reads from now on is for this answer, or for none."""
    _current.set(held)


def hold(size: int) -> None:
    """`size` bytes more were read for the answer that this task makes, as `Held.add`; nothing if it makes none."""
    held = _current.get()
    if held is not None:
        held.add(size)


def counter() -> Callable[[int], None] | None:
    """The function that does the same from other threads; None if this task makes no answer."""
    held = _current.get()
    return None if held is None else held.add


def made(size: int) -> None:
    """All that was read for the answer that this task makes is a part of it now that is sent, of `size` bytes."""
    held = _current.get()
    if held is not None:
        held.settle(size)


def held_size() -> int:
    """Bytes of what was read for the answer that this task makes."""
    held = _current.get()
    return 0 if held is None else held.size


class _Reading:
    """A read of a store, and the answer that it is for."""

    def __init__(self, held: Held | None) -> None:
        self.held = held
        self.size = 0


_reading: ContextVar[_Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading() -> Iterator[None]:
    """What `will_read` tells of inside, in threads with this context as well, is held to the end of the block.

    Whoever keeps what was read has to `hold` it then; room for it is kept.
    """
    held = _current.get()
    begun = _Reading(held)
    token = _reading.set(begun)
    try:
        yield
    finally:
        _reading.reset(token)
        if held is not None and begun.size:
            held.add(-begun.size)


def will_read(size: int) -> None:
    """`size` bytes are about to be read, as `hold`: a store knows that before it decodes something."""
    begun = _reading.get()
    if begun is not None and begun.held is not None:
        begun.held.add(size)
        begun.size += size


async def held_page(read: Callable[[], Awaitable[T]], size: Callable[[T], int], *, first: bool) -> T:
    """What `read` returns, once there is room for it: a part of an answer that is sent while it is made.

    It takes the place of the part before, which was sent. For the `first`, NoRoomForLong; others wait.
    """
    held = _current.get()
    if held is None:
        return await read()
    held.settle(0)
    while True:
        try:
            page = await read()
            held.add(size(page))
            return page
        except NoRoom:
            page = None
        try:
            await held.room()
        except NoRoomForLong:
            if first:
                raise
