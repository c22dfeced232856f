"""Holds: a call keeps others from changing a task for a while, by a time in a field of the task.

The hold ends at this time if the call does not end it before, as when its server dies. A call sets a time that is a
fixed number of seconds ahead. A time further ahead is of a server whose clock is wrong, and holds nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from apiserver.services.tasks.task_documents import BEING_QUEUED, BEING_RESET
from apiserver.stores.documents.query import AtMost, Both, Document, Filter, Greater
from apiserver.times import from_now, utc_now


class Hold(NamedTuple):
    """Which field has the time, and for how many seconds a call holds a task at most."""

    field: str
    seconds: float

    def until(self) -> str:
        """The time until which a task is held that is held now."""
        return from_now(self.seconds)

    def condition(self) -> Filter:
        """The condition for tasks that are held."""
        return {self.field: Both(Greater(utc_now()), AtMost(self.until()))}

    def holds(self, task: Document) -> bool:
        """Whether the task is held: the same condition for a document."""
        until: str = task.get(self.field, "")
        return utc_now() < until <= self.until()


#: While a task is reset or deleted, no other call may change its status.
RESETTING = Hold(BEING_RESET, 60.0)
#: While a call puts a task into a queue or takes it out, no other call may do so.
QUEUEING = Hold(BEING_QUEUED, 10.0)
