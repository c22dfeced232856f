"""Bounds the memory that answers take: each one by itself, and all that are under way together.

A handler counts the bytes that it reads for an answer while it reads them (`hold`). Once the answer is made, its JSON
counts until the client has taken it. One answer may read 64 MB, and all together may have 64 MB. A handler that would
exceed the common limit drops what it has read, waits until there is room for as much, and reads again. So nobody waits
with much in memory, however many ask at once.

An answer is in memory twice while it is made: as it was read, and as JSON. So answers that read more than 8 MB are made
one at a time. Answers of up to 1 MB may use twice the common limit, so that slow clients with large answers do not hold
them up. Answers of up to 64 KB are not counted.

For example, sixteen clients ask for 40 MB each. The first handler reads its 40 MB and makes the JSON. Then the second
one reads. Its 40 MB and the 40 MB of JSON that the first client has not taken yet exceed 64 MB, so it drops what it has
read, and waits until the first client has taken its answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

#: Bytes that may be read for one answer. A single document or event may be larger.
LARGEST = 64 * 2**20
#: Bytes of an answer that may use twice the common limit.
SMALL = 2**20
#: Answers of more bytes are made one at a time.
MUCH = 8 * 2**20
#: Answers of up to so many bytes are not counted.
TINY = 64 * 2**10

T = TypeVar("T")
Item = TypeVar("Item")
Arguments = ParamSpec("Arguments")


class AnswerTooLarge(Exception):
    """An answer would have to read more than one answer may."""


class NoRoom(Exception):
    """All answers together have too many bytes. `Held.room` waits until they have fewer."""


class NoRoomForLong(Exception):
    """There was no room for longer than an answer waits."""


@dataclass(frozen=True, slots=True)
class AnswerBounds:
    """Limits of answers."""

    largest: int = LARGEST
    """Bytes that may be read for one answer."""
    patience_seconds: float = 10
    """How long a handler waits for room."""


@dataclass(eq=False, slots=True)
class _Waiting:
    size: int
    admitted: asyncio.Future[None]


class Answers:
    """Counts the bytes of all answers under way. It belongs to one event loop; any thread may call `change`.

    Answers larger than SMALL have up to `limit` bytes together, or a single one has more. Smaller answers find room
    until all answers together have twice the limit.
    """

    def __init__(self, limit: int = LARGEST, bounds: AnswerBounds | None = None) -> None:
        self.bounds = bounds or AnswerBounds()
        self._limit = limit
        self._bytes = self._large_bytes = 0
        self._much_is_made = False
        self._lock = threading.Lock()
        self._queue: list[_Waiting] = []

    def change(self, size: int, to: int, *, turn: bool) -> None:
        """Let an answer grow from `size` bytes to `to`. NoRoom if that exceeds a limit; then nothing has changed.

        `turn`: the answer becomes larger than MUCH, so it takes the one turn that there is.
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
        """Let an answer go from `size` bytes to `to`, whether there is room or not. `turn`: it gives up its turn."""
        with self._lock:
            self._count(size, to)
            self._much_is_made &= not turn
        self._admit()

    async def room(self, size: int) -> None:
        """Wait until `size` bytes are counted for the caller. First come, first served. NoRoomForLong."""
        waiting = _Waiting(size, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._admit()
        try:
            async with asyncio.timeout(self.bounds.patience_seconds):
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
            if not first.admitted.done():  # otherwise its client has left
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
    """Counts the bytes of one answer. Whoever makes one has to `end` it."""

    __slots__ = ("_answers", "_counted", "_ended", "_has_turn", "_lock", "_wanted", "size")

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._counted = self._wanted = 0
        self._has_turn = self._ended = False
        self.size = 0
        """Bytes that were read for the answer or, once it is made, bytes of its JSON."""

    def add(self, size: int) -> None:
        """Count `size` more bytes that were read, in any thread. AnswerTooLarge beyond `AnswerBounds.largest`; NoRoom.

        A negative `size` says that bytes were dropped. The room for them stays with this answer until it is made.
        """
        with self._lock:
            total = self.size + size
            if total > self._answers.bounds.largest and self.size and size > 0:
                raise AnswerTooLarge
            if total > max(TINY, self._counted) and size > 0:
                self._wanted = total
                if self._ended:  # a thread that still reads has to end, too
                    raise NoRoom
                turn = total > MUCH and not self._has_turn
                self._answers.change(self._counted, total, turn=turn)
                self._counted = total
                self._has_turn |= turn
            self.size = total

    def settle(self, size: int) -> None:
        """Count `size` bytes instead of all that was counted: the answer is made (or gone, with 0)."""
        with self._lock:
            counted, self.size = self._counted, size
            self._counted = size if size > TINY and not self._ended else 0
            turn, self._has_turn = self._has_turn, False
        if turn or self._counted != counted:
            self._answers.give_back(counted, self._counted, turn=turn)

    def end(self) -> None:
        """Count nothing any more: the client has taken the answer, or will get none."""
        self._ended = True
        self.settle(0)

    def anew(self) -> Held:
        """End this attempt at an answer, with the threads that still read for it, and begin another one."""
        self.end()
        another = Held(self._answers)
        another._wanted = self._wanted
        return another

    async def room(self) -> None:
        """Forget what was read, and wait until there is room to read it again. NoRoomForLong."""
        self.settle(0)
        await self._answers.room(self._wanted)
        with self._lock:
            self._counted = self._wanted
            self._has_turn = self._wanted > MUCH


_current: ContextVar[Held | None] = ContextVar("answer", default=None)


def begin(held: Held | None) -> None:
    """Count what the current task reads from now on for this answer, or for none."""
    _current.set(held)


def hold(size: int) -> None:
    """Count `size` more bytes for the answer of the current task, if it makes one. See `Held.add`."""
    held = _current.get()
    if held is not None:
        held.add(size)


def counter() -> Callable[[int], None] | None:
    """A function that counts bytes for the answer of the current task from other threads; None if it makes none."""
    held = _current.get()
    return None if held is None else held.add


def made(size: int) -> None:
    """Count only the `size` bytes of the part that is sent now, instead of all that was read for it."""
    held = _current.get()
    if held is not None:
        held.settle(size)


def held_size() -> int:
    """Bytes that were read for the answer of the current task."""
    held = _current.get()
    return 0 if held is None else held.size


class _Reading:
    """One read of a store, and the answer that it is for."""

    def __init__(self, held: Held | None) -> None:
        self.held = held
        self.size = 0


_reading: ContextVar[_Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading() -> Iterator[None]:
    """Count what `will_read` announces inside this block, also in threads with this context, until the block ends.

    A caller that keeps what was read has to `hold` it afterwards. The room for it is kept.
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


def counted(read: Callable[Arguments, Awaitable[T]]) -> Callable[Arguments, Coroutine[Any, Any, T]]:
    """A decorator: what `read` reads until it ends counts for the answer that it is for, as with `reading`."""

    @wraps(read)
    async def reads(*arguments: Arguments.args, **named: Arguments.kwargs) -> T:
        with reading():
            return await read(*arguments, **named)

    return reads


def will_read(size: int) -> None:
    """Count `size` bytes that a store is about to decode. AnswerTooLarge; NoRoom."""
    begun = _reading.get()
    if begun is not None and begun.held is not None:
        begun.held.add(size)
        begun.size += size


async def some_at_a_time(
    items: Sequence[Item], most: int, read: Callable[[Sequence[Item]], Awaitable[T]]
) -> AsyncGenerator[T, None]:
    """What `read` returns of up to `most` items at a time, in order.

    When it raises AnswerTooLarge, it gets half as many from then on. AnswerTooLarge if a single item is too large.
    """
    place = 0
    while part := items[place : place + most]:
        try:
            answer = await read(part)
        except AnswerTooLarge:
            if len(part) == 1:
                raise
            most = len(part) // 2
            continue
        place += len(part)
        yield answer
        del answer


async def held_page(read: Callable[[], Awaitable[T]], size: Callable[[T], int], *, first: bool) -> T:
    """What `read` returns, once there is room for it: the next part of an answer that is sent part by part.

    It is counted instead of the part before, which was sent. Only the `first` part raises NoRoomForLong: after it the
    answer has begun, and cannot become an error any more.
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
