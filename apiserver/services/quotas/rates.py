"""How many events a second: a token bucket, which is one number.

A bucket of 20 events a second holds 200 tokens, those of ten seconds. An event takes one, and 20 come back each second.
All that is to be known of it is when it is full again:

    full since long; at t = 0 a batch of 150    taken: full again at t = 7.5
    at t = 1, a batch of 100                    70 tokens are left: refused, 1.5 seconds too early
    at t = 2.5, the same                        100 tokens are left: taken, full again at t = 12.5

A batch of more tokens than the bucket holds is taken when the bucket is full, and leaves a debt. So in a time t, at
most rate · t events are let through, and a bucket full or one batch more, whichever is larger.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds whose tokens a bucket holds.
BURST = 10.0
#: A bucket is nearly empty if it is full again after so many seconds: it has a fifth of its tokens, or less.
NEARLY_EMPTY = BURST * 0.8


@dataclass(slots=True)
class Bucket:
    """The bucket of a sender with a bound of events a second. It is full at first."""

    rate: int
    full_at: float = 0.0

    def wait(self, events: int, now: float) -> float:
        """For how many seconds one has to wait until one may send so many events; 0: they may be sent now."""
        lacking = self.full_at - now
        if lacking <= 0:
            return 0.0
        longest = BURST - events / self.rate
        if longest < 0:
            longest = 0.0
        return lacking - longest if lacking > longest else 0.0

    def full_after(self, events: int, now: float) -> float:
        """When the bucket is full again if so many events are sent now."""
        full_at = self.full_at
        return (full_at if full_at > now else now) + events / self.rate

    def take(self, events: int, now: float) -> bool:
        """Take tokens for events. Returns whether the bucket is nearly empty then."""
        self.full_at = self.full_after(events, now)
        return self.full_at - now > NEARLY_EMPTY

    def lacks(self, now: float) -> float:
        """Which part of its tokens is missing; more than 1 if there is a debt."""
        return max(self.full_at - now, 0.0) / BURST
