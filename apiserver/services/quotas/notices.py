"""Lines in the console logs of tasks that say which quota is nearly used up, and what happens because of one.

They say what was not stored, and that a task is slowed down. Whoever trains sees them beside the output of the run: the
SDK itself waits without a word when it is told to. A line is written a moment after the request that it is about, which
neither waits for it nor fails with it. It goes to the store directly, so no quota refuses it, and it leads to no
further line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from apiserver.common.repeating import Repeating
from apiserver.common.seldom import Seldom
from apiserver.common.times import now_ms
from apiserver.events.model import EventBatch, LogColumns, Owner, SeriesName
from apiserver.services.events.last_metrics import RESET, LastMetrics
from apiserver.services.quotas.accounts import Account, Share, shown
from apiserver.services.tasks.statuses import LOCKED
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.stores.events.base import EventStore, EventStoreError

#: Most lines that are remembered, so that a task seldom gets a line twice, and most lines that wait.
_MOST, _MOST_WAITING = 20_000, 1000
_AT_ONCE = 100
#: Most series that a line names.
_NAMED = 3
#: A line waits so long for a store that cannot be reached.
_RETRY = 30.0
_WHEN_USED_UP = {
    "bytes": "When all is used up, nothing that this run reports is stored, and it waits for room when it ends.",
    "series": "When all is used up, further series of this run are left out.",
}


class _Line(NamedTuple):
    owner: Owner
    text: str
    at: int


class Notices:
    """Writes a line about each task and quota once in a while."""

    def __init__(
        self,
        events: EventStore,
        documents: DocumentStore,
        last_metrics: LastMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._events = events
        self._documents = documents
        self._last_metrics = last_metrics
        self._told = Seldom(clock, most=_MOST)
        self._waiting: list[_Line] = []
        self.writing = Repeating(
            "telling tasks of quotas",
            self._write,
            _RETRY,
            expected=(EventStoreError, DocumentStoreError),
            at_once=False,
        )

    def near(self, owner: Owner, shares: Iterable[Share]) -> None:
        """Tell a task of quotas of which most or all is used up."""
        for share in shares:
            if share.part < 1:
                text = f"{int(100 * share.part)} % of a quota are used up: {share}. {_WHEN_USED_UP[share.what]}"
                self._tell(owner, f"near {share.what}", share.account, text)
            elif share.what == "bytes":
                self.no_bytes(owner, share)

    def no_bytes(self, owner: Owner, share: Share) -> None:
        """Tell a task that its events are not stored."""
        text = (
            f"A quota is used up: {share}. Nothing that this run reports is stored until there is room. The run keeps"
            " it, and waits for room when it ends."
        )
        self._tell(owner, "used up bytes", share.account, text)

    def no_series(self, owner: Owner, share: Share, names: Sequence[SeriesName]) -> None:
        """Tell a task that these new series are left out."""
        some = ", ".join(f'"{shown(name.metric)} / {shown(name.variant)}"' for name in names[:_NAMED])
        more = "" if len(names) <= _NAMED else f" and {len(names) - _NAMED:,} more"
        text = (
            f"A quota is used up: {share}. New series are left out: {some}{more}. Series that are here already go on."
        )
        self._tell(owner, "used up series", share.account, text)

    def no_file(self, owner: Owner, account: Account, name: str, reason: str) -> None:
        """Tell a task that a file is not stored."""
        text = f"The file {shown(name)} was not stored, because there is too little room: {reason}."
        self._tell(owner, "file", account, text)

    def slowed(self, owner: Owner, account: Account, reason: str) -> None:
        """Tell a task that its events come faster than they may."""
        text = f"This run is slowed down: {reason}. Nothing is lost: the run keeps the rest, and sends it later."
        self._tell(owner, "slowed", account, text)

    def _tell(self, owner: Owner, what: str, account: Account, text: str) -> None:
        if owner.is_model or not owner.has_document or len(self._waiting) >= _MOST_WAITING:
            return
        if self._told.due((owner, what, account.subject)):
            self._waiting.append(_Line(owner, text, now_ms()))
            self.writing.wake()

    async def _write(self) -> None:
        """Write the lines that wait, of one company at a time. Lines wait on if a store cannot be reached."""
        while self._waiting:
            company = self._waiting[0].owner.company
            lines = list(islice((line for line in self._waiting if line.owner.company == company), _AT_ONCE))
            self._waiting = [line for line in self._waiting if line not in lines]
            try:
                await self._add(company, lines)
            except (EventStoreError, DocumentStoreError):
                self._waiting += lines
                raise

    async def _add(self, company: str, lines: list[_Line]) -> None:
        documents = CompanyDocuments(self._documents, company)
        ids = list(dict.fromkeys(line.owner.id for line in lines))
        tasks = {one["id"]: one for one in await documents.find_kept("tasks", ids, ("status", RESET))}
        kept = [line for line in lines if (task := tasks.get(line.owner.id)) and task["status"] not in LOCKED]
        if kept:
            batch = EventBatch(now_ms(), logs=[_columns(line) for line in kept])
            with self._last_metrics.adding(batch, {line.owner: tasks[line.owner.id].get(RESET) for line in kept}):
                await self._events.add(batch)


def _columns(line: _Line) -> LogColumns:
    times = np.array([line.at], np.int64)
    return LogColumns(line.owner, times, ["warning"], ["apiserver"], [line.text], [None], [""], [""])
