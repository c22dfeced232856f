"""Admits reading calls: they begin when it is their user's turn, and go on while there is room for what they read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar

from apiserver.common.answers import LARGEST, AnswerBounds, Answers, Held, NoRoom, begin
from apiserver.rpc.call import ANONYMOUS, Identity
from apiserver.rpc.reads_at_once import ReadsAtOnce, WhileConnected

T = TypeVar("T")


class Admission:
    """Counts the reading calls of a server. `limit`: bytes that are read for all answers together, as a rule."""

    def __init__(self, limit: int = LARGEST, bounds: AnswerBounds | None = None) -> None:
        self._answers = Answers(limit, bounds)
        self._reads = ReadsAtOnce()

    def reading(self) -> Reading:
        """A reading call. Whoever begins one has to `end` it."""
        return Reading(self._answers, self._reads)


class Reading:
    """One reading call, and the bytes that it reads for its answer."""

    __slots__ = ("_reads", "held")

    def __init__(self, answers: Answers, reads: ReadsAtOnce) -> None:
        self._reads = reads
        self.held = Held(answers)

    async def run(
        self,
        make: Callable[[], Awaitable[T]],
        caller: Identity,
        while_connected: WhileConnected,
        again: Callable[[], None] = lambda: None,
    ) -> T:
        """What `make` returns. If it finds no room for what it reads, it is run again later, and `again` before it.

        An answer that is sent while it is made can only be begun again before its first chunk. NoRoomForLong.
        """
        begin(self.held)
        while True:
            try:
                # What anyone may read takes no time, so strangers need not wait.
                known = caller is not ANONYMOUS
                async with self._reads.turn(caller.user, while_connected) if known else nullcontext():
                    return await make()
            except NoRoom:
                pass  # what was read is freed at the end of this block
            again()
            self.held = self.held.anew()
            begin(self.held)
            await self.held.room()

    def end(self) -> None:
        """The client has taken the answer, or will get none."""
        self.held.end()
