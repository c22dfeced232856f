"""How late a client may be: with sending the body of its request, and with taking its answer.

The server has `stall_seconds` of patience with a client. Each second uses up one of them, and each `least_rate` bytes
that the client sends or takes give one back. For example, if `least_rate` is 4 KB, 8 KB in 3 seconds use up one second
of patience.
"""

from __future__ import annotations

from math import inf

from apiserver.http.bounds import ConnectionBounds


class Patience:
    """The patience with one client. The connection asks again and again whether there is some left, by two methods.

    `passed` are the seconds since it asked before.
    """

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

    def takes_in_time(self, unsent: int, passed: float) -> bool:
        """Whether the client takes its answers fast enough, of which it has so many bytes to take."""
        taken = max(self.unsent - unsent, 0)
        self._to_take = self._left(self._to_take, passed, taken) if unsent and not self.drained else inf
        self.unsent, self.drained = unsent, False
        return self._to_take >= 0

    def sends_in_time(self, passed: float, *, is_read: bool) -> bool:
        """Whether the client sends its body fast enough. No patience is used up while the server reads nothing."""
        sent, self.received = self.received, 0
        if is_read:
            self._to_send = self._left(self._to_send, passed, sent)
        return self._to_send >= 0

    def _left(self, patience: float, passed: float, moved: int) -> float:
        """The patience that is left after `passed` seconds in which `moved` bytes came or went."""
        return min(patience - passed + moved / self._bounds.least_rate, self._bounds.stall_seconds)
