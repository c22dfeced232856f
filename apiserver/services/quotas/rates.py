"""How many events a second: a token bucket for each subject, which is one number.

A bucket of 20 events a second holds 200 tokens, those of ten seconds. An event takes one, and 20 come back each second.
All that is to be known of it is when it is full again:

    full since long; at t = 0 a batch of 150    taken: full again at t = 7.5
    at t = 1, a batch of 100                    70 tokens are left: refused, 1.5 seconds too early
    at t = 2.5, the same                        100 tokens are left: taken, full again at t = 12.5

A batch of more tokens than the bucket holds is taken when the bucket is full, and leaves a debt. So in a time t, at
most rate · t events are let through, and a bucket full or one batch more, whichever is larger.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from apiserver.services.quotas.subjects import Subject

#: Seconds whose tokens a bucket holds.
BURST = 10.0
#: About so many buckets are remembered. Of more, those that are full soonest are forgotten.
MOST = 50_000
#: A bucket with a smaller part of its tokens is nearly empty.
_NEARLY = 0.2


class Rates:
    """The buckets of those that sent something lately; full ones need not be remembered."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._full_at: dict[Subject, float] = {}

    def __len__(self) -> int:
        return len(self._full_at)

    def wait(self, subject: Subject, rate: float, events: int, now: float) -> float:
        """For how many seconds the subject has to wait until it may send so many events; 0: it may send them now."""
        empty = max(self._full_at.get(subject, now) - now, 0.0)
        return max(empty + min(events / rate, BURST) - BURST, 0.0)

    def take(self, taken: Mapping[Subject, tuple[float, int]], now: float) -> list[Subject]:
        """Take events from the buckets: `taken` has rates and numbers. Returns whose buckets are nearly empty."""
        nearly = []
        for subject, (rate, events) in taken.items():
            full_at = max(self._full_at.get(subject, now), now) + events / rate
            self._full_at[subject] = full_at
            if full_at - now > BURST * (1 - _NEARLY):
                nearly.append(subject)
        if len(self._full_at) > self._most:
            self._forget(now)
        return nearly

    def _forget(self, now: float) -> None:
        """Forget full buckets, and if that is not enough, those nearest to it: a tenth, so that this is seldom done."""
        self._full_at = {subject: full_at for subject, full_at in self._full_at.items() if full_at > now}
        further = len(self._full_at) - self._most * 9 // 10
        if further > 0:
            soonest: Iterable[Subject] = heapq.nsmallest(further, self._full_at, key=self._full_at.__getitem__)
            for subject in list(soonest):
                del self._full_at[subject]
