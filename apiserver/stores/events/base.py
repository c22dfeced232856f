"""The EventStore protocol: what every engine of events promises, and the errors that it raises.

The protocols that it unites are in `protocols/`, one a concern. A function that reads only scalars takes a
`ScalarStore`, and says so by that. The contract suite (`tests/contract/`) runs against each engine. Engines return
columns and positions. The rules about intervals, pages and answers are in `reading/`, above the engines.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Protocol

from apiserver.events.changes import Cursor
from apiserver.events.model import EventBatch, EventType, Owner, SeriesName
from apiserver.stores.events.protocols.changes import ChangeFeed
from apiserver.stores.events.protocols.copies import CopyStore
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.stores.events.protocols.samples import SampleStore
from apiserver.stores.events.protocols.scalars import ScalarStore
from apiserver.stores.events.usage import Usage


class EventStoreError(Exception):
    """An engine could not do what was asked. No acknowledged event is affected."""


class EventStoreBusy(EventStoreError):
    """The engine is overloaded or unavailable for now. The caller may try again after `retry_after` seconds."""

    def __init__(
        self, reason: str, *, retry_after: int = 1, overloaded: bool = True, may_be_kept: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.overloaded = overloaded
        """True: the engine has too much to do (429). False: it is unavailable, as with a full disk (503)."""
        self.may_be_kept = may_be_kept
        """True: the engine may have kept a part of the batch. Adding the batch again completes it."""


class EventStore(ScalarStore, LogStore, SampleStore, ChangeFeed, CopyStore, Protocol):
    """Events of all companies, by owner.

    Reads see every batch whose `add` has returned. All methods raise EventStoreBusy if they cannot serve now. Unknown
    owners and series are empty. A `limit`, and a number of values or iterations, is at least 1.

    Queries say what to read (`events/queries.py`). A query for series must name a type that the method reads.

    Some deletions take a cursor `up_to` (`events/changes.py`). They delete nothing that came behind it. If events of
    the owner came behind it, any of the other ones may stay, too. So a caller who read all events after the store gave
    the cursor has read all that goes.

    Samples and log lines may be large. So a page of them also ends with the event that brings it to PAGE_BYTES, and
    `may_go_on` tells whether more events may follow.
    """

    @property
    def reads_in_parallel(self) -> bool:
        """Whether several reads at once take less time than one after another."""

    async def open(self) -> None:
        """Open the store; raise EventStoreError with the reason if that is not possible."""

    async def close(self) -> None:
        """Finish what is under way, and release all resources. A second call does nothing."""

    async def check(self) -> None:
        """Raise EventStoreError unless events can be kept and read; do not wait for other calls."""

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        """Keep the batch: it survives kill -9 once this returns. Adding it again changes nothing.

        Returns how many events the engine refused, by reason. The other events are kept. If this raises EventStoreBusy,
        nothing is kept, unless the error says `may_be_kept`.
        """

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        """Delete the owners' events (of `types`, or all); return how many there were."""

    def owners(self) -> AsyncIterator[Owner]:
        """Every owner that has events, of all companies, once and in any order; perhaps some that had events before."""

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        """Every series of the owner, sorted, however many there are."""

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        """How many events the owner has, exactly. Each identity counts once."""

    async def usage(self, company: str) -> Usage:
        """How much is kept of each owner of a company. It takes long if they are many; EventStoreBusy if too long.

        Numbers of events and series may be estimates (`Usage.estimated`). An event that is to replace another one may
        count beside it until it is merged.
        """

    def gauges(self) -> Mapping[str, float]:
        """Numbers about the store as of now, by name, for monitoring; it may have none."""

    def owners_to_restate(self, *, of_all: bool = False) -> AsyncIterator[Owner]:
        """Owners whose events may have arrived after their document's last_metrics were last written.

        Of several servers, each writes the documents of those whose events it took. So only the owners of servers that
        died are returned; with `of_all`, those of all servers, for a caller who knows that no server runs.
        """

    async def restated(self, owners: Collection[Owner]) -> None:
        """Note that the documents of these owners show all their events so far.

        That covers events since the store was opened, and owners that `owners_to_restate` has returned since. Other
        owners, left by a server that died, are still returned later: a caller who does not know them cannot have
        written their documents.
        """


class EventStoreMoment(EventStore, Protocol):
    """The events of an engine as they are at one moment, to be read while servers write to the engine.

    From `open` on, `owners_to_restate` returns all owners of whom something may have come that their documents did not
    show when the store was opened. So documents are read between `open` and `begin`.
    """

    async def begin(self) -> None:
        """Begin the moment: the store shows what was acknowledged before, whatever servers do from now on."""

    @property
    def place(self) -> Cursor:
        """A place just before the moment, which JSON can have."""

    async def changed_since(self, place: Cursor) -> Collection[Owner]:
        """Owners of whom events were added or replaced since an earlier moment with this place, perhaps with others.

        Of others, events may have been deleted: then they have fewer of a type.
        """
