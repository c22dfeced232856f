"""Holds: a call keeps others from changing a task or a model for a while, by a time in a field of its document.

The hold ends at this time if the call does not end it before, as when its server dies. A call sets a time that is a
fixed number of seconds ahead. A time that is much further ahead is of a server whose clock is wrong, and holds nothing.
A little further it may be: clocks differ, and a condition may be made before the hold that it then meets. For example,
with holds of 60 seconds:

    12:00:00.000   a call makes the condition that a model is not held, and its write waits
    12:00:00.005   another call holds the model until 12:01:00.005
    12:00:00.009   the write is done: the model is held, though by a time 60.005 seconds after the condition was made
"""

from __future__ import annotations

from typing import NamedTuple

from apiserver.common.times import from_now, utc_now
from apiserver.stores.documents.query import AtMost, Both, Document, Filter, Greater

#: Seconds by which a hold may be further ahead than a call sets it.
_FURTHER = 10.0


class Hold(NamedTuple):
    """Which field has the time, and for how many seconds a call holds a document at most."""

    field: str
    seconds: float

    def until(self) -> str:
        """The time until which a document is held that is held now."""
        return from_now(self.seconds)

    def condition(self) -> Filter:
        """The condition for documents that are held."""
        return {self.field: Both(Greater(utc_now()), AtMost(self._furthest()))}

    def holds(self, document: Document) -> bool:
        """Whether a document is held: the same condition for one that was read."""
        until: str = document.get(self.field, "")
        return utc_now() < until <= self._furthest()

    def _furthest(self) -> str:
        return from_now(self.seconds + _FURTHER)
