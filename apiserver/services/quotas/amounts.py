"""How many bytes and series each subject of a quota has: the last sum, and the amounts that were added since.

Sums are made of what the event store and the disk tell, again and again while something is added: a minute after the
last time at the earliest, and so seldom that they take a hundredth of the time. Until a sum is made, events count as
they lie in the journal, which is more than they take later. Deleted events make room at the next sum, deleted files
mostly at once.

A sum is as of one moment: when the store has told of its events. What is added later stays beside the sum until the
next one:

    the sum of 20:00:00 to 20:00:09 finds 300 bytes; the store had told of its events at 20:00:04
    added before were 100, at 20:00:02 came 10, at 20:00:05 came 50
    from 20:00:09 on there are 300 + 50; those 110 are among the 300

Events that come in the instant between the store's look at its newest ones and its answer count twice until then.
Those that are counted already, but that the store does not have yet at this look, count from the next sum on.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.common.off_loop import off_loop
from apiserver.common.repeating import Repeating
from apiserver.events.model import Owner
from apiserver.services.quotas.accounts import MOST, Account, Accounts, Share, new_account, shown
from apiserver.services.quotas.known_series import KnownSeries
from apiserver.services.quotas.subjects import Subject
from apiserver.services.quotas.usage import CompanyUsage, Usages
from apiserver.stores.documents.base import DocumentStoreBusy
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.files.disk import Former

log = logging.getLogger(__name__)

#: The next sum waits for so many seconds, or so many times as long as the last one took, whichever is longer.
EVERY, TIMES = 60.0, 100.0
#: Elasticsearch estimates numbers of series. If a sum has found less than this part of the known ones, some are gone.
_SURELY = 0.9
#: Most subjects near their bound that the log names.
NAMED = 100


@dataclass(slots=True)
class _Company:
    """The state of the sums of a company: when the last one was made, and when the next one is due."""

    summed: bool = False
    """Whether there was a sum."""
    began: int = 0
    """The moment (epoch ns) as of which the sum is that is being made; 0: none is."""
    due: float = 0.0
    """When the next sum may begin."""
    changed: bool = True
    """Whether something came, was refused or was deleted since the last sum began. Batches that are counted at once do
    not say so here, but by the `added_bytes` of their accounts."""
    near: dict[tuple[Subject, str], bool] = field(default_factory=dict)
    """Who has most of which bound, and whether they have used up all of it."""


class Near(NamedTuple):
    """How many subjects have most of a bound, and how many of them have used up all of it."""

    near: int
    used_up: int


class Amounts:
    """How many bytes and series the subjects of quotas have, approximately."""

    def __init__(
        self, accounts: Accounts, series: KnownSeries, usages: Usages, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._accounts = accounts
        self._series = series
        self._usages = usages
        self._companies: dict[str, _Company] = {}
        self._one_at_a_time = asyncio.Lock()
        self.measuring = Repeating(
            "adding up for quotas", self._measure_all, EVERY, expected=(EventStoreBusy, DocumentStoreBusy, OSError)
        )

    def add(self, accounts: Sequence[Account], *, bytes: int = 0, series: int = 0) -> bool:
        """Count what is added. Returns whether one of them has most of a bound then.

        Negative bytes are taken from what was added since the last sum, not from the sum.
        """
        if not accounts:
            return False
        any_near = False
        company = self._company(accounts[0].subject.company)
        company.changed = True
        for account in accounts:
            account.added_series += series
            account.added_bytes += bytes
            if account.added_bytes < 0:
                account.added_bytes = 0
            is_near = account.set_near_from()
            if is_near or bytes < 0:
                self._look_at(company, account, company.near)
            any_near |= is_near
        return any_near

    def freed(self, company: str, former: Former | None) -> int:
        """The bytes that a deleted or replaced file frees. 0 if a sum is being made that may count the file still."""
        if former is None or former.placed_ns < self._company(company).began:
            return 0
        return former.bytes

    def refused(self, company: str) -> None:
        """Sum up again when it is time, because room may have been made."""
        self._company(company).changed = True

    def near(self) -> Near:
        """How many have most of a bound."""
        companies = self._companies.values()
        return Near(sum(len(each.near) for each in companies), sum(sum(each.near.values()) for each in companies))

    async def of_company(self, company: str) -> list[Share]:
        """The used parts of bounds, the fullest first; EventStoreBusy if adding up takes too long."""
        sums = self._company(company)
        if not sums.summed:
            _check_due(sums, self._clock())
            async with self._one_at_a_time:
                if not sums.summed:  # nobody else has added up meanwhile
                    _check_due(sums, self._clock())
                    await self._measure(company)
        accounts = list(self._accounts.of_company(company).values())

        def shares() -> list[Share]:
            used = (share for account in accounts for share in account.shares() if share.used)
            return sorted(used, key=lambda share: share.part, reverse=True)

        return await off_loop(len(accounts), shares)

    async def measure(self, company: str) -> None:
        """Sum up what a company has. EventStoreBusy if that takes too long."""
        async with self._one_at_a_time:
            await self._measure(company)

    async def _measure(self, company: str) -> None:
        sums, started = self._company(company), self._clock()
        sums.changed = False  # the job begins no sum of this company meanwhile
        series: dict[Owner, int] = {}

        def begin(moment: int) -> None:
            sums.changed, sums.began = False, moment
            series.update(self._series.counts(company))
            for account in self._accounts.of_company(company).values():
                account.begin_sum()

        try:
            usage = await self._usages.anew(company, begin)
            accounts = list(self._accounts.of_company(company).values())
            fullest = await asyncio.to_thread(self._sum, accounts, usage)
            lost = await asyncio.to_thread(_with_fewer, series, usage)
        finally:
            sums.began = 0
            ended = self._clock()
            sums.due = ended + max(TIMES * (ended - started), EVERY)
        self._accounts.take_over(company, fullest)
        for owner in lost:  # else these series could come again, beside others that came in their room
            self._series.forget(owner)
            self._accounts.forget_sender(owner)
        sums.summed = True
        near: dict[tuple[Subject, str], bool] = {}
        for account in self._accounts.of_company(company).values():
            if account.set_near_from():
                self._look_at(sums, account, near)
        sums.near = near

    def _company(self, company: str) -> _Company:
        sums = self._companies.get(company)
        if sums is None:
            sums = self._companies[company] = _Company()
            self.measuring.wake()
        return sums

    async def _measure_all(self) -> None:
        now = self._clock()
        for company in [name for name, known in self._companies.items() if known.due <= now]:
            accounts = self._accounts.of_company(company).values()
            if self._companies[company].changed or any(account.added_bytes for account in accounts):
                await self.measure(company)

    def _look_at(self, company: _Company, account: Account, near: dict[tuple[Subject, str], bool]) -> None:
        """Note in `near` whether the account has most of a bound, and say so in the log if that is new."""
        for share in account.shares():
            place = account.subject, share.what
            if not share.is_near:
                near.pop(place, None)
                continue
            is_new = place not in company.near
            near[place] = share.part >= 1
            if is_new and len(near) <= NAMED:
                log.warning("a quota is used up to %d %%: %s", 100 * share.part, share)

    def _sum(self, accounts: Sequence[Account], company: CompanyUsage) -> list[Account]:
        """Note in the accounts what they have. Returns other accounts with something in them, the fullest first."""
        by_subject: dict[Subject, Account] = {}
        usage, files = company.kept
        bytes = (usage.bytes.sum(axis=1) + files[:, 1]).tolist()
        series = usage.series.sum(axis=1).tolist()
        for n, (owner, project_of, user_of) in enumerate(
            zip(usage.owners, company.project_of.tolist(), company.user_of.tolist(), strict=True)
        ):
            project, user = company.projects[project_of], company.users[user_of]
            names = {"task": company.names[n], "project": project.name, "user": user.name}
            for subject, quota in self._accounts.subjects.of(owner, project.id, user.id):
                summed = by_subject.get(subject)
                if summed is None:
                    summed = by_subject[subject] = new_account(subject, quota, owner, shown(names.get(subject.of, "")))
                summed.summed_bytes += bytes[n]
                summed.summed_series += series[n]
        for account in accounts:
            if (summed := by_subject.pop(account.subject, None)) is None:
                account.summed_bytes = account.summed_series = 0
            else:
                account.summed_bytes, account.summed_series = summed.bytes, summed.series
                account.name = summed.name
        others = (summed for summed in by_subject.values() if summed.part)
        return heapq.nlargest(MOST, others, key=lambda summed: summed.part)


def _with_fewer(series: Mapping[Owner, int], company: CompanyUsage) -> list[Owner]:
    """The owners of which a sum has found surely fewer series than were known."""
    usage = company.kept.usage
    found = dict(zip(usage.owners, usage.series.sum(axis=1).tolist(), strict=True))
    return [owner for owner, count in series.items() if found.get(owner, 0) < _SURELY * count]


def _check_due(known: _Company, now: float) -> None:
    """EventStoreBusy if adding up has failed, and is not to be tried again yet."""
    if (wait := known.due - now) > 0:
        text = "adding up for quotas failed a moment ago, and is tried again later"
        raise EventStoreBusy(text, retry_after=math.ceil(wait), overloaded=False)
