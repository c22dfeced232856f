"""One account for each task, project, user and company that has a quota: how much it has, and how much it may have."""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.events.model import Owner
from apiserver.services.quotas.rates import NEARLY_EMPTY, Bucket
from apiserver.services.quotas.subjects import Subject, Subjects
from apiserver.settings.values import Quota
from apiserver.stores.documents.query import Document

#: Most accounts of a company that are remembered: the fullest ones.
MOST = 50_000
#: From this part of a bound on, people are warned.
NEAR = 0.8
#: Most different batches of a sender that are remembered: of training, of validation, of machines, of log lines.
_BATCHES = 4
#: So many senders are remembered, of all companies.
_SENDERS = 10_000
#: More letters of a name are not shown.
_LONGEST = 80


class Share(NamedTuple):
    """How much of a bound a subject has used up. `what` is "bytes" or "series"."""

    account: Account
    what: str
    used: int
    bound: int

    @property
    def part(self) -> float:
        """1 if all is used up."""
        return self.used / self.bound

    @property
    def is_near(self) -> bool:
        """Whether most is used up."""
        return self.part >= NEAR

    def __str__(self) -> str:
        return f"{self.account} has {self.used:,} of {self.bound:,} {self.what}"

    def exceeded(self) -> str:
        """The message for senders who exceed the bound."""
        return f"Over quota: {self.account} may have {self.bound:,} {self.what}, and has {self.used:,}"


@dataclass(slots=True, eq=False)
class Account:
    """The bytes and series of one subject."""

    subject: Subject
    quota: Quota
    summed_bytes: int = 0
    """The bytes at the last sum; once another sum has begun, at its beginning."""
    summed_series: int = 0
    added_bytes: int = 0
    """The bytes that were added since that moment."""
    added_series: int = 0
    coming: int = 0
    """Bytes of files that are being uploaded."""
    near_from: float = 0
    """From so many `added_bytes` on, most of a bound is used up. `set_near_from` sets it; 0 until then."""
    bucket: Bucket | None = None
    """None if events a second have no bound."""
    name: str | None = None
    """Its name, for people. None: it was not looked up yet."""
    is_model: bool = False
    """Whether it is that of a model, which the quotas of tasks are for, too."""

    def __str__(self) -> str:
        of, _, id = self.subject
        return f"{of} {self.name} ({id})" if self.name else f"{of} {id}"

    @property
    def bytes(self) -> int:
        """The bytes that count now."""
        return self.summed_bytes + self.added_bytes + self.coming

    @property
    def series(self) -> int:
        """The series that count now."""
        return self.summed_series + self.added_series

    @property
    def part(self) -> float:
        """Which part of its bytes is used up, or of its series, whichever is larger; 1: all of them."""
        quota, part = self.quota, 0.0
        if quota.bytes:
            part = self.bytes / quota.bytes
        if quota.series and (of_series := self.series / quota.series) > part:
            part = of_series
        return part

    def shares(self) -> list[Share]:
        """How much of each bound is used up."""
        both = (("bytes", self.bytes, self.quota.bytes), ("series", self.series, self.quota.series))
        return [Share(self, what, has, bound) for what, has, bound in both if bound]

    def set_near_from(self) -> bool:
        """Set `near_from`, after anything but `added_bytes` has changed; returns whether most of a bound is used up."""
        quota = self.quota
        if quota.series and self.series >= NEAR * quota.series:
            self.near_from = 0
        else:
            self.near_from = (NEAR * quota.bytes or math.inf) - self.summed_bytes - self.coming
        return self.added_bytes >= self.near_from

    def come(self, bytes: int) -> None:
        """Count bytes of a file that is being uploaded; fewer, if they are negative."""
        self.coming += bytes
        self.set_near_from()

    def begin_sum(self) -> None:
        """Count the added amounts as summed: the sum that begins now finds them."""
        self.near_from -= self.added_bytes
        self.summed_bytes += self.added_bytes
        self.summed_series += self.added_series
        self.added_bytes = self.added_series = 0


@dataclass(slots=True, eq=False)
class Sender:
    """An owner that sends events, or for which files are sent."""

    document: Document
    """The owner's document, which says for whom the events and files count."""
    accounts: list[Account]
    """The accounts for which its events count."""
    has_bound_of_series: bool
    """Whether a quota of one of them bounds series."""
    batches: tuple[int, ...] = ()
    """The `number_of_batch` of its last batches in which no series was new; each once."""

    def count_if_far(self, events: int, bytes: int, now: float) -> bool:
        """Count events for all accounts if each stays far below its bounds. Returns whether they were counted."""
        latest = now + NEARLY_EMPTY
        for account in self.accounts:
            if account.added_bytes + bytes >= account.near_from:
                return False
            if account.bucket is not None and account.bucket.full_after(events, now) > latest:
                return False
        for account in self.accounts:
            account.added_bytes += bytes
            if account.bucket is not None:
                account.bucket.take(events, now)
        return True

    def knows(self, batch: int) -> None:
        """Note the number of a batch in which no series was new; 0 is not noted."""
        if batch and batch not in self.batches:
            self.batches = (batch, *self.batches[: _BATCHES - 1])


class Accounts:
    """The accounts of all companies, by company and subject."""

    def __init__(self, quotas: Sequence[Quota], most: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.subjects = Subjects(quotas)
        self._most = most
        self._companies: dict[str, dict[Subject, Account]] = defaultdict(dict)
        self._senders: dict[Owner, Sender] = {}

    def of_company(self, company: str) -> dict[Subject, Account]:
        """The accounts of a company."""
        return self._companies[company]

    def sender(self, owner: Owner, document: Document) -> Sender:
        """The owner with this document. It is remembered until it has another one, which may say something else."""
        remembered = self._senders.get(owner)
        if remembered is not None and (remembered.document is document or _count_alike(remembered.document, document)):
            return remembered
        of_company = self._companies[owner.company]
        if len(of_company) + 4 > self._most:
            self._forget(of_company, self._clock())
        if len(self._senders) >= _SENDERS:
            self._senders.clear()
        accounts: list[Account] = []
        for subject, quota in self.subjects.of(owner, document.get("project"), document.get("user")):
            account = of_company.get(subject)
            if account is None:
                account = of_company[subject] = new_account(subject, quota, owner)
            accounts.append(account)
        sender = self._senders[owner] = Sender(document, accounts, any(account.quota.series for account in accounts))
        return sender

    def forget_sender(self, owner: Owner) -> None:
        """Look at the next batch of an owner closely; what was counted stays."""
        self._senders.pop(owner, None)

    def take_over(self, company: str, accounts: Sequence[Account]) -> None:
        """Remember the accounts that a sum has made, given with the fullest first, as long as there is room.

        An account that was made here during the sum gets the amounts of the sum.
        """
        of_company = self._companies[company]
        for account in accounts:
            made_here = of_company.get(account.subject)
            if made_here is not None:
                made_here.summed_bytes, made_here.summed_series = account.summed_bytes, account.summed_series
            elif len(of_company) < self._most * 9 // 10:
                of_company[account.subject] = account

    def _forget(self, of_company: dict[Subject, Account], now: float) -> None:
        """Forget the tenth of the accounts that is least full: a tenth, so that this is seldom done."""

        def part(account: Account) -> float:
            return max(account.part, account.bucket.lacks(now) if account.bucket else 0.0)

        for account in heapq.nsmallest(self._most // 10 + 4, of_company.values(), key=part):
            del of_company[account.subject]
        self._senders.clear()


def _count_alike(one: Document, other: Document) -> bool:
    """Whether what owners with these documents send counts for the same project and user."""
    return one.get("project") == other.get("project") and one.get("user") == other.get("user")


def shown(name: str) -> str:
    """A name that somebody has given, for people: in one line, and not long."""
    line = "".join(char if char.isprintable() else " " for char in name)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def new_account(subject: Subject, quota: Quota, owner: Owner, name: str | None = None) -> Account:
    """An account that has nothing yet. The bytes and series of `owner` count for it."""
    rate = quota.events_per_second
    is_model = owner.is_model and subject.of == "task"
    return Account(subject, quota, bucket=Bucket(rate) if rate else None, name=name, is_model=is_model)
