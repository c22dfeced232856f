"""How late a client may be: with sending the body of its request, and with taking its answer.

A client has the patience of the server for `stall_seconds`. Each second uses up one, and each byte that it sends or
takes gives some back, at `least_rate` bytes a second. For example, at 4 KB a second, 8 KB in 3 seconds use up one
second of patience.
"""

from __future__ import annotations

from math import inf

from apiserver.connections.bounds import ConnectionBounds


class Patience:
    """The patience with one client. `passed` are the seconds since a connection asked for it before."""

    __slots__ = ("_bounds", "_to_send", "_to_take", "drained", "received", "unsent")

    def __init__(self, bounds: ConnectionBounds) -> None:
        self._bounds = bounds
        self._to_send = self._to_take = bounds.stall_seconds
        self.received = 0
        """Bytes of a body that have come since the last question."""
        self.unsent = 0
        """Bytes of answers that the client had not taken at the last question."""
        self.drained = False
        """Whether the client has taken all answers at some time since the last question."""

    def begin_body(self) -> None:
        """Another body begins."""
        self._to_send, self.received = self._bounds.stall_seconds, 0

    def with_taking(self, unsent: int, passed: float) -> bool:
        """Whether there is patience left with a client that has so many bytes to take."""
        taken = max(self.unsent - unsent, 0)
        self._to_take = self._left(self._to_take, passed, taken) if unsent and not self.drained else inf
        self.unsent, self.drained = unsent, False
        return self._to_take >= 0

    def with_sending(self, passed: float, *, is_read: bool) -> bool:
        """Whether there is patience left with a client that sends a body. None is used up while nothing `is_read`."""
        sent, self.received = self.received, 0
        if is_read:
            self._to_send = self._left(self._to_send, passed, sent)
        return self._to_send >= 0

    def _left(self, patience: float, passed: float, moved: int) -> float:
        """The patience that is left after `passed` seconds in which `moved` bytes came or went."""
        return min(patience - passed + moved / self._bounds.least_rate, self._bounds.stall_seconds)
