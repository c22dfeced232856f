"""Checks what clients send against the quotas of the settings, and counts it.

A batch that is over a rate, or over bytes, is refused as a whole as OVERLOADED: the SDK and the collector of
OpenTelemetry keep it, wait and send it again. (NO_ROOM would say more, but the SDK sends such a batch again and again
without any pause.) Series beyond a quota are refused one by one, like events that are wrong: to wait would hold back
the points of all series that are known. Uploads of files over bytes are refused as NO_ROOM, as with a full disk.

Each server process counts rates on its own.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from apiserver.common.counters import Counters
from apiserver.common.errors import overloaded
from apiserver.common.gauges import Gauges
from apiserver.common.off_loop import off_loop
from apiserver.common.repeating import Repeating
from apiserver.common.seldom import Seldom
from apiserver.events.ingest import Ingest
from apiserver.events.model import HISTORY, EventBatch, LogColumns, Owner, Sample, SeriesName
from apiserver.fileserver.addresses import task_of
from apiserver.rpc.call import Identity
from apiserver.services.events.last_metrics import LastMetrics
from apiserver.services.quotas.accounts import Account, Accounts, Sender, Share
from apiserver.services.quotas.amounts import Amounts
from apiserver.services.quotas.known_series import KnownSeries, number_of, number_of_batch, numbers_in
from apiserver.services.quotas.names import look_up
from apiserver.services.quotas.notices import Notices
from apiserver.services.quotas.subjects import Subject
from apiserver.services.quotas.uploads import Upload
from apiserver.services.quotas.usage import Usages
from apiserver.settings.values import Quota
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.stores.events.base import EventStore
from apiserver.stores.files.disk import Former

log = logging.getLogger(__name__)

#: The fields of an owner's document that say to whom its events count.
FIELDS = ("project", "user")
#: Seconds after which a client may send again events that were over the bound of bytes.
_AGAIN = 60
#: Bytes of a point, and of a line or sample beside its text, as they lie in the journal.
_POINT, _EVENT = 24, 16
#: Below this part of all bounds, the store is not asked which series an owner has. Each series counts as new when this
#: process first sees it.
_FAR = 0.4


class Quotas:
    """The quotas of a server. `near` says who has used up most of one."""

    def __init__(
        self,
        quotas: tuple[Quota, ...],
        events: EventStore,
        documents: DocumentStore,
        last_metrics: LastMetrics,
        usages: Usages,
        counters: Counters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.accounts = Accounts(quotas, clock=clock)
        self._documents = documents
        self._counters = counters
        self._series = KnownSeries(events)
        self._bounds_series = any(quota.series for quota in quotas)
        self._bounds_bytes = any(quota.bytes for quota in quotas)
        self.bounds_amounts = self._bounds_series or self._bounds_bytes
        self.amounts = Amounts(self.accounts, self._series, usages, clock)
        self._notices = Notices(events, documents, last_metrics, clock)
        self._told = Seldom(clock)

    def jobs(self) -> list[Repeating]:
        """The jobs that run while the server runs."""
        return [*([self.amounts.measuring] if self.bounds_amounts else []), self._notices.writing]

    def report(self) -> dict[str, int]:
        """The fields of `/health`."""
        return self.amounts.near()._asdict()

    def gauges(self) -> Gauges:
        """Its numbers in `/metrics`."""
        help = "How many tasks, projects, users and companies have 80 % of a quota of bytes or series, or more."
        return {"quotas_near": (help, lambda: self.amounts.near().near)}

    def count_at_once(self, batch: EventBatch, documents: Mapping[Owner, Document | None]) -> bool:
        """Count a batch of one owner if it is far below all bounds, and has the series of a batch before.

        Returns whether it was counted. Most batches are. All others are for `admit`, which takes several times as long.
        `documents` has all owners of the batch, and perhaps others.
        """
        if len(documents) > 1:
            return False
        ((owner, document),) = documents.items()
        sender = self.accounts.sender(owner, document or {})
        if sender.has_bound_of_series and number_of_batch(batch) not in sender.batches:
            return False
        events, bytes = _size(len(batch.scalars.iters), batch.logs, batch.samples)
        return sender.count_if_far(events, bytes, self._clock())

    async def admit(self, events: Ingest, documents: Mapping[Owner, Document | None]) -> None:
        """Refuse the series that are over a quota, and count the other events.

        Raises Refusal(OVERLOADED) if the whole batch is over a quota.
        """
        sizes = _sizes(events.batch)
        senders = {owner: self.accounts.sender(owner, documents[owner] or {}) for owner in sizes}
        if unnamed := [one for sender in senders.values() for one in sender.accounts if one.name is None]:
            await look_up(self._documents, unnamed)
            for account in unnamed:
                account.set_near_from()
        if self._bounds_bytes:
            for owner, sender in senders.items():
                self._check_bytes(owner, sender.accounts)
        self._take({owner: (sender.accounts, sizes[owner][0]) for owner, sender in senders.items()})
        if not self.bounds_amounts:
            return
        if self._bounds_series:
            await self._admit_series(events, senders)
        for owner, sender in senders.items():
            if self.amounts.add(sender.accounts, bytes=sizes[owner][1]):
                shares = [share for account in sender.accounts for share in account.shares()]
                self._notices.near(owner, [share for share in shares if share.is_near])

    async def admit_file(self, sender: Identity, name: str, bytes: int) -> Upload:
        """Count the bytes of a file as they come. Raises Refusal(NO_ROOM) if it has so many that it is over a quota.

        While they come, bytes for somebody else's task count for the company only: an upload that never ends would hold
        up the events of all that the other user runs. The complete file counts for all.
        """
        accounts, maker = await self._accounts_of_file(sender, name)
        growing = accounts if maker == sender.user else [one for one in accounts if one.subject.of == "company"]
        task = Owner(sender.company, task_of(name) or HISTORY)

        def refused(account: Account, reason: str) -> None:
            self._refused(account.subject)
            self._notices.no_file(task, account, name, reason)

        upload = Upload(self.amounts, sender.company, accounts, growing, bytes, refused)
        upload.check(bytes)
        return upload

    async def deleted_file(self, sender: Identity, name: str, former: Former) -> None:
        """Count a deleted file no more."""
        accounts, _ = await self._accounts_of_file(sender, name)
        self.amounts.add(accounts, bytes=-self.amounts.freed(sender.company, former))

    async def _accounts_of_file(self, sender: Identity, name: str) -> tuple[list[Account], str | None]:
        """The accounts with a bound of bytes that a file counts for, and who made its task.

        The events of its task count for the same accounts, whoever sends the file.
        """
        if not self._bounds_bytes:
            return [], None
        task = task_of(name)
        tasks: list[Document] = []
        if task is not None:
            tasks = await CompanyDocuments(self._documents, sender.company).find_kept("tasks", [task], FIELDS)
        made = tasks[0] if tasks else {}
        owner = Owner(sender.company, task if tasks and task else HISTORY)
        accounts = [account for account in self.accounts.sender(owner, made).accounts if account.quota.bytes]
        await look_up(self._documents, [account for account in accounts if account.name is None])
        return accounts, made.get("user")

    def _check_bytes(self, owner: Owner, accounts: Sequence[Account]) -> None:
        """Raises Refusal(OVERLOADED) if one of the owner's accounts has used up its bytes."""
        for account in accounts:
            bound = account.quota.bytes
            if bound and account.bytes >= bound:
                share = Share(account, "bytes", account.bytes, bound)
                self._refused(account.subject)
                self._notices.no_bytes(owner, share)
                raise overloaded(share.exceeded(), _AGAIN)

    def _take(self, sent: Mapping[Owner, tuple[Sequence[Account], int]]) -> None:
        """Take the events of a batch from all buckets, or raise Refusal(OVERLOADED) and take nothing.

        `sent` has the accounts of each owner in the batch, and the number of its events.
        """
        counts: dict[Account, int] = {}
        for accounts, count in sent.values():
            for account in accounts:
                if account.bucket is not None:
                    counts[account] = counts.get(account, 0) + count
        now, longest, slowest = self._clock(), 0.0, None
        for account, count in counts.items():
            if account.bucket is not None and (wait := account.bucket.wait(count, now)) > longest:
                longest, slowest = wait, account
        if slowest is not None:
            self._refused(slowest.subject)
            self._tell(slowest, over=True)
            reason = f"{_rate(slowest)}, and sends more"
            for owner, (accounts, _) in sent.items():
                if slowest in accounts:
                    self._notices.slowed(owner, slowest, reason)
            raise overloaded(f"Over quota: {reason}", math.ceil(longest))
        for account, count in counts.items():
            if account.bucket is not None and account.bucket.take(count, now):
                self._tell(account, over=False)

    async def _admit_series(self, events: Ingest, senders: Mapping[Owner, Sender]) -> None:
        """Refuse new series of senders for which there is no room."""
        numbers = numbers_in(events.batch)
        number = number_of_batch(events.batch) if len(senders) == 1 else 0
        for owner, sender in senders.items():
            if sender.has_bound_of_series:
                await self._admit_series_of(events, owner, sender, numbers.get(owner, []), number)

    async def _admit_series_of(
        self, events: Ingest, owner: Owner, sender: Sender, numbers: list[int], number: int
    ) -> None:
        """Refuse new series of one sender. `numbers`: of its series; `number`: of the whole batch."""
        accounts, series = sender.accounts, self._series.of(owner)
        new = series.new(numbers)
        if not new:
            sender.knows(number)
            return
        if not series.whole and any(share.used + len(new) > _FAR * share.bound for share in _series_of(accounts)):
            series = await self._series.whole(owner)
            new = series.new(numbers)
        # Nothing is awaited until the new series are counted, so that no two batches use the same room.
        fullest = min(_series_of(accounts), key=lambda share: share.bound - share.used)
        room = max(fullest.bound - fullest.used, 0)
        taken, refused = new[:room], set(new[room:])
        self._series.add(owner, taken)
        self.amounts.add(accounts, series=len(taken))
        if refused:
            self._refused(fullest.account.subject)
            size = len(events.batch.scalars) + len(events.batch.samples)
            full = Share(fullest.account, "series", fullest.account.series, fullest.bound)
            reason = f"{full.exceeded()}; no further ones"
            left_out: dict[SeriesName, None] = {}

            def is_refused(name: SeriesName) -> bool:
                if number_of(name) not in refused:
                    return False
                left_out[name] = None
                return True

            await off_loop(size, lambda: events.refuse_series(owner, is_refused, reason))
            self._notices.no_series(owner, full, list(left_out))

    def _refused(self, subject: Subject) -> None:
        self._counters.count("quota_refusals")
        self.amounts.refused(subject.company)

    def _tell(self, account: Account, *, over: bool) -> None:
        """Say in the log who sends more than they may, or nearly as much, once an hour."""
        if self._told.due((account.subject, over)):
            state, sends = ("exceeded", "more") if over else ("nearly used up", "nearly as many")
            log.warning("a quota is %s: %s, and sends %s", state, _rate(account), sends)


def _rate(account: Account) -> str:
    return f"{account} may send {account.quota.events_per_second:,} events a second"


def _series_of(accounts: Sequence[Account]) -> list[Share]:
    return [share for account in accounts for share in account.shares() if share.what == "series"]


def _size(points: int, logs: Sequence[LogColumns], samples: Sequence[Sample]) -> tuple[int, int]:
    """How many events these are, and how many bytes they take in the journal."""
    if not logs and not samples:  # the usual case
        return points, _POINT * points
    lines = texts = 0
    for some in logs:
        lines += len(some.messages)
        texts += sum(map(len, some.messages))
    for sample in samples:
        texts += len(sample.document)
    others = lines + len(samples)
    return points + others, _POINT * points + _EVENT * others + texts


def _sizes(batch: EventBatch) -> dict[Owner, tuple[int, int]]:
    """The `_size` of what each owner has in the batch."""
    scalars = batch.scalars
    points: Counter[Owner] = Counter()
    logs: defaultdict[Owner, list[LogColumns]] = defaultdict(list)
    samples: defaultdict[Owner, list[Sample]] = defaultdict(list)
    if len(scalars.owners) == 1:  # the usual case, without looking at each series
        points[scalars.owners[0]] = len(scalars.iters)
    else:
        for number, length in zip(scalars.owner, scalars.lengths, strict=True):
            points[scalars.owners[number]] += length
    for lines in batch.logs:
        logs[lines.owner].append(lines)
    for sample in batch.samples:
        samples[sample.owner].append(sample)
    owners = dict.fromkeys([*points, *logs, *samples])
    return {owner: _size(points[owner], logs[owner], samples[owner]) for owner in owners}
